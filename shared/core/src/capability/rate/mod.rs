//! How often something may be done on a lock (CH-033, CH-037 to CH-055).
//!
//! What counts is counted in one item for each lock and minute, under bounds that the store holds
//! ([`Store::count`](crate::ports::Store::count)): the counters are exact over any number of processes. What is refused
//! for its rate is not counted.

mod block;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use futures_util::lock::Mutex;

use crate::ids::Oid;
use crate::keys;
use crate::limits::{
    EXTENSION_BLOCK, EXTENSION_RATE_MAX, LOCK_RATE_MAX, OPTIONS_RATE_MAX, OPTIONS_RESERVED,
    RATE_WINDOW, RATES_KEPT, RATES_REMEMBERED_MAX,
};
use crate::ports::{Count, Counted, Outage, Ports};
use crate::remembered::Remembered;
use crate::time::Timestamp;

use super::id::{LockId, Slug};
use super::outbox::Place;
use super::refusal::{Bucket, Refusal};

/// The counter of everything on the lock.
const LOCK: &str = "t";

/// The counters of rates.
///
/// A process has one: it remembers blocks that it knows of, so that a blocked caller costs no request.
pub struct Rates {
    ports: Ports,
    blocks: Remembered<Place, Timestamp>,
    /// Those that are being made: by the minute in which the extension went over its limit.
    making: Remembered<(Place, i64), Timestamp>,
    reserved: Remembered<(Oid, LockId, String), Mutex<Reserved>>,
}

/// Who asks for dynamic choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooser<'a> {
    /// An extension.
    Extension(&'a Slug),
    /// A person, by the word for what they are on the lock: `wearer`, `keyholder`. A word of the platform, never text
    /// from outside.
    User(&'a str),
}

/// Requests for choices that were counted and not used yet.
#[derive(Default)]
struct Reserved {
    minute: i64,
    left: u32,
}

impl Rates {
    /// Rates over these ports.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            blocks: Remembered::idle(RATES_REMEMBERED_MAX, EXTENSION_BLOCK),
            making: Remembered::idle(RATES_REMEMBERED_MAX, EXTENSION_BLOCK),
            reserved: Remembered::idle(RATES_REMEMBERED_MAX, RATE_WINDOW),
        }
    }

    /// Counts something that an extension does on a lock: a call of a command or a query, an event, a lock action, an
    /// operation of the platform (CH-037 to CH-040, CH-054, CH-055). One request that writes, or none in a block that is
    /// known.
    ///
    /// Refused where the extension is blocked there, where it has done [`EXTENSION_RATE_MAX`] things in this minute, which
    /// blocks it for [`EXTENSION_BLOCK`] and adds one line to the lock's history (CH-041, CH-042, CH-045), or where
    /// [`LOCK_RATE_MAX`] things were done on the lock, in this order (CH-046).
    pub async fn take(&self, oid: Oid, lock: &LockId, slug: &Slug) -> Result<(), Refusal> {
        let now = self.ports.clock.now();
        let place = Place { oid, lock: lock.clone(), extension: slug.clone() };
        if let Some(until) = self.known_block(&place, now).await {
            return Err(blocked(until, now));
        }
        let (of_extension, blocked_until) = (of_extension(slug), of_block(slug));
        let bounds = [
            (LOCK, i128::from(LOCK_RATE_MAX)),
            (&of_extension, i128::from(EXTENSION_RATE_MAX)),
            (&blocked_until, i128::from(now.millis()) + 1),
        ];
        let count = window((oid, lock), now, &[(LOCK, 1), (&of_extension, 1)], &bounds);
        let found = match self.ports.store.count(count).await? {
            Counted::Done(_) => return Ok(()),
            Counted::Refused(found) => found,
        };
        if let Some(until) = standing_block(&found, &blocked_until, now) {
            self.blocks.insert(place, until).await;
            return Err(blocked(until, now));
        }
        if i128::from(EXTENSION_RATE_MAX) <= at(&found, &of_extension) {
            return Err(blocked(self.block(place, now).await?, now));
        }
        Err(limited(Bucket::Lock, window_end(now), now))
    }

    /// Counts something that a person does on a lock: for the lock alone (CH-046).
    pub async fn take_user(&self, oid: Oid, lock: &LockId) -> Result<(), Refusal> {
        let now = self.ports.clock.now();
        let bounds = [(LOCK, i128::from(LOCK_RATE_MAX))];
        match self.ports.store.count(window((oid, lock), now, &[(LOCK, 1)], &bounds)).await? {
            Counted::Done(_) => Ok(()),
            Counted::Refused(_) => Err(limited(Bucket::Lock, window_end(now), now)),
        }
    }

    /// Counts a line that an extension writes into a lock's history. The contract has no limit for these, so they have a
    /// count of their own: everybody else on the lock is told of each, and nobody is blocked for them.
    pub async fn take_line(&self, oid: Oid, lock: &LockId, slug: &Slug) -> Result<(), Refusal> {
        let now = self.ports.clock.now();
        let counter = format!("l:{slug}");
        let bounds = [(&*counter, i128::from(EXTENSION_RATE_MAX))];
        let count = window((oid, lock), now, &[(&counter, 1)], &bounds);
        match self.ports.store.count(count).await? {
            Counted::Done(_) => Ok(()),
            Counted::Refused(_) => Err(limited(Bucket::Extension, window_end(now), now)),
        }
    }

    /// Counts one for an extension without a limit of its own: a chain that it started was too deep (CH-059). For the
    /// lock the caller has counted it already.
    ///
    /// Where that makes more than [`EXTENSION_RATE_MAX`] in this minute, the extension is blocked. In a block nothing is
    /// counted, so that whoever has waited for its end is served.
    pub async fn charge(&self, oid: Oid, lock: &LockId, slug: &Slug) -> Result<(), Outage> {
        let now = self.ports.clock.now();
        let place = Place { oid, lock: lock.clone(), extension: slug.clone() };
        if self.known_block(&place, now).await.is_some() {
            return Ok(());
        }
        let (of_extension, blocked_until) = (of_extension(slug), of_block(slug));
        let bounds = [(&*blocked_until, i128::from(now.millis()) + 1)];
        let count = window((oid, lock), now, &[(&of_extension, 1)], &bounds);
        match self.ports.store.count(count).await? {
            Counted::Done(after) if i128::from(EXTENSION_RATE_MAX) < at(&after, &of_extension) => {
                self.block(place, now).await.map(drop)
            }
            Counted::Done(_) => Ok(()),
            Counted::Refused(found) => {
                if let Some(until) = standing_block(&found, &blocked_until, now) {
                    self.blocks.insert(place, until).await;
                }
                Ok(())
            }
        }
    }

    /// Counts a request for dynamic choices, for this caller on this lock alone (CH-052, CH-053). Two are counted at a
    /// time, so that every other request of a process writes nothing; over several processes fewer than
    /// [`OPTIONS_RATE_MAX`] may get through, and never more.
    pub async fn take_options(
        &self,
        oid: Oid,
        lock: &LockId,
        chooser: Chooser<'_>,
    ) -> Result<(), Refusal> {
        let counter = match chooser {
            Chooser::Extension(slug) => format!("o:{slug}"),
            // No slug begins like that.
            Chooser::User(word) => format!("o:#{word}"),
        };
        let key = (oid, lock.clone(), counter.clone());
        let reserved = self.reserved.get_or(key, async { Mutex::default() }).await;
        // One at a time, so that nobody is refused while another is given two.
        let mut reserved = reserved.lock().await;
        let now = self.ports.clock.now();
        if reserved.minute == minute(now) && 0 < reserved.left {
            reserved.left -= 1;
            return Ok(());
        }
        let bounds = [(&*counter, i128::from(OPTIONS_RATE_MAX - OPTIONS_RESERVED) + 1)];
        let add = [(&*counter, i128::from(OPTIONS_RESERVED))];
        match self.ports.store.count(window((oid, lock), now, &add, &bounds)).await? {
            Counted::Done(_) => {
                *reserved = Reserved { minute: minute(now), left: OPTIONS_RESERVED - 1 };
                Ok(())
            }
            Counted::Refused(_) => Err(limited(Bucket::Options, window_end(now), now)),
        }
    }

    /// The end of a block that this process knows of.
    async fn known_block(&self, place: &Place, now: Timestamp) -> Option<Timestamp> {
        self.blocks.get(place).await.map(|until| *until).filter(|until| now < *until)
    }
}

fn of_extension(slug: &Slug) -> String {
    format!("e:{slug}")
}

/// The counter that says until when an extension is blocked, in milliseconds.
fn of_block(slug: &Slug) -> String {
    format!("b:{slug}")
}

fn at(counters: &BTreeMap<String, i128>, name: &str) -> i128 {
    counters.get(name).copied().unwrap_or(0)
}

/// The end of a block that the counters tell of, where it has not come yet.
fn standing_block(
    counters: &BTreeMap<String, i128>,
    name: &str,
    now: Timestamp,
) -> Option<Timestamp> {
    let until = i64::try_from(at(counters, name)).unwrap_or(i64::MAX);
    (now.millis() < until).then(|| Timestamp::from_millis(until))
}

/// A count in the window of `now`.
fn window(
    (oid, lock): (Oid, &LockId),
    now: Timestamp,
    add: &[(&str, i128)],
    below: &[(&str, i128)],
) -> Count {
    let named = |list: &[(&str, i128)]| {
        list.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    Count {
        key: keys::rate_window(oid, lock, now),
        data: Vec::new(),
        add: named(add),
        below: named(below),
        expires_at: Some(window_end(now).plus(RATES_KEPT)),
    }
}

/// The number of a window.
fn minute(at: Timestamp) -> i64 {
    at.secs().max(0) / 60
}

fn window_end(at: Timestamp) -> Timestamp {
    Timestamp::from_secs((minute(at) + 1).saturating_mul(60))
}

fn blocked(until: Timestamp, now: Timestamp) -> Refusal {
    limited(Bucket::Extension, until, now)
}

/// Refused until then: in whole seconds, rounded up, so that whoever waits so long is served (CH-051).
fn limited(bucket: Bucket, until: Timestamp, now: Timestamp) -> Refusal {
    let left = until.since(now).as_millis().div_ceil(1_000);
    Refusal::RateLimited { bucket, retry_after: u64::try_from(left).unwrap_or(u64::MAX).max(1) }
}

const _: () = assert!(RATE_WINDOW.as_secs() == 60 && EXTENSION_BLOCK.as_secs().is_multiple_of(60));
const _: () = assert!(OPTIONS_RATE_MAX.is_multiple_of(OPTIONS_RESERVED));
