//! What lies in the store file.

use annex_core::ports::QueueName;
use annex_core::time::Timestamp;
use redb::TableDefinition;

use crate::item::VERSION;

/// Items by their keys on disk.
pub(crate) const ITEMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("items");

/// The keys on disk of the items that expire, by the end of the hour in which they do (high half) and a number. The
/// number grows, so that items that are written at about the same time have their entries side by side.
pub(crate) const EXPIRY: TableDefinition<'_, u128, &[u8]> = TableDefinition::new("expiry");

/// Messages held for their sender, by the bits of their id.
pub(crate) const HOLDS: TableDefinition<'_, u128, &[u8]> = TableDefinition::new("holds");

/// Numbers of the store itself.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// In [`META`]: how often the store has been opened.
pub(crate) const EPOCH: &str = "epoch";

/// Messages of a queue, in the order in which they become due.
pub(crate) const fn messages(queue: QueueName) -> TableDefinition<'static, u128, &'static [u8]> {
    TableDefinition::new(match queue {
        QueueName::Dispatch => "messages.dispatch",
        QueueName::Resume => "messages.resume",
        QueueName::Meter => "messages.meter",
    })
}

/// Messages of a queue that were received too often.
pub(crate) const fn dead(queue: QueueName) -> TableDefinition<'static, u128, &'static [u8]> {
    TableDefinition::new(match queue {
        QueueName::Dispatch => "dead.dispatch",
        QueueName::Resume => "dead.resume",
        QueueName::Meter => "dead.meter",
    })
}

/// The number of a queue, as it lies on disk.
pub(crate) const fn queue_index(queue: QueueName) -> usize {
    match queue {
        QueueName::Dispatch => 0,
        QueueName::Resume => 1,
        QueueName::Meter => 2,
    }
}

/// The end of the hour in which an item expires: coarse, so that an item that is written again and again seldom
/// moves in the index.
pub(crate) fn expiry_hour(expires_at: Timestamp) -> u64 {
    u64::try_from(expires_at.millis()).unwrap_or(0) / 3_600_000 + 1
}

/// A key of [`EXPIRY`].
pub(crate) fn expiry_key(hour: u64, entry: u64) -> u128 {
    (u128::from(hour) << 64) | u128::from(entry)
}

/// The hour of a key of [`EXPIRY`].
pub(crate) fn expiry_hour_of(key: u128) -> u64 {
    u64::try_from(key >> 64).expect("the upper half of 128 bits has 64")
}

/// The number of a key of [`EXPIRY`].
pub(crate) fn expiry_entry_of(key: u128) -> u64 {
    u64::try_from(key & u128::from(u64::MAX)).expect("masked to 64 bits")
}

/// Where a message lies: when it becomes due (steady milliseconds, high half), and its number among all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MessageKey(pub(crate) u128);

impl MessageKey {
    /// Before all others.
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) fn new(due: Timestamp, number: u64) -> Self {
        let due = u64::try_from(due.millis()).unwrap_or(0);
        Self((u128::from(due) << 64) | u128::from(number))
    }

    /// The last one that is due at a time.
    pub(crate) fn last_due(at: Timestamp) -> Self {
        Self::new(at, u64::MAX)
    }

    /// The next key.
    pub(crate) fn after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(crate) fn due(self) -> Timestamp {
        let due = u64::try_from(self.0 >> 64).expect("the upper half of 128 bits has 64");
        Timestamp::from_millis(i64::try_from(due).unwrap_or(i64::MAX))
    }

    /// The number among all messages: the epoch in which it was sent, and a count in it.
    pub(crate) fn number(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX)).expect("masked to 64 bits")
    }
}

/// Messages of one epoch; more than a process can send.
const NUMBERS_PER_EPOCH: u64 = 1 << 40;

/// The first message number of an epoch.
pub(crate) fn first_number(epoch: u64) -> u64 {
    epoch.saturating_mul(NUMBERS_PER_EPOCH)
}

/// A message as it lies on disk: a version byte, how often it was received, and its text.
pub(crate) fn encode_message(receives: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(5 + body.len());
    out.push(VERSION);
    out.extend_from_slice(&receives.to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// How often a message was received, and its text.
pub(crate) fn decode_message(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&version, bytes) = bytes.split_first()?;
    let (receives, body) = bytes.split_first_chunk()?;
    (version == VERSION).then_some((u32::from_le_bytes(*receives), body))
}

/// A held message as it lies on disk: a version byte, its queue, the end of its lease, and its text.
pub(crate) fn encode_hold(queue: QueueName, due: Timestamp, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(10 + body.len());
    out.push(VERSION);
    out.push(u8::try_from(queue_index(queue)).expect("there are a handful of queues"));
    out.extend_from_slice(&due.millis().to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// The queue of a held message, the end of its lease, and its text.
pub(crate) fn decode_hold(bytes: &[u8]) -> Option<(QueueName, Timestamp, &[u8])> {
    let (&[version, queue], bytes) = bytes.split_first_chunk()?;
    let (due, body) = bytes.split_first_chunk()?;
    let queue = *QueueName::ALL.get(usize::from(queue))?;
    let due = Timestamp::from_millis(i64::from_le_bytes(*due));
    (version == VERSION).then_some((queue, due, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_ordered_by_due_time_and_then_by_number() {
        let key = |due, number| MessageKey::new(Timestamp::from_millis(due), number);
        let ordered = [key(-5, 9), key(1, 2), key(1, 3), key(2, 0)];
        assert!(ordered.is_sorted());
        assert_eq!(key(1, 2).due(), Timestamp::from_millis(1));
        assert_eq!(key(1, 2).number(), 2);
        assert!(key(1, 3) < MessageKey::last_due(Timestamp::from_millis(1)));
    }

    #[test]
    fn messages_and_holds_are_read_as_they_were_written_and_broken_ones_are_none() {
        let message = encode_message(3, b"body");
        assert_eq!(decode_message(&message), Some((3, &b"body"[..])));
        assert_eq!(decode_message(&message[..4]), None);
        for (index, &queue) in QueueName::ALL.iter().enumerate() {
            assert_eq!(queue_index(queue), index);
            let hold = encode_hold(queue, Timestamp::from_millis(7), b"body");
            assert_eq!(decode_hold(&hold), Some((queue, Timestamp::from_millis(7), &b"body"[..])));
            assert_eq!(decode_hold(&hold[..9]), None);
        }
    }
}
