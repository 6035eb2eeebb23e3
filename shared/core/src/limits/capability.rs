//! Limits of capability extensions: those of the Chaster contract, and the platform's own around them.

use std::time::Duration;

use super::{DAY_SECS, INLINE_BYTES_MAX, ITEM_BYTES_MAX, JSON_DEPTH_MAX};

// --- Rates (CH-037 to CH-055) ---

/// A window of the rate counters: fixed, by the clock.
pub const RATE_WINDOW: Duration = Duration::from_secs(60);

/// What counts for one extension on one lock in one window (CH-041).
pub const EXTENSION_RATE_MAX: u32 = 120;

/// How long an extension that went over [`EXTENSION_RATE_MAX`] is blocked on that lock (CH-042).
pub const EXTENSION_BLOCK: Duration = Duration::from_secs(300);

/// What counts for one lock in one window, all extensions together (CH-046).
pub const LOCK_RATE_MAX: u32 = 300;

/// Requests of dynamic choices of one caller on one lock in one window (CH-052).
pub const OPTIONS_RATE_MAX: u32 = 60;

/// Requests of dynamic choices that a process counts at a time.
pub const OPTIONS_RESERVED: u32 = 2;

/// How long the counters of a window are kept after its end: clocks of processes differ.
pub const RATES_KEPT: Duration = Duration::from_secs(300);

/// Blocks, and callers of dynamic choices, that a process remembers.
pub const RATES_REMEMBERED_MAX: u64 = 10_000;

/// When a caller is asked to come back whom a target with too many calls cannot serve (CH-036).
pub const PARTNER_BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// When a caller is asked to come back whom the platform itself cannot serve.
pub const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

// --- Calls (CH-056 to CH-066) ---

/// Links of a chain of calls and events; the first is link 1, this one still passes (CH-056).
pub const CAPABILITY_DEPTH_MAX: u32 = 8;

/// Calls with a key that a process keeps in turn.
pub const KEYED_CALLS_REMEMBERED_MAX: u64 = 10_000;

/// Answers that come sooner are quick: the next call of their target by the same process is not told to others.
pub const QUICK_CALL: Duration = Duration::from_millis(100);

/// Calls of one target extension in progress at a time, unless set otherwise (CH-035).
pub const PARTNER_CALLS_MAX: usize = 16;

/// How long an invoked extension may take to answer, its body included (CH-060), and how long it may take to accept a
/// webhook.
pub const CAPABILITY_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer of an invoked extension, in bytes (CH-061).
pub const CAPABILITY_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Deepest nesting of an input or a payload; the root container is level 1 (CH-065, CH-066).
pub const CAPABILITY_JSON_DEPTH_MAX: usize = 64;

/// Largest input or payload, in bytes of JSON text: it travels in a message, and stays in a record.
pub const CAPABILITY_INPUT_BYTES_MAX: usize = 64 << 10;

/// How long a process may work on a call: its attempt, and what the store takes. After that it counts as gone.
pub const CAPABILITY_LEASE: Duration = Duration::from_secs(30);

// --- Dynamic choices (CH-062 to CH-064) ---

/// Choices that one answer of a query behind `x-chaster-options` holds (CH-062).
pub const OPTIONS_MAX: usize = 200;

/// Largest answer of a query behind `x-chaster-options`, in bytes of JSON text (CH-063).
pub const OPTIONS_BYTES_MAX: usize = 32 << 10;

/// How long choices are cached (CH-064).
pub const OPTIONS_TTL: Duration = Duration::from_secs(20);

/// Choices that a process keeps, in bytes.
pub const OPTIONS_CACHED_BYTES_MAX: u64 = 16 << 20;

/// Longest name of a field with choices, in bytes; a longer one has none.
pub const OPTIONS_FIELD_BYTES_MAX: usize = 256;

// --- Records (CH-067, CH-068) ---

/// How long invocations are kept (CH-067).
pub const CAPABILITY_CALL_RETENTION: Duration = Duration::from_secs(30 * DAY_SECS);

/// How long hidden events are kept (CH-068).
pub const HIDDEN_EVENT_RETENTION: Duration = Duration::from_secs(30 * DAY_SECS);

/// Events of one page that an extension reads.
pub const LOCK_EVENTS_LISTED_MAX: usize = 100;

/// Events that a page of them looks at, those included that the extension may not read.
pub const LOCK_EVENTS_SCANNED_MAX: usize = 2_000;

// --- Documented webhooks ---

/// Attempts of a documented webhook, the first included.
pub const EXTENSION_WEBHOOK_ATTEMPTS_MAX: u32 = 5;

/// Delay before the second attempt of a documented webhook; it doubles from there.
pub const EXTENSION_WEBHOOK_RETRY_DELAY: Duration = Duration::from_secs(60);

// --- Manifests ---

/// Largest manifest, in bytes of JSON text.
pub const MANIFEST_BYTES_MAX: usize = 256 << 10;

/// Entries of each list of a manifest: commands, queries, events, subscriptions.
pub const MANIFEST_ENTRIES_MAX: usize = 100;

/// Longest title of a capability or an event, in characters; at least 1.
pub const MANIFEST_TITLE_CHARS_MAX: usize = 60;

/// Longest description of a capability, in characters.
pub const MANIFEST_DESCRIPTION_CHARS_MAX: usize = 300;

/// Largest schema of a manifest, in bytes of JSON text.
pub const CAPABILITY_SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Longest text of a fault about a manifest, in bytes; the rest is cut.
pub const MANIFEST_FAULT_BYTES_MAX: usize = 500;

// --- Schemas of manifests, and validating with them ---

/// Steps that validating one value may take by the bounds of its schema: about one comparison each.
pub const SCHEMA_STEPS_MAX: u64 = 20_000_000;

/// Schemas inside one schema, the whole included.
pub const SCHEMA_PARTS_MAX: usize = 2_000;

/// Schemas inside all schemas of a manifest.
pub const MANIFEST_SCHEMA_PARTS_MAX: usize = 10_000;

/// Compiled patterns of all schemas of a manifest, in bytes, each taken for the next larger of [`PATTERN_SIZES`].
pub const MANIFEST_PATTERN_BYTES_MAX: usize = 1 << 20;

/// Schemas that one schema applies to one and the same value, by all ways that lead there.
pub const SCHEMA_VISITS_MAX: u64 = 1_000;

/// Schemas applied inside one another to one and the same value.
pub const SCHEMA_CHAIN_MAX: u64 = 64;

/// Schemas applied inside one another on the way to the deepest value: the stack grows with them.
pub const SCHEMA_STACK_CHAIN_MAX: u64 = 512;

/// Schemas inside one schema that references of it name.
pub const SCHEMA_REFERENCES_MAX: usize = 256;

/// Keywords `unevaluatedItems` and `unevaluatedProperties` of one schema.
pub const SCHEMA_UNEVALUATED_MAX: usize = 16;

/// Keywords and names that all `allOf` and `unevaluated…` of one schema bring together, by all ways: they are copied, and
/// compared with each other.
pub const SCHEMA_MERGED_MAX: u64 = 20_000;

/// Different patterns of one schema.
pub const SCHEMA_PATTERNS_MAX: usize = 50;

/// Longest pattern, in characters.
pub const PATTERN_CHARS_MAX: usize = 512;

/// Largest compiled pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Sizes of compiled patterns, in bytes, by which the time of a match is estimated.
pub const PATTERN_SIZES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, PATTERN_BYTES_MAX];

/// What a pattern may keep of what it found out while matching, in bytes.
pub const PATTERN_LAZY_BYTES_MAX: usize = 128 << 10;

/// What the compiled manifests that a process keeps may take, in bytes, by an estimate that is rather high.
pub const COMPILED_CACHED_BYTES_MAX: u64 = 64 << 20;

/// Estimate of what a capability or an event takes in memory beside its schemas, in bytes.
pub const COMPILED_ENTRY_BYTES: usize = 1 << 10;

/// Estimate of what a compiled schema takes in memory for each byte of its text.
pub const COMPILED_SCHEMA_FACTOR: usize = 48;

/// Estimate of what all compiled patterns of a manifest take in memory at most, in bytes: the engine has several forms of
/// each.
pub const COMPILED_PATTERNS_BYTES: usize = 8 * MANIFEST_PATTERN_BYTES_MAX;

// A call ends before its lease does.
const _: () = assert!(CAPABILITY_TIMEOUT.as_secs() * 2 < CAPABILITY_LEASE.as_secs());
// The streaming scanner stops where the contract does.
const _: () = assert!(CAPABILITY_JSON_DEPTH_MAX == JSON_DEPTH_MAX);
// Input and answer stay in the record beside each other, and a manifest in its extension.
const _: () = assert!(CAPABILITY_INPUT_BYTES_MAX <= INLINE_BYTES_MAX);
const _: () = assert!(CAPABILITY_ANSWER_BYTES_MAX <= INLINE_BYTES_MAX);
const _: () = assert!(MANIFEST_BYTES_MAX + INLINE_BYTES_MAX < ITEM_BYTES_MAX);
