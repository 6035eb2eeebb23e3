//! What the writer, the readers and the consumers share.

use std::sync::Arc;
use std::time::Duration;

use annex_core::ports::{Clock, Commit, Committed, Count, Counted, Outage, QueueName};
use redb::ReadTransaction;
use tokio::sync::oneshot;

use crate::engine::{self, Engine, Failure};
use crate::jobs::{Chore, Job, Jobs};
use crate::queue::Queue;
use crate::tables;
use crate::transaction::Effects;

/// How long a read waits for the database to be opened again after the disk failed.
const RECOVERY_WAIT: Duration = Duration::from_secs(10);

/// The parts of a store.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) jobs: Jobs,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) epoch: u64,
    queues: [Queue; QueueName::ALL.len()],
}

impl Shared {
    pub(crate) fn new(engine: Engine, clock: Arc<dyn Clock>, epoch: u64) -> Self {
        let queues = [QueueName::Dispatch, QueueName::Resume, QueueName::Meter].map(Queue::new);
        Self { engine, jobs: Jobs::new(), clock, epoch, queues }
    }

    /// What is known of a queue.
    pub(crate) fn queue(&self, name: QueueName) -> &Queue {
        &self.queues[tables::queue_index(name)]
    }

    /// Tells the queues what was committed.
    pub(crate) fn tell(&self, effects: &Effects) {
        for (queue, key) in &effects.sent {
            self.queue(*queue).sent(*key);
        }
        for (queue, due, id) in &effects.held {
            self.queue(*queue).held(*due, *id);
        }
        for (queue, due, id) in &effects.released {
            self.queue(*queue).released(*due, *id);
        }
    }

    /// Does `read` on a view of everything that is committed; once more where the database had to be opened again.
    pub(crate) async fn reading<T>(
        &self,
        what: &str,
        read: impl Fn(&ReadTransaction) -> Result<T, Failure>,
    ) -> Result<T, Outage> {
        let mut generation = self.engine.generation();
        let found = *generation.borrow_and_update();
        let attempt = || read(&self.engine.read()?);
        let failure = match attempt() {
            Ok(found) => return Ok(found),
            Err(failure) if engine::is_latched(&failure) => failure,
            Err(failure) => return Err(engine::outage(what, failure)),
        };
        self.jobs.report_broken(found);
        match tokio::time::timeout(RECOVERY_WAIT, generation.changed()).await {
            Ok(Ok(())) => attempt().map_err(|failure| engine::outage(what, failure)),
            Ok(Err(_)) | Err(_) => Err(engine::outage(what, failure)),
        }
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, Outage> {
        let (reply, answer) = oneshot::channel();
        self.jobs.submit(Job::Commit { commit, reply }).await;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(crate) async fn count(&self, count: Count) -> Result<Counted, Outage> {
        let (reply, answer) = oneshot::channel();
        self.jobs.submit(Job::Count { count, reply }).await;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(crate) async fn chore(&self, chore: Chore) -> Result<usize, Outage> {
        let (reply, answer) = oneshot::channel();
        self.jobs.submit(Job::Chore { chore, reply }).await;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

fn closed() -> Outage {
    Outage { write_refused: true, ..Outage::new("the store is closed") }
}
