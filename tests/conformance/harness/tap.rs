//! The store of a world: an adapter, with the queues beside it in plain sight.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use annex_core::ports::{
    Clock, Commit, Committed, Item, Key, Outage, Outgoing, Page, Query, QueueName, Store,
};
use annex_core::time::Timestamp;
use async_trait::async_trait;

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
    commits: u64,
    death: Option<(u64, Death)>,
    dead: bool,
    full: bool,
    epoch: u64,
}

/// Passes items to an adapter, keeps messages itself, and dies when told.
pub(crate) struct Tap {
    items: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Tap {
    pub(crate) fn new(items: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { items, clock, state: Mutex::new(State { epoch: 1, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Puts a message into a queue.
    pub(crate) fn send(&self, outgoing: Outgoing) {
        let due = self.clock.steady().plus(outgoing.delay);
        self.state().push(due, outgoing.queue, outgoing.body, 0);
    }

    /// Puts a message back.
    pub(crate) fn put_back(&self, message: Queued, due: Timestamp, receives: u32) {
        self.state().push(due, message.queue, message.body, receives);
    }

    /// Takes the message that is due first.
    pub(crate) fn take_first(&self) -> Option<Queued> {
        let mut state = self.state();
        let first = state.queued.values().min_by_key(|found| (found.due, found.number))?.number;
        state.queued.remove(&first)
    }

    /// The process has died and another one starts: what it held comes back, leases are over.
    pub(crate) fn restart(&self) {
        let now = self.clock.steady();
        let mut state = self.state();
        let held: Vec<u64> = state.held.drain().map(|(_, number)| number).collect();
        for number in held {
            if let Some(message) = state.queued.get_mut(&number) {
                message.due = now;
            }
        }
        (state.dead, state.death) = (false, None);
        state.epoch += 1;
    }

    /// Dies at commit number `at`, counted from 0 from now on.
    pub(crate) fn die_at(&self, at: u64, death: Death) {
        let mut state = self.state();
        state.commits = 0;
        state.death = Some((at, death));
    }

    /// Whether the process has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// The store refuses writes, or no more.
    pub(crate) fn fill_disk(&self, full: bool) {
        self.state().full = full;
    }

    /// What is to become of the next commit; a dead process never hears of it.
    fn next_commit(&self) -> Result<Option<Death>, Outage> {
        let mut state = self.state();
        if state.full {
            return Err(Outage { write_refused: true, ..Outage::new("the disk is full") });
        }
        let number = state.commits;
        state.commits += 1;
        let death = state.death.filter(|(at, _)| *at == number).map(|(_, death)| death);
        if death.is_some() {
            state.dead = true;
        }
        Ok(death)
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
        let done = self.items.commit(commit).await?;
        if done == Committed::Done {
            let now = self.clock.steady();
            let mut state = self.state();
            for out in sends {
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
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
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
        self.items.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.alive().await;
        self.items.query(query).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        self.alive().await;
        match self.next_commit()? {
            None => return self.apply(commit).await,
            Some(Death::Before) => {}
            Some(Death::After) => {
                self.apply(commit).await?;
            }
        }
        std::future::pending().await
    }

    fn holds(&self) -> bool {
        true
    }

    fn atomic(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.state().epoch
    }
}
