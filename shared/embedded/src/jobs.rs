//! What waits for the writer.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use annex_core::ports::{Commit, Committed, Count, Counted, Outage, QueueName, Write};
use tokio::sync::{Semaphore, oneshot};

use crate::tables::MessageKey;

/// Jobs that may wait; whoever brings another one waits for a place.
const JOBS_MAX: usize = 1024;

/// Jobs of one transaction.
const BATCH_JOBS_MAX: usize = 256;

/// Bytes of the commits of one transaction, unless a single commit has more.
const BATCH_BYTES_MAX: usize = 2 << 20;

/// Leftovers that are worth a transaction of their own.
const LEFTOVERS_MAX: usize = 256;

/// How long leftovers wait for a transaction that takes them along.
const LEFTOVERS_WAIT: Duration = Duration::from_millis(100);

/// Something that somebody waits for.
pub(crate) enum Job {
    Commit { commit: Commit, reply: oneshot::Sender<Result<Committed, Outage>> },
    Count { count: Count, reply: oneshot::Sender<Result<Counted, Outage>> },
    Chore { chore: Chore, reply: oneshot::Sender<Result<usize, Outage>> },
}

/// Work of the store for itself.
#[derive(Debug)]
pub(crate) enum Chore {
    /// Notes how often messages have been received, before they are handed over.
    Mark { queue: QueueName, receives: Vec<(MessageKey, u32)> },
    /// Makes messages of holds whose lease is over.
    Release { ids: Vec<u128> },
    /// Puts dead letters back, at most so many, and says how many it was.
    Redrive { queue: QueueName, limit: usize },
    /// Removes some expired items, and says how many index entries that took.
    Sweep,
}

/// What is done along with the next transaction. Nobody waits for it, and after a crash it would be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// A message is done.
    Remove(QueueName, MessageKey),
    /// A message is a dead letter, received so often.
    Bury(QueueName, MessageKey, u32),
    /// A message has been received so often.
    Count(QueueName, MessageKey, u32),
}

/// The jobs, in order.
pub(crate) struct Jobs {
    state: Mutex<State>,
    ready: Condvar,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    leftovers: Vec<Leftover>,
    /// A read found this life of the database unusable.
    broken: Option<u64>,
    stopping: bool,
    /// Nobody takes jobs any more.
    stopped: bool,
}

/// What the writer does next.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) jobs: Vec<Job>,
    pub(crate) leftovers: Vec<Leftover>,
    pub(crate) broken: Option<u64>,
    pub(crate) stopping: bool,
}

impl Work {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.leftovers.is_empty() && self.broken.is_none() && !self.stopping
    }
}

impl Jobs {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), ready: Condvar::new(), places: Semaphore::new(JOBS_MAX) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job, once there is a place. A job added after the writer has ended is dropped, and its reply with it.
    pub(crate) async fn submit(&self, job: Job) {
        let Ok(place) = self.places.acquire().await else { return };
        let mut state = self.state();
        if state.stopped {
            return;
        }
        place.forget();
        state.jobs.push_back(job);
        drop(state);
        self.ready.notify_one();
    }

    /// Adds what nobody waits for.
    pub(crate) fn leave(&self, leftovers: impl IntoIterator<Item = Leftover>) {
        let mut state = self.state();
        let before = state.leftovers.len();
        state.leftovers.extend(leftovers);
        // The writer sleeps without a time limit of its own until it knows of the first one.
        let wake = before == 0 || LEFTOVERS_MAX <= state.leftovers.len();
        drop(state);
        if wake {
            self.ready.notify_one();
        }
    }

    /// Puts back what could not be done, before what came since.
    pub(crate) fn leave_again(&self, leftovers: Vec<Leftover>) {
        self.state().leftovers.splice(0..0, leftovers);
    }

    /// Says that the database must be opened again, unless it has been since this life of it.
    pub(crate) fn report_broken(&self, generation: u64) {
        let mut state = self.state();
        state.broken = state.broken.max(Some(generation));
        drop(state);
        self.ready.notify_one();
    }

    /// Asks the writer to finish what waits, and to end.
    pub(crate) fn stop(&self) {
        self.state().stopping = true;
        self.ready.notify_one();
    }

    /// Drops what waits, and takes nothing more.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.jobs.clear();
        drop(state);
        self.places.close();
    }

    /// The next batch, as soon as there is one; empty when `idle` has passed.
    pub(crate) fn next(&self, idle: Duration) -> Work {
        let began = Instant::now();
        let mut state = self.state();
        loop {
            let waited = began.elapsed();
            let late = LEFTOVERS_WAIT <= waited || LEFTOVERS_MAX <= state.leftovers.len();
            let is_ready = !state.jobs.is_empty()
                || state.broken.is_some()
                || state.stopping
                || (late && !state.leftovers.is_empty());
            let limit = if state.leftovers.is_empty() { idle } else { LEFTOVERS_WAIT };
            if is_ready || limit <= waited {
                break;
            }
            let left = limit - waited;
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let work = state.take();
        drop(state);
        self.places.add_permits(work.jobs.len());
        work
    }
}

impl State {
    fn take(&mut self) -> Work {
        let mut bytes = 0;
        let mut count = 0;
        for job in self.jobs.iter().take(BATCH_JOBS_MAX) {
            bytes += job.bytes();
            if BATCH_BYTES_MAX < bytes && count != 0 {
                break;
            }
            count += 1;
        }
        Work {
            jobs: self.jobs.drain(..count).collect(),
            leftovers: std::mem::take(&mut self.leftovers),
            broken: std::mem::take(&mut self.broken),
            // What waits is done first.
            stopping: self.stopping && self.jobs.is_empty(),
        }
    }
}

impl Job {
    fn bytes(&self) -> usize {
        let commit = match self {
            Self::Commit { commit, .. } => commit,
            Self::Count { count, .. } => return count.data.len(),
            Self::Chore { .. } => return 0,
        };
        let writes: usize = commit
            .writes
            .iter()
            .map(|write| match write {
                Write::Put { data, .. } | Write::Tally { data, .. } => data.len(),
                Write::Delete { .. } => 0,
            })
            .sum();
        let sends: usize = commit.sends.iter().map(|send| send.body.len()).sum();
        let holds: usize = commit.holds.iter().map(|hold| hold.send.body.len()).sum();
        writes + sends + holds
    }

    /// Answers that nothing of it was done.
    pub(crate) fn refuse(self, outage: Outage) {
        // Whoever has stopped waiting needs no answer.
        match self {
            Self::Commit { reply, .. } => drop(reply.send(Err(outage))),
            Self::Count { reply, .. } => drop(reply.send(Err(outage))),
            Self::Chore { reply, .. } => drop(reply.send(Err(outage))),
        }
    }
}
