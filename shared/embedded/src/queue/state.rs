//! What this process knows of a queue beside what lies on disk.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use annex_core::ports::QueueName;
use annex_core::time::Timestamp;
use redb::{ReadTransaction, TableError};
use tokio::sync::watch;

use crate::engine::{Engine, Failure};
use crate::tables::{self, MessageKey};

/// Holds that one step makes messages of.
const HOLDS_PER_STEP: usize = 100;

/// After every time.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

/// A queue of this process.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: QueueName,
    state: Mutex<State>,
    wake: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// Every message before it has been taken.
    cursor: MessageKey,
    /// Messages that are under way, wait to come back, or are about to be removed; and how often each was received,
    /// as far as that counts.
    taken: HashMap<MessageKey, u32>,
    /// Those of `taken` that wait to come back.
    returns: BTreeSet<(Timestamp, MessageKey)>,
    /// Those of `taken` that are under way.
    in_flight: usize,
    /// Messages that their sender holds, by the end of the lease.
    holds: BTreeSet<(Timestamp, u128)>,
    /// Whoever waits wakes by itself at this time.
    armed: Timestamp,
}

/// A message that was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) key: MessageKey,
    pub(crate) body: String,
    /// How often it was received before, as far as that counts.
    pub(crate) receives: u32,
}

/// What there is to do for a consumer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// These messages were taken.
    Work(Vec<Candidate>),
    /// The lease of these holds is over.
    Release(Vec<u128>),
    /// Nothing before this time, unless something is sent.
    Wait(Option<Timestamp>),
}

/// How much of a queue is in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) taken: usize,
    pub(crate) in_flight: usize,
    pub(crate) returning_now: usize,
    pub(crate) returning_later: usize,
    pub(crate) held: usize,
}

impl Queue {
    pub(crate) fn new(name: QueueName) -> Self {
        let state = State {
            cursor: MessageKey::FIRST,
            taken: HashMap::new(),
            returns: BTreeSet::new(),
            in_flight: 0,
            holds: BTreeSet::new(),
            armed: NEVER,
        };
        Self { name, state: Mutex::new(state), wake: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes when there may be something to do before the time that [`Step::Wait`] named.
    pub(crate) fn wake(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    fn wake_for(&self, state: &State, due: Timestamp) {
        if due < state.armed {
            self.wake.send_replace(());
        }
    }

    /// A message lies on disk.
    pub(crate) fn sent(&self, key: MessageKey) {
        let mut state = self.state();
        // Another message, committed earlier but due later, may have moved the cursor past this one.
        state.cursor = state.cursor.min(key);
        self.wake_for(&state, key.due());
    }

    /// A message is held for its sender until `due`.
    pub(crate) fn held(&self, due: Timestamp, id: u128) {
        let mut state = self.state();
        state.holds.insert((due, id));
        self.wake_for(&state, due);
    }

    /// A hold is over.
    pub(crate) fn released(&self, due: Timestamp, id: u128) {
        self.state().holds.remove(&(due, id));
    }

    /// A message is not on disk any more.
    pub(crate) fn removed(&self, key: MessageKey) {
        self.state().taken.remove(&key);
    }

    /// A message is not under way any more, and will be removed.
    pub(crate) fn finished(&self) {
        let mut state = self.state();
        state.in_flight = state.in_flight.saturating_sub(1);
    }

    /// A message is not under way any more, and comes back at `due`.
    pub(crate) fn returned(&self, key: MessageKey, receives: u32, due: Timestamp) {
        let mut state = self.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.taken.insert(key, receives);
        state.returns.insert((due, key));
        self.wake_for(&state, due);
    }

    /// Takes up to `limit` messages that are due.
    ///
    /// The view is made under the lock: a message that is committed later lowers the cursor after this.
    pub(crate) fn take(
        &self,
        engine: &Engine,
        now: Timestamp,
        limit: usize,
    ) -> Result<Step, Failure> {
        let mut state = self.state();
        state.armed = NEVER;
        let due_holds: Vec<u128> = state
            .holds
            .iter()
            .take_while(|(due, _)| *due <= now)
            .take(HOLDS_PER_STEP)
            .map(|(_, id)| *id)
            .collect();
        if !due_holds.is_empty() {
            return Ok(Step::Release(due_holds));
        }
        let view = engine.read()?;
        let mut found = Vec::new();
        state.take_returns(&view, self.name, now, limit, &mut found)?;
        let next = state.take_new(&view, self.name, now, limit, &mut found)?;
        state.in_flight += found.len();
        if !found.is_empty() {
            return Ok(Step::Work(found));
        }
        let returning = state.returns.first().map(|(due, _)| *due);
        let holding = state.holds.first().map(|(due, _)| *due);
        let next = [next, returning, holding].into_iter().flatten().min();
        state.armed = next.unwrap_or(NEVER);
        Ok(Step::Wait(next))
    }

    /// How much is in which state.
    pub(crate) fn counts(&self, now: Timestamp) -> Counts {
        let state = self.state();
        let returning_now = state.returns.iter().take_while(|(due, _)| *due <= now).count();
        Counts {
            taken: state.taken.len(),
            in_flight: state.in_flight,
            returning_now,
            returning_later: state.returns.len() - returning_now,
            held: state.holds.len(),
        }
    }
}

impl State {
    fn take_returns(
        &mut self,
        view: &ReadTransaction,
        queue: QueueName,
        now: Timestamp,
        limit: usize,
        found: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if self.returns.first().is_none_or(|(due, _)| now < *due) {
            return Ok(());
        }
        let Some(table) = open(view, queue)? else { return Ok(()) };
        while found.len() < limit
            && let Some(&(due, key)) = self.returns.first()
            && due <= now
        {
            let guard = table.get(key.0).map_err(redb::Error::from)?;
            self.returns.remove(&(due, key));
            match guard.as_ref().and_then(|guard| candidate(key, guard.value())) {
                Some(candidate) => {
                    // What this process knows is newer than what lies on disk.
                    let receives = self.taken.get(&key).copied().unwrap_or(candidate.receives);
                    found.push(Candidate { receives, ..candidate });
                }
                // It was removed by hand.
                None => drop(self.taken.remove(&key)),
            }
        }
        Ok(())
    }

    /// Takes messages that nobody has had, and says when the next one is due that was left.
    fn take_new(
        &mut self,
        view: &ReadTransaction,
        queue: QueueName,
        now: Timestamp,
        limit: usize,
        found: &mut Vec<Candidate>,
    ) -> Result<Option<Timestamp>, Failure> {
        let Some(table) = open(view, queue)? else { return Ok(None) };
        let last = MessageKey::last_due(now);
        for entry in table.range(self.cursor.0..).map_err(redb::Error::from)? {
            let (key, value) = entry.map_err(redb::Error::from)?;
            let key = MessageKey(key.value());
            if last < key || limit <= found.len() {
                return Ok(Some(key.due()));
            }
            self.cursor = key.after();
            if self.taken.contains_key(&key) {
                continue;
            }
            match candidate(key, value.value()) {
                Some(candidate) => {
                    self.taken.insert(key, candidate.receives);
                    found.push(candidate);
                }
                None => tracing::error!(queue = queue.name(), "a message cannot be read"),
            }
        }
        Ok(None)
    }
}

fn candidate(key: MessageKey, bytes: &[u8]) -> Option<Candidate> {
    let (receives, body) = tables::decode_message(bytes)?;
    let body = std::str::from_utf8(body).ok()?.to_owned();
    Some(Candidate { key, body, receives })
}

/// The messages of a queue; `None` before the first one was sent.
pub(super) fn open(
    view: &ReadTransaction,
    queue: QueueName,
) -> Result<Option<redb::ReadOnlyTable<u128, &'static [u8]>>, Failure> {
    match view.open_table(tables::messages(queue)) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(failure) => Err(Box::new(failure.into())),
    }
}
