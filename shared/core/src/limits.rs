//! Every number of the contracts and of the platform, by topic, with its unit in its type or name.
//!
//! How two limits relate is checked when compiling, at the end of this file.

use std::time::Duration;

mod capability;
mod scopes;
mod stores;
mod vendor;

pub use self::capability::*;
pub use self::scopes::*;
pub use self::stores::*;
pub use self::vendor::*;

// --- Transport and retries (LC-031 to LC-048) ---

/// Version every webhook message carries (LC-027).
pub const PROTOCOL_VERSION: u32 = 20_221_218;

/// Longest a webhook attempt may last, its body included (LC-031, LC-032).
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest an attempt to get an extension's schema may last. A caller waits for it before its call is claimed, so all
/// attempts and the delays between them fit into [`WAIT_MAX`].
pub const SCHEMA_TIMEOUT: Duration = Duration::from_secs(7);

/// Attempts of one call, the first included (LC-035).
pub const ATTEMPTS_MAX: u32 = 3;

/// Delay before the first retry, before jitter (LC-036).
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

/// No retry delay exceeds this, jitter included (LC-037).
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(15);

/// Factor by which the retry delay grows (LC-038).
pub const RETRY_FACTOR: u32 = 2;

/// Jitter of a retry delay, in percent either way (LC-039).
pub const RETRY_JITTER_PERCENT: u32 = 20;

/// First delay after a 429; doubles up to [`SLOW_RETRY_DELAY_MAX`] (LC-045).
pub const SLOW_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Longest delay between two slow retries; what one queue message can wait.
pub const SLOW_RETRY_DELAY_MAX: Duration = Duration::from_secs(900);

/// How long a call that is answered 429 is tried again, unless set otherwise.
pub const SLOW_RETRY_WINDOW: Duration = Duration::from_secs(6 * 3600);

/// Largest response body of an extension: 100 MB, decimal (LC-047).
pub const RESPONSE_BYTES_MAX: usize = 100_000_000;

/// Bodies above this are "large": only [`LARGE_BODIES_AT_ONCE`] are read at a time.
pub const LARGE_BODY_BYTES: usize = 1 << 20;

/// Large bodies held in memory at a time by one process.
pub const LARGE_BODIES_AT_ONCE: usize = 4;

// --- Continuations (LC-072 to LC-085) ---

/// Longest delay of a continuation; longer asks are clamped and reported (LC-074).
pub const CONTINUATION_DELAY_MAX: Duration = Duration::from_secs(300);

/// Deepest level of a chain; the first call is level 0 (LC-076).
pub const CONTINUATION_LEVEL_MAX: u32 = 100;

/// Continuations of one response; further ones are cut and reported (LC-080).
pub const CONTINUATIONS_PER_RESPONSE_MAX: usize = 100;

/// How long a repeat publish of the same continuation is dropped (LC-083, LC-084).
pub const CONTINUATION_DEDUPE: Duration = Duration::from_secs(2 * 3600);

// --- Calls across extensions ---

/// Deepest chain of calls across extensions; the root call is depth 1.
pub const CALL_DEPTH_MAX: u32 = 100;

// --- Metrics (LC-092, LC-099) ---

/// SKUs of one report; a larger report is discarded whole (LC-092, LC-093).
pub const SKUS_PER_REPORT_MAX: usize = 10;

/// Longest SKU name, in bytes.
pub const SKU_BYTES_MAX: usize = 128;

/// How long a metric report's key is remembered (LC-099).
pub const METRIC_DEDUPE: Duration = Duration::from_secs(30 * DAY_SECS);

/// How long usage counters are kept.
pub const USAGE_RETENTION: Duration = Duration::from_secs(400 * DAY_SECS);

// --- Schema and caches (LC-109, LC-147) ---

/// How long an extension's schema is trusted (LC-147).
pub const SCHEMA_TTL: Duration = Duration::from_secs(60);

/// How old may be what calls read again and again: definitions, installs, configurations, secrets.
pub const RECENT_MAX: Duration = Duration::from_secs(60);

/// How long the answer to "does it advertise `update`?" is trusted (LC-109).
pub const ADVERTISED_TTL: Duration = Duration::from_secs(3600);

/// Schemas a process keeps.
pub const SCHEMAS_CACHED_MAX: u64 = 1_000;

/// Largest schema answer, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 4 << 20;

// --- Daily updates ---

/// Updates of one message: they are delivered side by side, and what they need is read together.
pub const UPDATES_PER_MESSAGE_MAX: usize = 25;

/// Updates that one message carries until they are due.
pub const UPDATES_CARRIED_MAX: usize = 5_000;

// --- Payloads ---

/// Largest request `data`, in bytes of JSON text.
pub const REQUEST_BYTES_MAX: usize = 10 << 20;

/// Largest HTTP request body the API reads, in bytes.
pub const API_BODY_BYTES_MAX: usize = 16 << 20;

/// Largest body of a request that needs no token and reads one, in bytes.
pub const SMALL_BODY_BYTES_MAX: usize = 64 << 10;

/// Members of a gzip text; each costs time, however little it holds.
pub const GZIP_MEMBERS_MAX: usize = 1_000;

/// Largest field of an HTTP request, decoded from its form, in bytes.
pub const FIELD_BYTES_MAX: usize = REQUEST_BYTES_MAX;

/// Fields of an HTTP request.
pub const FIELDS_MAX: usize = 256;

/// Deepest nesting of any JSON text that comes from outside; the root container is level 1.
pub const JSON_DEPTH_MAX: usize = 64;

/// Members of an object that is taken apart: request data, configuration. What only passes through has no such limit.
pub const JSON_MEMBERS_MAX: usize = 65_536;

/// Keys and values of an extension's schema, taken together.
pub const SCHEMA_TOKENS_MAX: usize = 200_000;

/// Largest text of a parameter of type `yaml`, in bytes.
pub const YAML_BYTES_MAX: usize = 1 << 20;

/// Payloads above this leave the record and go to the blobs, in bytes.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

// --- Records ---

/// How long invocation records are kept.
pub const RECORD_RETENTION: Duration = Duration::from_secs(30 * DAY_SECS);

/// How long an error of an organization is kept after it was last seen.
pub const ERROR_RETENTION: Duration = Duration::from_secs(30 * DAY_SECS);

/// As much of an extension's error text as is looked at, in bytes. Far more than is shown, so that a secret at its end,
/// which is not recognized there, is not shown either.
pub const ANSWER_ERROR_BYTES_MAX: usize = 256 << 10;

/// Errors of an organization that one answer lists.
pub const ERRORS_LISTED_MAX: usize = 1_000;

/// Longest text of an organization error, in bytes; the rest is cut.
pub const ERROR_TEXT_BYTES_MAX: usize = 2_048;

/// Longest error text of a call that its record keeps and its caller gets, in bytes; the rest is cut.
pub const CALL_ERROR_BYTES_MAX: usize = 16 << 10;

/// Longest key of a metric report that is kept as it is, in bytes; a longer one is known by its digest.
pub const METRIC_KEY_BYTES_MAX: usize = 256;

/// Telemetry events are kept this long, unless set otherwise.
pub const TELEMETRY_RETENTION: Duration = Duration::from_secs(30 * DAY_SECS);

/// Largest telemetry event, in bytes.
pub const EVENT_BYTES_MAX: usize = 256 << 10;

/// Events of one webhook delivery to an adapter.
pub const EVENTS_PER_POST_MAX: usize = 1_000;

/// Largest webhook delivery to an adapter, in bytes, once it is decompressed.
pub const EVENT_POST_BYTES_MAX: usize = 16 << 20;

/// How long a webhook delivery's `Idempotency-Key` is remembered.
pub const EVENT_POST_DEDUPE: Duration = Duration::from_secs(DAY_SECS);

/// Events stored in one commit; each is a write, beside the one that remembers the delivery.
pub const EVENTS_PER_COMMIT_MAX: usize = 50;

/// Events stored in one commit, in bytes (DynamoDB transactions hold 4 MB).
pub const EVENT_COMMIT_BYTES_MAX: usize = 3 << 20;

/// Requests that the rules of an organization make for one event; further ones are not made and reported.
pub const RULE_CALLS_PER_EVENT_MAX: usize = 50;

/// Largest request data that a rule makes, in bytes of JSON text.
pub const RULE_DATA_BYTES_MAX: usize = INLINE_BYTES_MAX;

/// Events of one page of a search.
pub const EVENTS_PER_PAGE_MAX: usize = 1_000;

/// Events of one page of a search unless it says otherwise.
pub const EVENTS_PER_PAGE: usize = 100;

/// Events of one page of a search, in bytes; a page holds one at least.
pub const EVENT_PAGE_BYTES_MAX: usize = 8 << 20;

/// Events that one page of a search looks at; where that is not enough, the page is short and has a cursor.
pub const EVENTS_SCANNED_MAX: usize = 20_000;

/// Installation keys of one organization.
pub const INSTALLATION_KEYS_PER_ORG_MAX: usize = 1_000;

/// Rules of one organization.
pub const RULES_PER_ORG_MAX: usize = 200;

// --- Names, keys, tokens ---

/// Longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;

/// Longest name of an extension, an action, a hive record, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Shortest shared secret of an extension, in characters.
pub const SHARED_SECRET_CHARS_MIN: usize = 32;

/// How long the shared secret before verifies after a rotation, unless set otherwise.
pub const SECRET_OVERLAP: Duration = Duration::from_secs(DAY_SECS);

/// Longest time in which two shared secrets verify.
pub const SECRET_OVERLAP_MAX: Duration = Duration::from_secs(30 * DAY_SECS);

/// How long a token for an extension is valid; outlasts three attempts.
pub const EXTENSION_TOKEN_TTL: Duration = Duration::from_secs(15 * 60);

/// How long a caller's token is valid unless it asks for less or more.
pub const TOKEN_TTL: Duration = Duration::from_secs(3600);

/// Longest validity a caller may ask for.
pub const TOKEN_TTL_MAX: Duration = Duration::from_secs(24 * 3600);

/// How far the clocks of two processes of the platform may be apart, for what is compared across them.
pub const CLOCKS_APART_MAX: Duration = Duration::from_secs(60);

/// How long an extension's token still works after its install was removed, so that it can clean up.
pub const REMOVED_INSTALL_GRACE: Duration = Duration::from_secs(3600);

/// Longest token that is read at all, in bytes.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;

/// Longest `uid` a caller may sign in with, in bytes.
pub const UID_BYTES_MAX: usize = 256;

/// Permissions of one API key or definition.
pub const PERMISSIONS_MAX: usize = 200;

/// Longest permission, in bytes.
pub const PERMISSION_BYTES_MAX: usize = 64;

/// API keys of one organization.
pub const API_KEYS_PER_ORG_MAX: usize = 1_000;

/// Longest text that people give things: a name, a description, a comment, in bytes.
pub const TEXT_BYTES_MAX: usize = 2_048;

/// Labels of one thing, each as long as a name.
pub const TAGS_MAX: usize = 64;

/// Largest data of a hive record, in bytes of JSON text; sealed it is a third larger and still fits an item.
pub const HIVE_DATA_BYTES_MAX: usize = 256 << 10;

/// Records of one page of a hive's listing.
pub const HIVE_PAGE_RECORDS_MAX: usize = 500;

/// Data of one page of a hive's listing, in bytes; a page holds one record at least.
pub const HIVE_PAGE_BYTES_MAX: usize = 4 << 20;

/// Longest range of a usage report.
pub const USAGE_RANGE_MAX: Duration = USAGE_RETENTION;

/// Entries of one usage report.
pub const USAGE_ENTRIES_MAX: usize = 10_000;

/// Hourly counters that one usage report reads.
pub const USAGE_COUNTERS_MAX: usize = 200_000;

// --- Waiting ---

/// Longest a caller is kept waiting before the answer is 202.
pub const WAIT_MAX: Duration = Duration::from_secs(25);

/// Least time in which a call whose caller waits is handed over, however long its acceptance took.
pub const WAIT_MIN: Duration = Duration::from_secs(1);

// --- Secrets ---

/// Root keys of one key ring.
pub const RING_KEYS_MAX: usize = 100;

/// Largest text of a key ring, in bytes (Secrets Manager).
pub const RING_BYTES_MAX: usize = 64 << 10;

/// Secrets whose values are in one message. Their names travel with what its answer continues.
pub const MESSAGE_SECRETS_MAX: usize = 256;

/// Values of secrets in one message, and what they take in it however often each stands there, in bytes: a reference is
/// short, and its value can be long.
pub const MESSAGE_SECRETS_BYTES_MAX: usize = 512 << 10;

/// Secret values shorter than this are not redacted: they would hide half of every text.
pub const REDACTED_CHARS_MIN: usize = 4;

/// Encoded forms of a secret value are redacted from this length on.
pub const REDACTED_ENCODED_CHARS_MIN: usize = 8;

/// Strings inside a secret value that is JSON are redacted by themselves from this length on.
pub const REDACTED_PART_CHARS_MIN: usize = 20;

const DAY_SECS: u64 = 86_400;

// A continuation and a slow retry travel as one delayed message each.
const _: () = assert!(CONTINUATION_DELAY_MAX.as_secs() <= QUEUE_DELAY_MAX.as_secs());
const _: () = assert!(SLOW_RETRY_DELAY_MAX.as_secs() <= QUEUE_DELAY_MAX.as_secs());
// The slow path is slower than any fast retry.
const _: () = assert!(RETRY_DELAY_MAX.as_secs() < SLOW_RETRY_DELAY.as_secs());
const _: () = assert!(ERROR_TEXT_BYTES_MAX < CALL_ERROR_BYTES_MAX);
const _: () = assert!(CALL_ERROR_BYTES_MAX < ANSWER_ERROR_BYTES_MAX);
// The names of a message's secrets fit a record, and a message, beside the rest.
const _: () =
    assert!(MESSAGE_SECRETS_MAX * (NAME_BYTES_MAX + 3) + 3 * INLINE_BYTES_MAX < ITEM_BYTES_MAX);
// A fault stays inline in a record, and in a message, however it is escaped.
const _: () = assert!(6 * CALL_ERROR_BYTES_MAX + 2 * INLINE_BYTES_MAX < ITEM_BYTES_MAX);
// A lease outlasts the longest run of one call: its attempts and the delays between.
const _: () = assert!(
    WEBHOOK_TIMEOUT.as_secs() * ATTEMPTS_MAX as u64 + RETRY_DELAY_MAX.as_secs() < LEASE.as_secs()
);
// A commit of events is one the store takes, with the event that goes over the size.
const _: () = assert!(EVENTS_PER_COMMIT_MAX < COMMIT_WRITES_MAX);
const _: () = assert!(EVENT_BYTES_MAX + (16 << 10) < ITEM_BYTES_MAX);
// Schema attempts, and the two delays between them with their jitter, end before a caller stops waiting.
const _: () = assert!(
    SCHEMA_TIMEOUT.as_secs() * ATTEMPTS_MAX as u64 * 10 + 12 + 24 < WAIT_MAX.as_secs() * 10
);
// A call's token outlasts its lease.
const _: () = assert!(LEASE.as_secs() < EXTENSION_TOKEN_TTL.as_secs());
// A message can hold the largest secret.
const _: () = assert!(HIVE_DATA_BYTES_MAX <= MESSAGE_SECRETS_BYTES_MAX);
// What stays inline fits an item beside its keys, and a message.
const _: () = assert!(2 * INLINE_BYTES_MAX < ITEM_BYTES_MAX && ITEM_BYTES_MAX < MESSAGE_BYTES_MAX);
// A sealed record, and its metadata, fit an item.
const _: () = assert!(
    HIVE_DATA_BYTES_MAX / 3 * 4 + TEXT_BYTES_MAX + TAGS_MAX * NAME_BYTES_MAX + (8 << 10)
        < ITEM_BYTES_MAX
);
