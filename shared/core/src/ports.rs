//! The traits through which the core reaches the outside.
//!
//! A port speaks our words, says an ordinary lost race with a value, and keeps `Err` for a broken outside world.
//! Each port's promises stand on its trait and are checked for every adapter by a suite in `testkit`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::time::Timestamp;

mod check;
mod count;
mod outbound;
mod queue;

pub use self::check::{check, check_count, check_key, check_query, check_scan, item_bytes};
pub use self::count::{Count, Counted};
pub use self::outbound::{Outbound, SendFault, WebhookAnswer, WebhookRequest};
pub use self::queue::{
    DeadLetter, DeadLetters, Handler, Hold, Message, Outgoing, QueueName, Undone,
};

/// The outside world is broken: a disk, a service, a limit of it. The text is for the log, never for a caller.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Outage {
    /// What was tried, and what came of it.
    pub what: String,
    /// Where it came from.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Whether nothing can be written at the moment, while reading still works (a full disk).
    pub write_refused: bool,
}

impl Outage {
    /// An outage without a cause of its own.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None, write_refused: false }
    }

    /// An outage with its cause.
    pub fn caused(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { what: what.into(), source: Some(source.into()), write_refused: false }
    }
}

/// Where an item lies: items of one partition are ordered by their sort key, byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key: 1 to 2,048 bytes.
    pub partition: String,
    /// Sort key: 1 to 1,024 bytes.
    pub sort: String,
}

impl Key {
    /// A key of both parts.
    pub fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { partition: partition.into(), sort: sort.into() }
    }
}

/// A live item of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What was put; opaque to the store.
    pub data: Vec<u8>,
    /// Its counters, by name. A counter never overflows: it stops at 38 decimal digits.
    pub counters: BTreeMap<String, i128>,
    /// Grows with every write of the item; starts at 1.
    pub revision: u64,
    /// From when on it is absent.
    pub expires_at: Option<Timestamp>,
}

/// What must hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing.
    Always,
    /// There is no live item.
    Absent,
    /// There is a live item.
    Present,
    /// There is a live item of just this revision.
    Revision(u64),
}

/// One write of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Puts `data`, and drops the counters of what stood there.
    Put {
        /// Where.
        key: Key,
        /// What.
        data: Vec<u8>,
        /// From when on it is absent; `None` keeps it.
        expires_at: Option<Timestamp>,
        /// Under which condition.
        when: When,
    },
    /// Removes the item. Removing what is absent is fine unless the condition says otherwise.
    Delete {
        /// Where.
        key: Key,
        /// Under which condition.
        when: When,
    },
    /// Creates the item with `data` unless a live one stands there, adds to its counters, and moves its expiry.
    /// It has no condition, so it never fails a commit.
    Tally {
        /// Where.
        key: Key,
        /// What a new item holds; what stands there stays.
        data: Vec<u8>,
        /// What is added to which counter.
        add: Vec<(String, i128)>,
        /// The new expiry.
        expires_at: Option<Timestamp>,
    },
}

/// What happens together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// At most [`crate::limits::COMMIT_WRITES_MAX`], of different keys.
    pub writes: Vec<Write>,
    /// Messages to send.
    pub sends: Vec<Outgoing>,
    /// Messages held for the sender.
    pub holds: Vec<Hold>,
    /// Ids of held messages that are not needed any more.
    pub released: Vec<Uuid>,
}

/// How a commit came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// All of it happened.
    Done,
    /// Nothing of it happened: the condition of the write at `index` does not hold. This is what stands there.
    Lost {
        /// Which write.
        index: usize,
        /// The live item at its key.
        found: Option<Item>,
    },
}

/// Which items a query reads: those of one partition whose sort key is in `from..to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The partition.
    pub partition: String,
    /// First sort key, included; for the next page of a forward query, the cursor.
    pub from: String,
    /// End of the range, excluded; empty: no end. For the next page of a backward query, the cursor.
    pub to: String,
    /// Items of this page, at most [`crate::limits::PAGE_ITEMS_MAX`].
    pub limit: usize,
    /// From the end to the start.
    pub backward: bool,
}

impl Query {
    /// All items of a partition whose sort key starts with `prefix`, in order.
    pub fn prefix(partition: impl Into<String>, prefix: &str) -> Self {
        Self {
            partition: partition.into(),
            from: prefix.to_owned(),
            to: after_prefix(prefix),
            limit: crate::limits::PAGE_ITEMS_MAX,
            backward: false,
        }
    }
}

/// The first text that sorts after everything that starts with `prefix`; empty where there is none.
fn after_prefix(prefix: &str) -> String {
    // Sort keys are ASCII where they are queried by prefix, so the last character can be raised.
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = char::from_u32(u32::from(last) + 1) {
            text.push(next);
            return text;
        }
    }
    text
}

/// A page of a query. It may be shorter than asked for, even empty, while there is more: only `next` tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Sort keys and items, in the order asked for.
    pub items: Vec<(String, Item)>,
    /// Where to go on: the new `from` of a forward query, the new `to` of a backward one. `None`: that was all.
    pub next: Option<String>,
}

/// Which items a scan reads: those whose partition key starts with `prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Start of the partition keys; at least one byte.
    pub prefix: String,
    /// Where to go on: [`ScanPage::next`] of the page before.
    pub cursor: Option<String>,
    /// Items of this page, at most [`crate::limits::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

impl Scan {
    /// The first page of everything whose partition key starts with `prefix`.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), cursor: None, limit: crate::limits::PAGE_ITEMS_MAX }
    }
}

/// A page of a scan. It may be shorter than asked for, even empty, while there is more: only `next` tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanPage {
    /// Keys and items, in an order of the store's own. What stands there during the whole scan is in it once.
    pub items: Vec<(Key, Item)>,
    /// Cursor of the next page, opaque; `None`: that was all.
    pub next: Option<String>,
}

/// Items under (partition, sort) keys, and the messages that leave with them.
///
/// Every adapter refuses what [`check`] and [`check_count`] refuse, with an [`Outage`], whatever its own store would take.
///
/// **Contract.** An expired item is absent to every method, whether or not it has been removed. Of two writers under
/// one condition at most one is done. A commit happens whole or not at all as far as its writes go; its sends happen
/// when its writes did, at least once, and where [`Store::atomic`] is true in the same step. What `commit` answered
/// [`Committed::Done`] to survives the death of the process at any moment.
#[async_trait]
pub trait Store: Send + Sync {
    /// The live item at `key`.
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage>;

    /// The live item at `key`, or what it was at most [`crate::limits::RECENT_MAX`] ago: for what every call reads and
    /// few change. A store whose reads cost nothing answers what stands there now.
    async fn recent(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.get(key).await
    }

    /// Reads many items at once, so that [`Store::recent`] has them. Which of them it then has is the store's own affair:
    /// one whose reads cost nothing reads nothing ahead.
    async fn read_ahead(&self, keys: &[Key]) -> Result<(), Outage> {
        keys.iter().try_for_each(check_key)
    }

    /// The live items of a range, in order.
    async fn query(&self, query: Query) -> Result<Page, Outage>;

    /// The live items of every partition whose key starts with a prefix, a page at a time: for the export and the
    /// deletion of a tenant. It may read the whole store.
    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage>;

    /// Writes and sends, together.
    async fn commit(&self, commit: Commit) -> Result<Committed, Outage>;

    /// Writes and sends, for messages that do no harm when they are sent twice, or without the writes. Where both are
    /// not one step, the messages go first: a process that dies in between leaves work that is done again, and not work
    /// whose messages are lost.
    async fn send_and_commit(&self, mut commit: Commit) -> Result<Committed, Outage> {
        if !self.atomic() && !commit.sends.is_empty() && !commit.writes.is_empty() {
            let sends = std::mem::take(&mut commit.sends);
            self.commit(Commit { sends, ..Commit::default() }).await?;
        }
        self.commit(commit).await
    }

    /// Adds to counters of one item, or finds that one of them has reached its bound: one request, whatever comes of it.
    /// What it answered [`Counted::Done`] to survives as a commit does; after an outage it may have been added or not.
    async fn count(&self, count: Count) -> Result<Counted, Outage>;

    /// Whether [`Commit::holds`] are kept. Where not, they are ignored.
    fn holds(&self) -> bool;

    /// Whether writes and sends are one step.
    fn atomic(&self) -> bool;

    /// Grows each time the owner of leases starts anew. A lease of an earlier epoch is over: its owner is gone.
    fn epoch(&self) -> u64;
}

/// Larger payloads than an item holds.
///
/// **Contract.** What was put under a key is what `get` answers, byte for byte, until it expires; a second put of a
/// key replaces the first whole.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps `bytes` under `key` at least until `expires_at`.
    async fn put(&self, key: &str, bytes: Bytes, expires_at: Timestamp) -> Result<(), Outage>;
    /// What is kept under `key`.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, Outage>;
    /// Forgets `key`.
    async fn delete(&self, key: &str) -> Result<(), Outage>;
}

/// A key of 256 bits.
pub type SymmetricKey = Zeroizing<[u8; 32]>;

/// What a key is for. Keys of different uses are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyUse {
    /// Sealing secrets at rest.
    Seal,
    /// Signing tokens.
    Token,
    /// Hashing API keys, so that a stolen store does not give them away.
    ApiKey,
}

/// Keys by id, with rotation: the newest seals and signs, the older ones still open and verify.
pub trait Keyring: Send + Sync {
    /// The id of the newest key.
    fn current(&self) -> u32;
    /// The ids of all keys, in order.
    fn key_ids(&self) -> Vec<u32>;
    /// The key of this id for this use.
    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey>;
    /// Whether this text is the operator's sign-in secret. Takes the same time whatever differs.
    fn is_operator(&self, secret: &str) -> bool;
}

/// The newest key of a ring, and its id.
pub fn newest(keyring: &dyn Keyring, usage: KeyUse) -> (u32, SymmetricKey) {
    loop {
        let id = keyring.current();
        // A ring always has its current key; that there is none means that it was replaced just now.
        if let Some(key) = keyring.key(id, usage) {
            return (id, key);
        }
    }
}

/// Time. A wall clock may jump; the steady one never does.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The wall clock: what records, tokens and calendars go by.
    fn now(&self) -> Timestamp;
    /// A clock that never jumps while the process lives, near the wall clock at its start: what leases and delays go by.
    fn steady(&self) -> Timestamp;
    /// Waits, on the steady clock.
    async fn sleep(&self, duration: Duration);
}

/// Ids and random numbers.
pub trait Ids: Send + Sync {
    /// A new id, ordered by time (UUID version 7).
    fn uuid(&self) -> Uuid;
    /// 64 random bits.
    fn random(&self) -> u64;
    /// 256 random bits that nobody can guess, for keys and tags.
    fn secret(&self) -> [u8; 32];
}

/// Everything the core reaches the outside through.
#[derive(Clone)]
pub struct Ports {
    /// Items and messages.
    pub store: Arc<dyn Store>,
    /// Messages that were given up.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// Larger payloads.
    pub blobs: Arc<dyn Blobs>,
    /// Keys.
    pub keyring: Arc<dyn Keyring>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// The way out.
    pub outbound: Arc<dyn Outbound>,
}
