//! Messages: what is sent, what a function gets, and what was given up.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::Outage;

/// The queues of the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueName {
    /// Calls, events and error reports to deliver now.
    Dispatch,
    /// Continuations, slow retries and watches: everything that comes back later.
    Resume,
    /// Usage reports.
    Meter,
}

impl QueueName {
    /// Every queue.
    pub const ALL: &[Self] = &[Self::Dispatch, Self::Resume, Self::Meter];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Resume => "resume",
            Self::Meter => "meter",
        }
    }
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// To which queue.
    pub queue: QueueName,
    /// Its text: at most [`crate::limits::MESSAGE_BYTES_MAX`] bytes.
    pub body: String,
    /// How long nobody sees it: at most [`crate::limits::QUEUE_DELAY_MAX`].
    pub delay: Duration,
}

/// A message that the sender works on itself, in the same process: nobody sees it for `lease`, or until that process
/// is gone. The commit that finishes the work names its `id` in [`super::Commit::released`], and it is gone. On a store that
/// cannot do that in the same commit at no cost, it may be left out ([`super::Store::holds`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Chosen by the sender, unique.
    pub id: Uuid,
    /// What is sent if the work is not finished.
    pub send: Outgoing,
}

/// A message as a function gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Names it in the answer to the batch.
    pub id: String,
    /// Its text.
    pub body: String,
    /// How often it has been received, this time included.
    pub receives: u32,
}

/// A message of a batch that is not done: it comes back, after `retry_after` where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The message's id.
    pub id: String,
    /// When it may come back; `None`: when its visibility ends.
    pub retry_after: Option<Duration>,
    /// Whether this receive counts towards the dead letters. A message that waits for its turn is not at fault.
    pub counts: bool,
}

/// A function that takes batches of messages: what a Lambda behind a queue does, and what the local poller calls.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Works on a batch, message by message, and names those that are not done.
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone>;
}

/// A message that was received [`crate::limits::QUEUE_RECEIVES_MAX`] times and not worked on: a fault of the platform,
/// never of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Names it.
    pub id: String,
    /// Its text.
    pub body: String,
    /// How often it was received, where that is known.
    pub receives: Option<u32>,
}

/// The dead letters of the queues.
///
/// **Contract.** A letter is kept until it is redriven or 14 days have passed. A redriven one is received again like a
/// new message; none is lost, and one may be received twice.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Some of a queue's dead letters, at most `limit`; the rest stays unseen until these are gone.
    async fn list(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, Outage>;
    /// Sends a queue's dead letters back to it, at most `limit`; answers how many. Zero: there was none.
    async fn redrive(&self, queue: QueueName, limit: usize) -> Result<usize, Outage>;
}
