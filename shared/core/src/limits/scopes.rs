//! Limits of capability extensions, and of the locks and sessions that they are used on.

use std::time::Duration;

use super::{
    CAPABILITY_TIMEOUT, COMMIT_WRITES_MAX, EXTENSION_WEBHOOK_ATTEMPTS_MAX,
    EXTENSION_WEBHOOK_RETRY_DELAY, ITEM_BYTES_MAX, LEASE, QUEUE_DELAY_MAX,
};

/// Largest `config`, `data` or `metadata` of a session, in bytes of JSON text.
pub const SESSION_OBJECT_BYTES_MAX: usize = 64 << 10;

/// What an extension says of its capabilities on a lock, in bytes as it is kept.
pub const AVAILABILITY_BYTES_MAX: usize = 128 << 10;

/// Sessions of one lock. Whatever tells all of them goes into one commit.
pub const SESSIONS_PER_LOCK_MAX: usize = 20;

/// Sessions of one page of a search.
pub const SESSIONS_PER_PAGE_MAX: usize = 50;

/// Sessions of one page of a search unless it says otherwise.
pub const SESSIONS_PER_PAGE: usize = 15;

/// A page of sessions or of history lines ends early once it holds this much, in bytes; it holds one at least.
pub const SCOPE_PAGE_BYTES_MAX: usize = 3 << 20;

/// Largest body of a request to an endpoint of capability extensions, in bytes.
pub const SCOPE_BODY_BYTES_MAX: usize = 1 << 20;

/// Longest title of a history line, in characters.
pub const LINE_TITLE_CHARS_MAX: usize = 200;

/// Longest description of a history line, a reason or an icon included, in characters.
pub const LINE_DESCRIPTION_CHARS_MAX: usize = 2_000;

/// How long a line of a lock's history is kept.
pub const HISTORY_RETENTION: Duration = Duration::from_secs(400 * 86_400);

/// Lines of one page of a lock's history.
pub const LINES_PER_PAGE_MAX: usize = 100;

/// Lines of one page of a lock's history unless it says otherwise.
pub const LINES_PER_PAGE: usize = 50;

/// Lines that one search of a lock's history looks at; where that is not enough, the page is short and says where to
/// go on.
pub const LINES_SCANNED_MAX: usize = 2_000;

/// Capabilities that one availability push names.
pub const AVAILABILITIES_MAX: usize = 200;

/// Longest reason why a capability is not available, in characters.
pub const REASON_CHARS_MAX: usize = 200;

/// Longest time that a lock action may add, take away or show for.
pub const ACTION_TIME_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How long one drain of an outbox takes up new entries.
pub const DRAIN_MAX: Duration = Duration::from_secs(40);

/// How long a drain of an outbox keeps others out: it outlasts [`DRAIN_MAX`] and one attempt.
pub const DRAIN_LEASE: Duration = Duration::from_secs(60);

/// After how long a message looks again at an outbox that is being drained.
pub const DRAIN_AGAIN: Duration = Duration::from_secs(2);

/// Where writes and messages are not one step: when a message looks for what a process that died in between left.
pub const OUTBOX_WATCH: Duration = Duration::from_secs(30);

/// How long an entry of an outbox is kept, whatever happens.
pub const OUTBOX_RETENTION: Duration = Duration::from_secs(30 * 86_400);

const _: () = assert!(
    DRAIN_MAX.as_secs() + CAPABILITY_TIMEOUT.as_secs() < DRAIN_LEASE.as_secs()
        && DRAIN_LEASE.as_secs() < LEASE.as_secs()
);
// Every delay between attempts travels as one message.
const _: () = assert!(
    EXTENSION_WEBHOOK_RETRY_DELAY.as_secs() << (EXTENSION_WEBHOOK_ATTEMPTS_MAX - 2)
        <= QUEUE_DELAY_MAX.as_secs()
);
// A change of a lock moves two index entries of each session and tells each of two lines, beside the lock and those.
const _: () = assert!(4 * SESSIONS_PER_LOCK_MAX + 8 < COMMIT_WRITES_MAX);
// A session fits an item, and so does the entry that tells of it.
// The entry quotes none of it.
const _: () =
    assert!(3 * SESSION_OBJECT_BYTES_MAX + AVAILABILITY_BYTES_MAX + (32 << 10) < ITEM_BYTES_MAX);
