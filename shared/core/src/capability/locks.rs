//! Locks: the scopes that sessions live on.

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::ports::{Committed, Item, Key, Ports, When, Write};
use crate::stored;

use super::history::{self, HistoryLine};
use super::id::LockId;
use super::model::{Lock, LockStatus};
use super::outbox::Change;
use super::refusal::Refusal;
use super::sessions::put_index;

/// The reason why nothing can be done on a lock that has ended (CH-021).
pub const NOT_ACTIVE: &str = "lock-not-active";

/// What of a lock is changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockPatch {
    /// Where it stands from now on.
    pub status: Option<LockStatus>,
    /// Whether somebody holds its key from now on.
    pub has_keyholder: Option<bool>,
}

pub(super) fn put_lock(oid: Oid, id: &LockId, lock: &Lock, when: When) -> Write {
    Write::Put { key: keys::lock(oid, id), data: stored::bytes(lock), expires_at: None, when }
}

/// A lock, and its item; `None`: there never was a session on it.
pub async fn load(ports: &Ports, oid: Oid, id: &LockId) -> Outcome<Option<(Lock, Item)>> {
    stored::load(ports, &keys::lock(oid, id)).await
}

/// A lock, and its item; a fault where there is none.
pub async fn require(ports: &Ports, oid: Oid, id: &LockId) -> Outcome<(Lock, Item)> {
    let found = load(ports, oid, id).await?;
    found.ok_or_else(|| Fault::new(Code::NotFound, format!("there is no lock {id}")))
}

/// Refuses what needs an active lock on one that has ended (CH-021).
pub fn require_active(lock: &Lock) -> Result<(), Refusal> {
    match lock.status {
        LockStatus::Locked => Ok(()),
        LockStatus::Unlocked | LockStatus::Deserted => {
            Err(Refusal::CommandUnavailable { reason: NOT_ACTIVE.to_owned() })
        }
    }
}

/// Changes a lock. What changes is a line of its history each.
pub async fn patch(ports: &Ports, oid: Oid, id: &LockId, patch: LockPatch) -> Outcome<Lock> {
    loop {
        let (before, item) = require(ports, oid, id).await?;
        let mut lock = before.clone();
        lock.status = patch.status.unwrap_or(lock.status);
        lock.has_keyholder = patch.has_keyholder.unwrap_or(lock.has_keyholder);
        if lock == before {
            return Ok(lock);
        }
        lock.updated_at = ports.clock.now();
        let mut change = Change::of(put_lock(oid, id, &lock, When::Revision(item.revision)));
        if lock.status != before.status {
            change.writes.extend(moved(oid, id, &before, lock.status));
            let title = match lock.status {
                LockStatus::Locked => "The lock was locked again",
                LockStatus::Unlocked => "The lock was unlocked",
                LockStatus::Deserted => "The lock was deserted",
            };
            let line = HistoryLine::new(ports, lock.status.word(), title, None);
            history::add(ports, &mut change, (oid, id), &lock, &line).await?;
        }
        if lock.has_keyholder != before.has_keyholder {
            let line = keyholder_line(ports, lock.has_keyholder);
            history::add(ports, &mut change, (oid, id), &lock, &line).await?;
        }
        if change.commit(ports).await? == Committed::Done {
            return Ok(lock);
        }
    }
}

/// The line that says whether somebody holds the key of a lock from now on.
pub(super) fn keyholder_line(ports: &Ports, has_keyholder: bool) -> HistoryLine {
    let (kind, title) = match has_keyholder {
        true => ("keyholder_added", "The lock has a keyholder now"),
        false => ("keyholder_removed", "The lock has no keyholder any more"),
    };
    HistoryLine::new(ports, kind, title, None)
}

/// The writes that move the sessions of a lock to another status in the index.
fn moved(oid: Oid, id: &LockId, lock: &Lock, to: LockStatus) -> Vec<Write> {
    let key = |(slug, session): (&_, &String), status| -> Key {
        keys::session_of_status(slug, status, session)
    };
    let each = lock.sessions.iter().flat_map(|entry| {
        let gone = Write::Delete { key: key(entry, lock.status), when: When::Always };
        [gone, put_index(key(entry, to), oid, id)]
    });
    each.collect()
}
