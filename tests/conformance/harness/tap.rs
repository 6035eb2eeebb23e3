//! The store and the blobs of a process: adapters, with the queues beside them in plain sight.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use annex_core::limits::QUEUE_BATCH_MAX;
use annex_core::ports::{
    Blobs, Clock, Commit, Committed, Count, Counted, Item, Key, Outage, Outgoing, Page, Query,
    QueueName, Scan, ScanPage, Store,
};
use annex_core::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;

use super::disorder::Disorder;
use super::ended::Ended;
use super::gate::{Gate, Life};

/// A message in a queue.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    /// Orders messages that are due at the same time.
    pub(crate) number: u64,
    /// When it may be received, on the steady clock.
    pub(crate) due: Timestamp,
    /// Where it lies.
    pub(crate) queue: QueueName,
    /// Its text.
    pub(crate) body: String,
    /// Receives that counted.
    pub(crate) receives: u32,
    /// Whether it comes once more after it was worked on.
    pub(crate) again: bool,
}

#[derive(Default)]
struct State {
    numbers: u64,
    queued: BTreeMap<u64, Queued>,
    held: HashMap<uuid::Uuid, u64>,
    in_flight: BTreeMap<u64, Queued>,
    sent: Vec<String>,
    full: bool,
    disorder: Disorder,
    ended: Ended,
}

/// What outlives a process.
pub(crate) struct Machine {
    clock: Arc<dyn Clock>,
    gate: Arc<Gate>,
    /// Whether writes and sends are one step, and what a dead process held comes back at once.
    atomic: bool,
    state: Mutex<State>,
}

impl Machine {
    pub(crate) fn new(clock: Arc<dyn Clock>, gate: Arc<Gate>, atomic: bool) -> Self {
        Self { clock, gate, atomic, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// How messages are delivered from now on.
    pub(crate) fn disorder(&self, disorder: Disorder) {
        self.state().disorder = disorder;
    }

    /// Puts a message into a queue.
    pub(crate) fn send(&self, out: Outgoing) {
        let now = self.clock.steady();
        let mut state = self.state();
        for copy in 0..state.disorder.copies() {
            let due = now.plus(out.delay).plus(state.disorder.delay());
            let number = state.push(due, out.queue, out.body.clone(), 0);
            let again = copy == 0 && state.disorder.again();
            if let Some(message) = state.queued.get_mut(&number) {
                message.again = again;
            }
        }
    }

    /// Puts a message back.
    pub(crate) fn put_back(&self, message: Queued, due: Timestamp, receives: u32) {
        let mut state = self.state();
        state.in_flight.remove(&message.number);
        let number = state.push(due, message.queue, message.body, receives);
        if let Some(back) = state.queued.get_mut(&number) {
            back.again = message.again;
        }
    }

    /// Forgets a message that was worked on.
    pub(crate) fn finish(&self, message: &Queued) {
        let now = self.clock.steady();
        let mut state = self.state();
        state.in_flight.remove(&message.number);
        if message.again {
            let due = now.plus(std::time::Duration::from_secs(1));
            state.push(due, message.queue, message.body.clone(), 0);
        }
    }

    /// Takes the message that is next.
    pub(crate) fn take_first(&self) -> Option<Queued> {
        let mut state = self.state();
        let State { queued, disorder, .. } = &mut *state;
        let first = disorder.next(queued)?;
        let message = queued.remove(&first)?;
        state.in_flight.insert(first, message.clone());
        Some(message)
    }

    /// The bodies of all messages that were sent with commits, in order.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.state().sent.clone()
    }

    /// The store refuses writes, or no more.
    pub(crate) fn fill_disk(&self, full: bool) {
        self.state().full = full;
    }

    /// What came of the invocations, as far as it was written here.
    pub(crate) fn ended(&self) -> Ended {
        self.state().ended.clone()
    }

    /// A process of one machine has died: what it held comes back at once.
    pub(crate) fn died(&self) {
        if !self.atomic {
            return;
        }
        let now = self.clock.steady();
        let mut state = self.state();
        let held: Vec<u64> = state.held.drain().map(|(_, number)| number).collect();
        for number in held {
            if let Some(message) = state.queued.get_mut(&number) {
                message.due = now;
            }
        }
        for (_, message) in std::mem::take(&mut state.in_flight) {
            state.push(now, message.queue, message.body, message.receives + 1);
        }
    }

    fn deliver(&self, sends: Vec<Outgoing>) {
        for out in sends {
            self.state().sent.push(out.body.clone());
            self.send(out);
        }
    }
}

impl State {
    fn push(&mut self, due: Timestamp, queue: QueueName, body: String, receives: u32) -> u64 {
        let number = self.numbers;
        self.numbers += 1;
        let message = Queued { number, due, queue, body, receives, again: false };
        self.queued.insert(number, message);
        number
    }
}

/// What one process sees of it: passes items to an adapter and keeps messages itself.
pub(crate) struct Tap {
    pub(crate) machine: Arc<Machine>,
    pub(crate) life: Life,
    pub(crate) items: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    /// Whether the calls of the adapters are counted where they leave the process instead.
    pub(crate) wired: bool,
    pub(crate) epoch: u64,
}

impl Tap {
    /// A call of the adapter.
    async fn call<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Outage>> + Send,
    ) -> Result<T, Outage> {
        if self.wired {
            self.life.goes_on().await;
            return call.await;
        }
        self.machine.gate.pass(&self.life, what, call).await
    }

    async fn write(&self, commit: Commit) -> Result<Committed, Outage> {
        let writes = commit.writes.clone();
        let done = self.items.commit(commit).await?;
        if done == Committed::Done {
            self.machine.state().ended.note(&writes);
        }
        Ok(done)
    }

    /// Writes and messages in one step.
    async fn at_once(&self, mut commit: Commit) -> Result<Committed, Outage> {
        let sends = std::mem::take(&mut commit.sends);
        let holds = std::mem::take(&mut commit.holds);
        let released = std::mem::take(&mut commit.released);
        let done = self.write(commit).await?;
        if done == Committed::Done {
            self.machine.deliver(sends);
            let now = self.machine.clock.steady();
            let mut state = self.machine.state();
            for hold in holds {
                let out = hold.send;
                let number = state.push(now.plus(out.delay), out.queue, out.body, 0);
                state.held.insert(hold.id, number);
            }
            for id in released {
                if let Some(number) = state.held.remove(&id) {
                    state.queued.remove(&number);
                }
            }
        }
        Ok(done)
    }

    /// Writes, and then messages, a batch of one queue at a time.
    async fn in_steps(&self, commit: Commit) -> Result<Committed, Outage> {
        if !commit.writes.is_empty() {
            let writes = Commit { writes: commit.writes, ..Commit::default() };
            let done = self.call("write", self.write(writes)).await?;
            if done != Committed::Done {
                return Ok(done);
            }
        }
        let mut queues: BTreeMap<QueueName, Vec<Outgoing>> = BTreeMap::new();
        for out in commit.sends {
            queues.entry(out.queue).or_default().push(out);
        }
        for batch in queues.values().flat_map(|sends| sends.chunks(QUEUE_BATCH_MAX)) {
            let send = async {
                self.machine.deliver(batch.to_vec());
                Ok(())
            };
            self.machine.gate.pass(&self.life, "send", send).await?;
        }
        Ok(Committed::Done)
    }
}

#[async_trait]
impl Store for Tap {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.call("get", self.items.get(key)).await
    }

    async fn recent(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.call("recent", self.items.recent(key)).await
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.call("query", self.items.query(query)).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.call("scan", self.items.scan(scan)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        self.life.goes_on().await;
        if self.machine.state().full {
            return Err(Outage { write_refused: true, ..Outage::new("the disk is full") });
        }
        // What an adapter refuses about a commit, it refuses of messages that never get there too.
        annex_core::ports::check(&commit)?;
        if self.machine.atomic {
            self.call("commit", self.at_once(commit)).await
        } else {
            self.in_steps(commit).await
        }
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        self.life.goes_on().await;
        if self.machine.state().full {
            return Err(Outage { write_refused: true, ..Outage::new("the disk is full") });
        }
        self.call("count", self.items.count(count)).await
    }

    fn holds(&self) -> bool {
        self.machine.atomic
    }

    fn atomic(&self) -> bool {
        self.machine.atomic
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[async_trait]
impl Blobs for Tap {
    async fn put(&self, key: &str, bytes: Bytes, expires_at: Timestamp) -> Result<(), Outage> {
        self.call("put blob", self.blobs.put(key, bytes, expires_at)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, Outage> {
        self.call("get blob", self.blobs.get(key)).await
    }

    async fn delete(&self, key: &str) -> Result<(), Outage> {
        self.call("delete blob", self.blobs.delete(key)).await
    }
}
