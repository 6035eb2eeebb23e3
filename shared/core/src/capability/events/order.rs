//! The order of a lock's events. Each has an id above those of all that were there before it: whoever reads on from the
//! last id that they saw misses none, however long another event took to be checked and written.

use serde::{Deserialize, Serialize};

use crate::capability::id::LockId;
use crate::capability::link::EVENT_ID;
use crate::ids::Oid;
use crate::keys;
use crate::limits::HIDDEN_EVENT_RETENTION;
use crate::ports::{Item, Outage, Ports, When, Write};
use crate::stored;

/// The last number that was given on a lock.
#[derive(Serialize, Deserialize)]
struct Last {
    #[serde(rename = "n")]
    number: u64,
}

/// A place in the order. It is taken with the commit that holds its write, and no other commit takes the same.
pub(super) struct Turn {
    number: u64,
    /// Takes the place: to be the first write of its commit.
    pub(super) write: Write,
}

/// The place after `last`, what stands at [`keys::event_order`].
pub(super) fn next(
    ports: &Ports,
    oid: Oid,
    lock: &LockId,
    last: Option<&Item>,
) -> Result<Turn, Outage> {
    let key = keys::event_order(oid, lock);
    let now = ports.clock.now();
    // Milliseconds, and a counter below them: ids are ordered by time as well, like those of everything else.
    let from_clock = u64::try_from(now.millis()).unwrap_or(0) << 16;
    let (number, when) = match last {
        None => (from_clock, When::Absent),
        Some(item) => {
            let last: Last = stored::read(item, &key.sort)?;
            (from_clock.max(last.number + 1), When::Revision(item.revision))
        }
    };
    let data = stored::bytes(&Last { number });
    let expires_at = Some(now.plus(HIDDEN_EVENT_RETENTION));
    Ok(Turn { number, write: Write::Put { key, data, expires_at, when } })
}

impl Turn {
    /// An id of the event.
    pub(super) fn id(&self, ports: &Ports) -> String {
        format!("{EVENT_ID}{}", self.place(ports))
    }

    /// A name of something that comes of the event, in the event's place among others: 32 hexadecimal digits.
    pub(super) fn place(&self, ports: &Ports) -> String {
        format!("{:016x}{:016x}", self.number, ports.ids.random())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::ports::{Commit, Committed};
    use crate::testkit::{ManualClock, MemoryStore, ports};
    use crate::time::Timestamp;

    #[tokio::test]
    async fn who_was_slower_comes_behind_whatever_the_clock_says() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
        let ports = ports(Arc::new(MemoryStore::new(clock.clone())), &clock, 1);
        let (oid, lock) = (
            Oid::parse("000000a0-0000-4000-8000-000000000000").unwrap(),
            LockId::parse("l").unwrap(),
        );
        let commit = async |turn: &Turn| {
            let commit = Commit { writes: vec![turn.write.clone()], ..Commit::default() };
            ports.store.commit(commit).await.unwrap()
        };
        let slow = next(&ports, oid, &lock, None).unwrap();
        clock.advance(Duration::from_secs(5));
        let fast = next(&ports, oid, &lock, None).unwrap();
        assert_eq!(commit(&fast).await, Committed::Done);
        let Committed::Lost { found, .. } = commit(&slow).await else { panic!("two have a place") };
        clock.set_now(Timestamp::from_secs(7));
        let slow = next(&ports, oid, &lock, found.as_ref()).unwrap();
        assert_eq!(commit(&slow).await, Committed::Done);
        assert!(fast.id(&ports) < slow.id(&ports));
        assert!(fast.place(&ports) < slow.place(&ports));
        assert_ne!(slow.id(&ports), slow.id(&ports));
        assert!(crate::capability::link::is_id(&slow.id(&ports)));
    }
}
