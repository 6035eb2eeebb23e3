//! The store of a world: an adapter, with the queues beside it in plain sight.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use annex_core::ports::{
    Clock, Commit, Committed, Item, Key, Outage, Outgoing, Page, Query, QueueName, Scan, ScanPage,
    Store,
};
use annex_core::time::Timestamp;
use async_trait::async_trait;
use tokio::sync::watch;

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
}

/// When a commit is the process's last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// It never reaches the store.
    Before,
    /// It happens, and nobody is there any more to hear of it.
    After,
}

#[derive(Default)]
struct State {
    numbers: u64,
    queued: BTreeMap<u64, Queued>,
    held: HashMap<uuid::Uuid, u64>,
    in_flight: BTreeMap<u64, Queued>,
    sent: Vec<String>,
    full: bool,
}

/// What outlives a process.
struct Machine {
    items: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// What one process sees of it: passes items to an adapter, keeps messages itself, and dies when told.
pub(crate) struct Tap {
    machine: Arc<Machine>,
    epoch: u64,
    commits: AtomicU64,
    death: Option<(u64, Death)>,
    dead: watch::Sender<bool>,
}

impl Tap {
    pub(crate) fn new(items: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let machine = Machine { items, clock, state: Mutex::default() };
        Self::of(Arc::new(machine), 1, None)
    }

    fn of(machine: Arc<Machine>, epoch: u64, death: Option<(u64, Death)>) -> Self {
        Self { machine, epoch, commits: AtomicU64::new(0), death, dead: watch::Sender::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.machine.state.lock().expect("no holder of the lock panics")
    }

    /// Puts a message into a queue.
    pub(crate) fn send(&self, outgoing: Outgoing) {
        let due = self.machine.clock.steady().plus(outgoing.delay);
        self.state().push(due, outgoing.queue, outgoing.body, 0);
    }

    /// Puts a message back.
    pub(crate) fn put_back(&self, message: Queued, due: Timestamp, receives: u32) {
        let mut state = self.state();
        state.in_flight.remove(&message.number);
        state.push(due, message.queue, message.body, receives);
    }

    /// Forgets a message that was worked on.
    pub(crate) fn finish(&self, message: &Queued) {
        self.state().in_flight.remove(&message.number);
    }

    /// Takes the message that is due first.
    pub(crate) fn take_first(&self) -> Option<Queued> {
        let mut state = self.state();
        let first = state.queued.values().min_by_key(|found| (found.due, found.number))?.number;
        let message = state.queued.remove(&first)?;
        state.in_flight.insert(first, message.clone());
        Some(message)
    }

    /// The bodies of all messages that were sent with commits, in order.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.state().sent.clone()
    }

    /// Commits of this process so far.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The process has died and another one starts, which dies at its commit number `death.0`, counted from 0. What the
    /// first one held comes back, its leases are over, and nothing of it happens any more.
    pub(crate) fn restart(&self, death: Option<(u64, Death)>) -> Self {
        self.dead.send_replace(true);
        let now = self.machine.clock.steady();
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
        drop(state);
        Self::of(Arc::clone(&self.machine), self.epoch + 1, death)
    }

    /// Waits until the process has died.
    pub(crate) async fn died(&self) {
        let mut dead = self.dead.subscribe();
        dead.wait_for(|dead| *dead).await.expect("the sender lives as long as this");
    }

    /// The store refuses writes, or no more.
    pub(crate) fn fill_disk(&self, full: bool) {
        self.state().full = full;
    }

    async fn apply(&self, mut commit: Commit) -> Result<Committed, Outage> {
        let sends = std::mem::take(&mut commit.sends);
        let holds = std::mem::take(&mut commit.holds);
        let released = std::mem::take(&mut commit.released);
        // What the adapter refuses about a message, it refuses of these too.
        annex_core::ports::check(&Commit {
            sends: sends.clone(),
            holds: holds.clone(),
            ..Commit::default()
        })?;
        let done = self.machine.items.commit(commit).await?;
        if done == Committed::Done {
            let now = self.machine.clock.steady();
            let mut state = self.state();
            for out in sends {
                state.sent.push(out.body.clone());
                state.push(now.plus(out.delay), out.queue, out.body, 0);
            }
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

    /// Never comes back once the process is dead.
    async fn alive(&self) {
        if *self.dead.borrow() {
            std::future::pending::<()>().await;
        }
    }

    async fn die(&self) -> Result<Committed, Outage> {
        self.dead.send_replace(true);
        std::future::pending().await
    }
}

impl State {
    fn push(&mut self, due: Timestamp, queue: QueueName, body: String, receives: u32) -> u64 {
        let number = self.numbers;
        self.numbers += 1;
        self.queued.insert(number, Queued { number, due, queue, body, receives });
        number
    }
}

#[async_trait]
impl Store for Tap {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.alive().await;
        self.machine.items.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.alive().await;
        self.machine.items.query(query).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.alive().await;
        self.machine.items.scan(scan).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        self.alive().await;
        if self.state().full {
            return Err(Outage { write_refused: true, ..Outage::new("the disk is full") });
        }
        let number = self.commits.fetch_add(1, Ordering::Relaxed);
        match self.death {
            Some((at, Death::Before)) if at == number => self.die().await,
            Some((at, Death::After)) if at == number => {
                self.apply(commit).await?;
                self.die().await
            }
            _ => self.apply(commit).await,
        }
    }

    fn holds(&self) -> bool {
        true
    }

    fn atomic(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}
