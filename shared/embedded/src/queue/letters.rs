//! What an operator sees of a queue: its depth, its dead letters, and their way back.

use annex_core::ports::{DeadLetter, DeadLetters, Outage, QueueName};
use async_trait::async_trait;
use redb::{ReadTransaction, ReadableTable as _, ReadableTableMetadata as _, TableError};

use super::consumer::id;
use super::state;
use crate::engine::Failure;
use crate::jobs::Chore;
use crate::store::Embedded;
use crate::tables::{self, MessageKey};

/// Dead letters that are read at a time.
const LETTERS_MAX: usize = 1_000;

/// How many messages of a queue are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Due, and not handed over yet.
    pub ready: u64,
    /// Due later.
    pub delayed: u64,
    /// Handed over.
    pub in_flight: u64,
    /// Held for their senders.
    pub held: u64,
    /// Received too often.
    pub dead: u64,
}

impl Embedded {
    /// How many messages of a queue are in which state. Takes longer the more messages are delayed.
    pub async fn depth(&self, queue: QueueName) -> Result<Depth, Outage> {
        let now = self.shared.clock.steady();
        let count = |view: &ReadTransaction| {
            let counts = self.shared.queue(queue).counts(now);
            let (stored, later) = match state::open(view, queue)? {
                None => (0, 0),
                Some(table) => {
                    let after = MessageKey::last_due(now).after();
                    let later = table.range(after.0..).map_err(redb::Error::from)?.count();
                    (table.len().map_err(redb::Error::from)?, later as u64)
                }
            };
            let dead = match dead(view, queue)? {
                None => 0,
                Some(table) => table.len().map_err(redb::Error::from)?,
            };
            let waiting = stored.saturating_sub(later).saturating_sub(counts.taken as u64);
            Ok(Depth {
                ready: waiting + counts.returning_now as u64,
                delayed: later + counts.returning_later as u64,
                in_flight: counts.in_flight as u64,
                held: counts.held as u64,
                dead,
            })
        };
        self.shared.reading("a queue could not be measured", count).await
    }
}

#[async_trait]
impl DeadLetters for Embedded {
    /// The oldest ones, at most 1,000.
    async fn list(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, Outage> {
        let list = |view: &ReadTransaction| {
            let Some(table) = dead(view, queue)? else { return Ok(Vec::new()) };
            let mut letters = Vec::new();
            for entry in table.iter().map_err(redb::Error::from)?.take(limit.min(LETTERS_MAX)) {
                let (key, value) = entry.map_err(redb::Error::from)?;
                let (receives, body) = tables::decode_message(value.value()).unwrap_or_default();
                letters.push(DeadLetter {
                    id: id(MessageKey(key.value())),
                    body: String::from_utf8_lossy(body).into_owned(),
                    receives: Some(receives),
                });
            }
            Ok(letters)
        };
        self.shared.reading("dead letters could not be read", list).await
    }

    /// Makes ordinary messages of the oldest ones, due now and never received.
    async fn redrive(&self, queue: QueueName, limit: usize) -> Result<usize, Outage> {
        let mut total = 0;
        while total < limit {
            match self.shared.chore(Chore::Redrive { queue, limit: limit - total }).await? {
                0 => break,
                count => total += count,
            }
        }
        Ok(total)
    }
}

fn dead(
    view: &ReadTransaction,
    queue: QueueName,
) -> Result<Option<redb::ReadOnlyTable<u128, &'static [u8]>>, Failure> {
    match view.open_table(tables::dead(queue)) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(failure) => Err(Box::new(failure.into())),
    }
}
