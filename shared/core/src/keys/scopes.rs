//! Keys of capability extensions, locks and what happens on them.

use crate::capability::id::{LockId, Slug};
use crate::capability::model::LockStatus;
use crate::ids::Oid;
use crate::ports::Key;
use crate::time::Timestamp;

use super::digest_hex;

/// Partition of capability extensions, sorted by slug.
pub const CAPABILITY_EXTENSIONS: &str = "capability-extensions";

/// A capability extension.
pub fn capability_extension(slug: &Slug) -> Key {
    Key::new(CAPABILITY_EXTENSIONS, slug.as_str())
}

/// Partition of the index of an extension's sessions, sorted by session id.
pub fn sessions(slug: &Slug) -> String {
    format!("sessions#{slug}")
}

/// Where the session of this id of this extension lies.
pub fn session_place(slug: &Slug, session: &str) -> Key {
    Key::new(sessions(slug), session)
}

/// Where the session of this id of this extension stands in the list of those whose locks have this status. The
/// partition is sorted by session id, as [`sessions`] is.
pub fn session_of_status(slug: &Slug, status: LockStatus, session: &str) -> Key {
    Key::new(sessions_of_status(slug, status), session)
}

/// Partition of the index of an extension's sessions on locks of this status.
pub fn sessions_of_status(slug: &Slug, status: LockStatus) -> String {
    format!("{}#{}", sessions(slug), status.word())
}

/// Prefix of everything that an organization has on its scopes.
pub fn scopes(oid: Oid) -> String {
    format!("scope#{oid}#")
}

/// Partition of a lock and its sessions.
pub fn lock_partition(oid: Oid, lock: &LockId) -> String {
    format!("{}lock#{lock}", scopes(oid))
}

/// A lock.
pub fn lock(oid: Oid, lock: &LockId) -> Key {
    Key::new(lock_partition(oid, lock), "lock")
}

/// Prefix of a lock's sessions in its partition.
pub const LOCK_SESSIONS: &str = "session#";

/// The session of an extension on a lock.
pub fn session(oid: Oid, lock: &LockId, slug: &Slug) -> Key {
    Key::new(lock_partition(oid, lock), format!("{LOCK_SESSIONS}{slug}"))
}

/// Partition of a lock's history, sorted by the ids of its lines, which are ordered by time.
pub fn history(oid: Oid, lock: &LockId) -> String {
    format!("{}#history", lock_partition(oid, lock))
}

/// Partition of a lock's events, sorted by their ids, which are ordered by time.
pub fn lock_events(oid: Oid, lock: &LockId) -> String {
    format!("{}#events", lock_partition(oid, lock))
}

/// The last place that an event of a lock took in their order.
pub fn event_order(oid: Oid, lock: &LockId) -> Key {
    Key::new(format!("{}#order", lock_partition(oid, lock)), "events")
}

/// A place among the calls of a target that are under way.
pub fn running_call(slug: &Slug, place: usize) -> Key {
    Key::new(running_calls(slug), format!("{place:010}"))
}

/// The partition of the calls of a target that are under way.
pub fn running_calls(slug: &Slug) -> String {
    format!("running#{slug}")
}

/// The record of a call of a capability.
pub fn capability_call(oid: Oid, lock: &LockId, id: &str) -> Key {
    Key::new(format!("{}#call#{id}", lock_partition(oid, lock)), "record")
}

/// Partition of a lock's rate counters.
pub fn rates(oid: Oid, lock: &LockId) -> String {
    format!("{}#rates", lock_partition(oid, lock))
}

/// The counters of a lock in the minute of `at`.
pub fn rate_window(oid: Oid, lock: &LockId, at: Timestamp) -> Key {
    Key::new(rates(oid, lock), format!("minute#{:012}", at.secs().max(0) / 60))
}

/// The block of an extension on a lock.
pub fn rate_block(oid: Oid, lock: &LockId, slug: &Slug) -> Key {
    Key::new(rates(oid, lock), format!("block#{slug}"))
}

/// Partition of what waits to be delivered to an extension on a lock, in order.
pub fn outbox(oid: Oid, lock: &LockId, slug: &Slug) -> String {
    format!("{}#outbox#{slug}", lock_partition(oid, lock))
}

/// Choices that were fetched, for whoever asks for the same.
pub fn choices(oid: Oid, lock: &LockId, parts: &[&str]) -> Key {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    Key::new(format!("{}#choices", lock_partition(oid, lock)), digest_hex(&parts))
}

/// What an item of a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoped<'a> {
    /// The lock itself.
    Lock,
    /// The session of the extension of this slug.
    Session(&'a str),
    /// A line of its history.
    Line,
    /// An event.
    Event,
    /// The record of a call.
    Call,
    /// Counters, and what waits to be delivered.
    Passing,
}

/// The lock of an item of [`scopes`], and what the item is.
pub fn scoped<'a>(partition: &'a str, sort: &'a str) -> Option<(&'a str, Scoped<'a>)> {
    let (_, rest) = partition.strip_prefix("scope#")?.split_once("#lock#")?;
    let (lock, part) = rest.split_once('#').unwrap_or((rest, ""));
    let found = match part.split('#').next()? {
        "" => match sort.strip_prefix(LOCK_SESSIONS) {
            Some(slug) => Scoped::Session(slug),
            None => Scoped::Lock,
        },
        "history" => Scoped::Line,
        "events" => Scoped::Event,
        "call" => Scoped::Call,
        _ => Scoped::Passing,
    };
    Some((lock, found))
}

/// Who drains an outbox at the moment.
pub fn outbox_lease(oid: Oid, lock: &LockId, slug: &Slug) -> Key {
    Key::new(outbox(oid, lock, slug), "lease")
}

/// Prefix of the entries of an outbox, which are sorted by when they are due, and then by when they were added.
pub const OUTBOX_ENTRIES: &str = "entry#";

/// Sort key of the first entry of an outbox that is due at this time; one that was never tried is due at zero.
pub fn outbox_due(at: Timestamp) -> String {
    format!("{OUTBOX_ENTRIES}{:015}#", at.millis().max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_a_lock_is_known_by_its_key() {
        let oid = Oid::new(uuid::Uuid::nil());
        let (id, slug) = (LockId::parse("l-1").unwrap(), Slug::parse("dice").unwrap());
        let check = |key: &Key, expected: Scoped<'_>| {
            assert_eq!(scoped(&key.partition, &key.sort), Some(("l-1", expected)), "{key:?}");
            assert!(key.partition.starts_with(&scopes(oid)), "{key:?}");
        };
        check(&lock(oid, &id), Scoped::Lock);
        check(&session(oid, &id, &slug), Scoped::Session("dice"));
        check(&Key::new(history(oid, &id), "x"), Scoped::Line);
        check(&Key::new(lock_events(oid, &id), "x"), Scoped::Event);
        check(&capability_call(oid, &id, "x"), Scoped::Call);
        check(&rate_window(oid, &id, Timestamp::from_secs(0)), Scoped::Passing);
        check(&outbox_lease(oid, &id, &slug), Scoped::Passing);
        assert_eq!(scoped("org#x", "lock"), None);
    }
}
