//! The one thread that writes: it takes everything that waits, does it in one transaction with one sync, and answers.
//!
//! While it syncs, the next commits gather, so the busier the store, the more of them share a sync; and with nothing
//! else under way a commit starts at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use annex_core::ports::{Committed, Counted, Outage, QueueName};
use redb::{ReadableTable as _, WriteTransaction};

use crate::engine::Failure;
use crate::jobs::{Chore, Job, Leftover, Work};
use crate::shared::Shared;
use crate::tables::{decode_message, encode_message};
use crate::transaction::{self, Effects, Moment, Tables};

/// After this long without work, the state of the file's free space is stored, so that the file opens fast even
/// after the process was killed: in milliseconds instead of seconds for each gigabyte. With every commit it would cost
/// a second sync, and half as much processor time again.
const CHECKPOINT_AFTER: Duration = Duration::from_millis(250);

/// How often an idle writer looks for expired items.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How often a busy writer takes expired items along.
const BUSY_SWEEP_EVERY: Duration = Duration::from_millis(500);

/// Index entries that one step of a sweep goes through.
const SWEEP_STEP: usize = 64;

/// Dead letters that one transaction puts back.
const REDRIVE_STEP: usize = 256;

/// The writer's own state.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// The number of the last message.
    number: u64,
    /// Whether anything was committed since the last checkpoint.
    dirty: bool,
    swept: Instant,
    /// Whether a sweep stopped before its end.
    sweep_left: bool,
    refusing: bool,
}

enum Answer {
    Commit(Result<Committed, Outage>),
    Count(Result<Counted, Outage>),
    Chore(usize),
}

impl Answer {
    /// Whether the job left anything to write.
    fn has_changed(&self) -> bool {
        match self {
            Self::Commit(answer) => matches!(answer, Ok(Committed::Done)),
            Self::Count(answer) => matches!(answer, Ok(Counted::Done(_))),
            Self::Chore(count) => *count != 0,
        }
    }
}

/// What a transaction did.
#[derive(Default)]
struct Done {
    answers: Vec<Answer>,
    effects: Effects,
    swept: Option<usize>,
    changed: bool,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            dirty: true,
            swept: Instant::now(),
            sweep_left: false,
            refusing: false,
        }
    }

    /// Works until the store is closed.
    pub(crate) fn run(mut self) {
        loop {
            let work = self.shared.jobs.next(self.patience());
            if let Some(generation) = work.broken {
                self.shared.engine.reopen_since(generation);
            }
            let stopping = work.stopping;
            if work.is_empty() {
                self.tidy();
            } else if !work.jobs.is_empty() || !work.leftovers.is_empty() {
                self.perform(work);
            }
            if stopping {
                break;
            }
        }
        self.shared.engine.close();
    }

    fn patience(&self) -> Duration {
        if self.sweep_left {
            Duration::from_millis(10)
        } else if self.dirty {
            CHECKPOINT_AFTER
        } else {
            SWEEP_EVERY
        }
    }

    /// Uses a quiet moment.
    fn tidy(&mut self) {
        if self.sweep_left || SWEEP_EVERY <= self.swept.elapsed() {
            self.sweep_left = true;
            self.perform(Work::default());
        } else if self.dirty && self.commit_checkpoint().is_ok() {
            self.dirty = false;
        }
    }

    fn commit_checkpoint(&self) -> Result<(), Failure> {
        let mut transaction = self.shared.engine.write()?;
        transaction.set_quick_repair(true);
        let committed = transaction.commit().map_err(redb::Error::from);
        if committed.is_err() {
            self.shared.engine.reopen();
        }
        Ok(committed?)
    }

    /// Does a batch, and answers each of its jobs.
    fn perform(&mut self, work: Work) {
        let transaction = match self.shared.engine.write() {
            Ok(transaction) => transaction,
            Err(failure) => return self.refuse(work, failure),
        };
        match self.transact(transaction, &work) {
            Ok(done) => self.answer(work, done),
            Err(failure) => {
                self.shared.engine.reopen();
                self.refuse(work, failure);
            }
        }
    }

    fn transact(&mut self, transaction: WriteTransaction, work: &Work) -> Result<Done, Failure> {
        let mut done = Done::default();
        {
            let clock = &self.shared.clock;
            let mut tables = Tables::open(&transaction)?;
            let mut moment =
                Moment { now: clock.now(), steady: clock.steady(), number: &mut self.number };
            // They came first: a job may be about the same message.
            for leftover in &work.leftovers {
                do_leftover(&mut tables, *leftover)?;
                done.changed = true;
            }
            for job in &work.jobs {
                let answer = do_job(&mut tables, job, &mut moment, &mut done.effects)?;
                done.changed |= answer.has_changed();
                done.answers.push(answer);
            }
            if self.sweep_left || BUSY_SWEEP_EVERY <= self.swept.elapsed() {
                let swept = transaction::sweep(&mut tables, moment.now, SWEEP_STEP)?;
                done.changed |= 0 < swept;
                done.swept = Some(swept);
            }
        }
        if done.changed {
            transaction.commit().map_err(redb::Error::from)?;
        } else {
            transaction.abort().map_err(redb::Error::from)?;
        }
        Ok(done)
    }

    fn answer(&mut self, work: Work, done: Done) {
        self.dirty |= done.changed;
        if let Some(swept) = done.swept {
            self.swept = Instant::now();
            self.sweep_left = swept == SWEEP_STEP;
        }
        if std::mem::take(&mut self.refusing) {
            tracing::info!("the store takes writes again");
        }
        self.shared.tell(&done.effects);
        for leftover in work.leftovers {
            if let Leftover::Remove(queue, key) | Leftover::Bury(queue, key, _) = leftover {
                self.shared.queue(queue).removed(key);
            }
        }
        for (job, answer) in work.jobs.into_iter().zip(done.answers) {
            // Whoever has stopped waiting needs no answer.
            match (job, answer) {
                (Job::Commit { reply, .. }, Answer::Commit(answer)) => drop(reply.send(answer)),
                (Job::Count { reply, .. }, Answer::Count(answer)) => drop(reply.send(answer)),
                (Job::Chore { reply, .. }, Answer::Chore(count)) => drop(reply.send(Ok(count))),
                (Job::Commit { .. } | Job::Count { .. } | Job::Chore { .. }, _) => {
                    unreachable!("each answer was made for its job")
                }
            }
        }
    }

    fn refuse(&mut self, work: Work, failure: Failure) {
        let outage = crate::engine::outage("the store could not be written", failure);
        if !std::mem::replace(&mut self.refusing, true) {
            tracing::error!(error = outage.what, "the store refuses writes");
        }
        self.shared.jobs.leave_again(work.leftovers);
        for job in work.jobs {
            let write_refused = outage.write_refused;
            job.refuse(Outage { write_refused, ..Outage::new(outage.what.clone()) });
        }
    }
}

/// Takes no jobs any more once the writer is gone, also where it panicked, so that nobody waits in vain.
pub(crate) struct EndGuard(pub(crate) Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.jobs.end();
    }
}

fn do_job(
    tables: &mut Tables<'_>,
    job: &Job,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<Answer, Failure> {
    match job {
        Job::Commit { commit, .. } => {
            transaction::apply(tables, commit, moment, effects).map(Answer::Commit)
        }
        Job::Count { count, .. } => transaction::count(tables, count, moment).map(Answer::Count),
        Job::Chore { chore, .. } => do_chore(tables, chore, moment, effects).map(Answer::Chore),
    }
}

fn do_chore(
    tables: &mut Tables<'_>,
    chore: &Chore,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<usize, Failure> {
    match chore {
        Chore::Mark { queue, receives } => {
            for (key, receives) in receives {
                do_leftover(tables, Leftover::Count(*queue, *key, *receives))?;
            }
            Ok(receives.len())
        }
        Chore::Release { ids } => {
            for id in ids {
                transaction::convert_hold(tables, *id, moment, effects)?;
            }
            Ok(ids.len())
        }
        Chore::Redrive { queue, limit } => redrive(tables, *queue, *limit, moment, effects),
        Chore::Sweep => transaction::sweep(tables, moment.now, SWEEP_STEP),
    }
}

fn do_leftover(tables: &mut Tables<'_>, leftover: Leftover) -> Result<(), Failure> {
    match leftover {
        Leftover::Remove(queue, key) => {
            tables.messages(queue)?.remove(key.0).map_err(redb::Error::from)?;
        }
        Leftover::Bury(queue, key, receives) => {
            let Some(value) = counted(tables, queue, key.0, receives, true)? else {
                return Ok(());
            };
            let mut dead = tables.dead(queue)?;
            dead.insert(key.0, value.as_slice()).map_err(redb::Error::from)?;
        }
        Leftover::Count(queue, key, receives) => {
            let Some(value) = counted(tables, queue, key.0, receives, false)? else {
                return Ok(());
            };
            let messages = tables.messages(queue)?;
            messages.insert(key.0, value.as_slice()).map_err(redb::Error::from)?;
        }
    }
    Ok(())
}

/// A stored message with another count of receives; it is removed on request.
fn counted(
    tables: &mut Tables<'_>,
    queue: QueueName,
    key: u128,
    receives: u32,
    remove: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    let messages = tables.messages(queue)?;
    let encode = |bytes: &[u8]| Some(encode_message(receives, decode_message(bytes)?.1));
    let value = if remove {
        let guard = messages.remove(key).map_err(redb::Error::from)?;
        guard.and_then(|guard| encode(guard.value()))
    } else {
        let guard = messages.get(key).map_err(redb::Error::from)?;
        guard.and_then(|guard| encode(guard.value()))
    };
    Ok(value)
}

/// Puts back at most `limit` letters, in steps: what is no message is dropped.
fn redrive(
    tables: &mut Tables<'_>,
    queue: QueueName,
    limit: usize,
    moment: &mut Moment<'_>,
    effects: &mut Effects,
) -> Result<usize, Failure> {
    let mut dead = tables.dead(queue)?;
    let step = limit.min(REDRIVE_STEP);
    for count in 0..step {
        let Some((_, value)) = dead.pop_first().map_err(redb::Error::from)? else {
            return Ok(count);
        };
        let body = decode_message(value.value()).map(|(_, body)| encode_message(0, body));
        drop(value);
        let Some(value) = body else { continue };
        let key = moment.next_key(moment.steady);
        tables.messages(queue)?.insert(key.0, value.as_slice()).map_err(redb::Error::from)?;
        effects.sent.push((queue, key));
    }
    Ok(step)
}
