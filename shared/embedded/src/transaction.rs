//! One write transaction of the database, in which many commits happen one after the other.

use annex_core::limits::{COUNTER_MAX, ITEM_BYTES_MAX, QUEUE_DELAY_MAX};
use annex_core::ports::{
    Commit, Committed, Count, Counted, Item, Outage, QueueName, When, Write, item_bytes,
};
use annex_core::time::Timestamp;
use redb::{ReadableTable as _, Table, WriteTransaction};
use uuid::Uuid;

use crate::engine::Failure;
use crate::item::{self, Stored};
use crate::tables::{self, EXPIRY, HOLDS, ITEMS, MessageKey, encode_hold, encode_message};

/// The tables of a transaction. Those that not every commit needs are opened when one does.
pub(crate) struct Tables<'t> {
    transaction: &'t WriteTransaction,
    pub(crate) items: Table<'t, &'static [u8], &'static [u8]>,
    pub(crate) expiry: Table<'t, u128, &'static [u8]>,
    pub(crate) holds: Table<'t, u128, &'static [u8]>,
    messages: [Option<Messages<'t>>; QueueName::ALL.len()],
}

/// A table of messages.
pub(crate) type Messages<'t> = Table<'t, u128, &'static [u8]>;

/// What the queues must hear of once the transaction is on disk.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Messages that can be received.
    pub(crate) sent: Vec<(QueueName, MessageKey)>,
    /// Messages that are held until a time.
    pub(crate) held: Vec<(QueueName, Timestamp, u128)>,
    /// Holds that are over.
    pub(crate) released: Vec<(QueueName, Timestamp, u128)>,
}

/// What stands at a key, as far as a write needs it.
struct Found {
    revision: u64,
    live: bool,
    /// Its entry in the index of expiries.
    index: Option<u128>,
}

/// What a write does once all conditions of its commit hold.
struct Planned {
    key: Vec<u8>,
    /// The new item; `None` removes it.
    value: Option<Vec<u8>>,
    index_before: Option<u128>,
    index_after: Option<u128>,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, Failure> {
        Ok(Self {
            transaction,
            items: transaction.open_table(ITEMS).map_err(redb::Error::from)?,
            expiry: transaction.open_table(EXPIRY).map_err(redb::Error::from)?,
            holds: transaction.open_table(HOLDS).map_err(redb::Error::from)?,
            messages: [None, None, None],
        })
    }

    /// The messages of a queue.
    pub(crate) fn messages(&mut self, queue: QueueName) -> Result<&mut Messages<'t>, Failure> {
        let slot = &mut self.messages[tables::queue_index(queue)];
        match slot {
            Some(table) => Ok(table),
            None => {
                let table = self.transaction.open_table(tables::messages(queue));
                Ok(slot.insert(table.map_err(redb::Error::from)?))
            }
        }
    }

    /// The dead letters of a queue. They are rare, so their table is not kept open.
    pub(crate) fn dead(&self, queue: QueueName) -> Result<Messages<'t>, Failure> {
        Ok(self.transaction.open_table(tables::dead(queue)).map_err(redb::Error::from)?)
    }
}

/// The times of a transaction, and the last number that was given to a message or an entry of an index.
pub(crate) struct Moment<'a> {
    pub(crate) now: Timestamp,
    pub(crate) steady: Timestamp,
    pub(crate) number: &'a mut u64,
}

impl Moment<'_> {
    pub(crate) fn next_key(&mut self, due: Timestamp) -> MessageKey {
        MessageKey::new(due, self.next_number())
    }

    fn next_number(&mut self) -> u64 {
        *self.number += 1;
        *self.number
    }
}

/// Does a commit, or finds that it is lost, which changes nothing. The outer error ends the whole transaction, the
/// inner one this commit.
pub(crate) fn apply(
    tables: &mut Tables<'_>,
    commit: &Commit,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<Result<Committed, Outage>, Failure> {
    let mut planned = Vec::with_capacity(commit.writes.len());
    for (index, write) in commit.writes.iter().enumerate() {
        match plan(tables, write, moment)? {
            Ok(Ok(plan)) => planned.push(plan),
            Ok(Err(found)) => return Ok(Ok(Committed::Lost { index, found })),
            Err(outage) => return Ok(Err(outage)),
        }
    }
    for plan in planned {
        carry_out(tables, plan)?;
    }
    send(tables, commit, moment, effects)?;
    Ok(Ok(Committed::Done))
}

/// Does a count, or finds that a counter has reached its bound, which changes nothing.
pub(crate) fn count(
    tables: &mut Tables<'_>,
    count: &Count,
    moment: &mut Moment<'_>,
) -> Result<Result<Counted, Outage>, Failure> {
    let key = item::encode_key(&count.key);
    let found = {
        let guard = tables.items.get(key.as_slice()).map_err(redb::Error::from)?;
        let stored = guard.as_ref().map(|guard| Stored::read(guard.value()));
        match stored {
            Some(Some(stored)) if stored.is_live(moment.now) => stored.item(),
            Some(None) => None,
            None | Some(Some(_)) => Some(tally(None, &[], &[])),
        }
    };
    let Some(found) = found else { return Ok(Err(broken_item())) };
    if !count.fits(&found.counters) {
        return Ok(Ok(Counted::Refused(found.counters)));
    }
    let plan = match plan(tables, &count.tally(), moment)? {
        Ok(plan) => plan.expect("a tally has no condition"),
        Err(outage) => return Ok(Err(outage)),
    };
    let value = plan.value.as_deref().and_then(Stored::read).and_then(|stored| stored.item());
    let counters = value.expect("what was just encoded can be read").counters;
    carry_out(tables, plan)?;
    Ok(Ok(Counted::Done(counters)))
}

/// What a write will do; the inner error is what stands there where its condition does not hold.
type Plan = Result<Result<Planned, Option<Item>>, Outage>;

fn plan(tables: &Tables<'_>, write: &Write, moment: &mut Moment<'_>) -> Result<Plan, Failure> {
    let key = item::encode_key(write.key());
    let guard = tables.items.get(key.as_slice()).map_err(redb::Error::from)?;
    let stored = match &guard {
        None => None,
        Some(guard) => match Stored::read(guard.value()) {
            Some(stored) => Some(stored),
            None => return Ok(Err(broken_item())),
        },
    };
    let live = stored.filter(|stored| stored.is_live(moment.now));
    let live_item = || live.map(|stored| stored.item().ok_or_else(broken_item)).transpose();
    let found = Found {
        revision: live.map_or(0, |stored| stored.revision),
        live: live.is_some(),
        index: stored.and_then(|stored| {
            let hour = tables::expiry_hour(stored.expires_at()?);
            Some(tables::expiry_key(hour, stored.entry))
        }),
    };
    if let Write::Put { when, .. } | Write::Delete { when, .. } = write
        && !found.satisfies(*when)
    {
        return Ok(live_item().map(Err));
    }
    let revision = found.revision + 1;
    let (index, entry) = found.index_until(write.expires_at(), moment);
    let encode = |counters: &_, data: &[u8]| {
        item::encode(revision, write.expires_at(), entry, counters, data)
    };
    let value = match write {
        Write::Delete { .. } => None,
        Write::Put { data, .. } => Some(encode(&Default::default(), data)),
        Write::Tally { key, data, add, .. } => {
            let item = match live_item() {
                Ok(old) => tally(old, data, add),
                Err(outage) => return Ok(Err(outage)),
            };
            let size = item_bytes(key, &item.data, item.counters.keys());
            if ITEM_BYTES_MAX < size {
                return Ok(Err(Outage::new(format!(
                    "a tally makes an item of {size} bytes, at most {ITEM_BYTES_MAX} are possible"
                ))));
            }
            Some(encode(&item.counters, &item.data))
        }
    };
    drop(guard);
    Ok(Ok(Ok(Planned { key, value, index_before: found.index, index_after: index })))
}

fn tally(old: Option<Item>, data: &[u8], add: &[(String, i128)]) -> Item {
    let mut item = old.unwrap_or_else(|| Item {
        data: data.to_vec(),
        counters: Default::default(),
        revision: 0,
        expires_at: None,
    });
    for (name, amount) in add {
        let counter = item.counters.entry(name.clone()).or_default();
        *counter = counter.saturating_add(*amount).clamp(-COUNTER_MAX, COUNTER_MAX);
    }
    item
}

fn broken_item() -> Outage {
    Outage::new("an item of the store cannot be read")
}

impl Found {
    fn satisfies(&self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Absent => !self.live,
            When::Present => self.live,
            When::Revision(revision) => self.live && self.revision == revision,
        }
    }

    /// The entry of the index once the item expires at `expires_at`: the one it has, as long as that is in the same
    /// hour. The second is its number.
    fn index_until(
        &self,
        expires_at: Option<Timestamp>,
        moment: &mut Moment<'_>,
    ) -> (Option<u128>, u64) {
        let Some(expires_at) = expires_at else { return (None, 0) };
        let hour = tables::expiry_hour(expires_at);
        if let Some(index) = self.index
            && tables::expiry_hour_of(index) == hour
        {
            return (Some(index), tables::expiry_entry_of(index));
        }
        let entry = moment.next_number();
        (Some(tables::expiry_key(hour, entry)), entry)
    }
}

fn carry_out(tables: &mut Tables<'_>, plan: Planned) -> Result<(), Failure> {
    let Planned { key, value, index_before, index_after } = plan;
    match &value {
        Some(value) => tables.items.insert(key.as_slice(), value.as_slice()).map(drop),
        None => tables.items.remove(key.as_slice()).map(drop),
    }
    .map_err(redb::Error::from)?;
    if index_before == index_after {
        return Ok(());
    }
    if let Some(index) = index_before {
        tables.expiry.remove(index).map_err(redb::Error::from)?;
    }
    if let Some(index) = index_after {
        tables.expiry.insert(index, key.as_slice()).map_err(redb::Error::from)?;
    }
    Ok(())
}

fn send(
    tables: &mut Tables<'_>,
    commit: &Commit,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<(), Failure> {
    for send in &commit.sends {
        let key = moment.next_key(moment.steady.plus(send.delay));
        let value = encode_message(0, send.body.as_bytes());
        let messages = tables.messages(send.queue)?;
        messages.insert(key.0, value.as_slice()).map_err(redb::Error::from)?;
        effects.sent.push((send.queue, key));
    }
    for hold in &commit.holds {
        let due = moment.steady.plus(hold.send.delay);
        let value = encode_hold(hold.send.queue, due, hold.send.body.as_bytes());
        let id = hold.id.as_u128();
        tables.holds.insert(id, value.as_slice()).map_err(redb::Error::from)?;
        effects.held.push((hold.send.queue, due, id));
    }
    for id in &commit.released {
        if let Some((queue, due)) = take_hold(tables, *id)? {
            effects.released.push((queue, due, id.as_u128()));
        }
    }
    Ok(())
}

fn take_hold(tables: &mut Tables<'_>, id: Uuid) -> Result<Option<(QueueName, Timestamp)>, Failure> {
    let guard = tables.holds.remove(id.as_u128()).map_err(redb::Error::from)?;
    let hold = guard.as_ref().and_then(|guard| tables::decode_hold(guard.value()));
    Ok(hold.map(|(queue, due, _)| (queue, due)))
}

/// Makes an ordinary message, due now, of a held one, if it is still held.
pub(crate) fn convert_hold(
    tables: &mut Tables<'_>,
    id: u128,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<(), Failure> {
    let value = {
        let guard = tables.holds.remove(id).map_err(redb::Error::from)?;
        guard.map(|guard| guard.value().to_vec())
    };
    let Some((queue, due, body)) = value.as_deref().and_then(tables::decode_hold) else {
        return Ok(());
    };
    let key = moment.next_key(moment.steady);
    let messages = tables.messages(queue)?;
    messages.insert(key.0, encode_message(0, body).as_slice()).map_err(redb::Error::from)?;
    effects.sent.push((queue, key));
    effects.released.push((queue, due, id));
    Ok(())
}

/// Brings messages nearer that are due later than any delay allows: the clock was ahead when they were sent.
pub(crate) fn clamp_delays(
    tables: &mut Tables<'_>,
    queue: QueueName,
    moment: &mut Moment<'_>,
) -> Result<(), Failure> {
    let latest = moment.steady.plus(QUEUE_DELAY_MAX);
    loop {
        let messages = tables.messages(queue)?;
        let last = messages.last().map_err(redb::Error::from)?;
        let late = last.filter(|(key, _)| latest < MessageKey(key.value()).due());
        let Some((key, value)) =
            late.map(|(key, value)| (MessageKey(key.value()), value.value().to_vec()))
        else {
            return Ok(());
        };
        let nearer = moment.next_key(latest);
        messages.remove(key.0).map_err(redb::Error::from)?;
        messages.insert(nearer.0, value.as_slice()).map_err(redb::Error::from)?;
    }
}

/// Removes up to `limit` items that expired, and says how many index entries it went through.
pub(crate) fn sweep(
    tables: &mut Tables<'_>,
    now: Timestamp,
    limit: usize,
) -> Result<usize, Failure> {
    // An hour is over when the next one has begun.
    let end = tables::expiry_key(tables::expiry_hour(now), 0);
    let mut due: Vec<(u128, Vec<u8>)> = Vec::new();
    for entry in tables.expiry.range(..end).map_err(redb::Error::from)?.take(limit) {
        let (index, key) = entry.map_err(redb::Error::from)?;
        due.push((index.value(), key.value().to_vec()));
    }
    for (index, key) in &due {
        tables.expiry.remove(index).map_err(redb::Error::from)?;
        let is_expired = {
            let guard = tables.items.get(key.as_slice()).map_err(redb::Error::from)?;
            let stored = guard.as_ref().and_then(|guard| Stored::read(guard.value()));
            stored.is_some_and(|stored| !stored.is_live(now))
        };
        if is_expired {
            tables.items.remove(key.as_slice()).map_err(redb::Error::from)?;
        }
    }
    Ok(due.len())
}
