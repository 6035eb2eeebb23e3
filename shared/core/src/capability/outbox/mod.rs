//! What waits to be delivered to an extension on a lock: documented webhooks, and events that become calls.
//!
//! Whatever changes something adds its entries in the same commit, and a message that has them delivered. Each
//! (lock, extension) has an outbox of its own, so that nobody waits for another's receiver.

mod drain;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::call::deliver_message;
use crate::ids::Oid;
use crate::keys;
use crate::limits::{OUTBOX_RETENTION, OUTBOX_WATCH};
use crate::ports::{Commit, Committed, Key, Outage, Outgoing, Ports, QueueName, Write};
use crate::stored;
use crate::time::Timestamp;

use super::id::{LockId, Qualified, Slug};

pub use drain::{Drained, EventCalls, drain};

/// Where deliveries go: an extension on a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The tenant.
    pub oid: Oid,
    /// The lock.
    pub lock: LockId,
    /// The extension.
    pub extension: Slug,
}

/// What is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A webhook of this event.
    Event(String),
    /// A call of this command of the extension's own.
    Call(Qualified),
}

/// Something that waits to be delivered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// Names it as long as it waits, whatever its attempts, and is ordered by time.
    pub id: String,
    /// What it is.
    pub what: What,
    /// The webhook's `data`, or what the call is made of.
    pub data: Box<RawValue>,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u32,
    /// When it was added.
    pub created_at: Timestamp,
}

impl Entry {
    /// Where it lies: never tried it is due at once; otherwise at this time.
    fn key(&self, place: &Place, due: Timestamp) -> Key {
        let partition = keys::outbox(place.oid, &place.lock, &place.extension);
        Key::new(partition, format!("{}{}", keys::outbox_due(due), self.id))
    }
}

/// A change of something on a lock, with everything that must be told of it: one commit.
#[derive(Debug, Default)]
pub struct Change {
    /// What is written.
    pub writes: Vec<Write>,
    /// Messages of the change's own.
    pub sends: Vec<Outgoing>,
    places: Vec<Place>,
}

impl Change {
    /// Of this one write.
    pub fn of(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }

    /// Adds something to deliver, behind what was added before.
    pub fn post(&mut self, ports: &Ports, place: Place, what: What, data: Box<RawValue>) {
        let id = ports.ids.uuid().simple().to_string();
        self.post_as(ports, id, place, what, data);
    }

    /// Adds something to deliver under an id of the caller's: 32 hexadecimal digits that begin with the time.
    pub fn post_as(
        &mut self,
        ports: &Ports,
        id: String,
        place: Place,
        what: What,
        data: Box<RawValue>,
    ) {
        let created_at = ports.clock.now();
        let entry = Entry { id, what, data, attempts: 0, created_at };
        self.writes.push(put(&entry, &place, Timestamp::default()));
        if !self.places.contains(&place) {
            self.places.push(place);
        }
    }

    /// Does all of it, or nothing where a condition does not hold. What is to be delivered is delivered even where the
    /// process dies at the end of the writes: on a store where the messages are no part of them, other messages that look
    /// for it went before.
    pub async fn commit(mut self, ports: &Ports) -> Result<Committed, Outage> {
        let messages = |queue, delay| {
            self.places.iter().map(move |place| deliver_message(place, None, queue, delay))
        };
        if !ports.store.atomic() && !self.places.is_empty() {
            let sends = messages(QueueName::Resume, OUTBOX_WATCH).collect();
            ports.store.commit(Commit { sends, ..Commit::default() }).await?;
        }
        self.sends.extend(messages(QueueName::Dispatch, Duration::ZERO).collect::<Vec<_>>());
        let Self { writes, sends, .. } = self;
        ports.store.commit(Commit { writes, sends, ..Commit::default() }).await
    }
}

fn put(entry: &Entry, place: &Place, due: Timestamp) -> Write {
    Write::Put {
        key: entry.key(place, due),
        data: stored::bytes(entry),
        expires_at: Some(entry.created_at.plus(OUTBOX_RETENTION)),
        when: crate::ports::When::Always,
    }
}

/// The part of an extension that says whether webhooks can go to it.
#[derive(Deserialize)]
struct Reach {
    url: Option<String>,
}

/// Whether an extension has a URL that webhooks can go to, as of at most [`crate::limits::RECENT_MAX`] ago.
pub async fn receives(ports: &Ports, extension: &Slug) -> Result<bool, Outage> {
    let key = keys::capability_extension(extension);
    let Some(item) = stored::recent(ports, &key, |_| true).await? else { return Ok(false) };
    let reach: Reach = stored::read(&item, &key.sort)?;
    Ok(reach.url.is_some())
}

/// Data of a webhook as JSON text.
pub(super) fn raw<T: Serialize>(data: &T) -> Box<RawValue> {
    to_raw_value(data).expect("what webhooks carry has text keys and no failing parts")
}
