//! The queues of a world: whatever comes due is handed to its function.

use std::time::Duration;

use annex_core::limits::{LEASE, QUEUE_RECEIVES_MAX};
use annex_core::ports::{Clock as _, Handler, Message, QueueName, Undone};
use annex_core::time::Timestamp;

use super::process::Process;
use super::tap::Queued;
use super::world::World;

/// More messages than any case needs: whoever gets here goes round in circles.
const MESSAGES_MAX: usize = 20_000;

/// After this time a message comes back whose process has died (`VisibilityTimeout` in `template.yaml`).
pub(crate) const VISIBILITY: Duration = LEASE;

impl World {
    /// Lets everything happen that comes due until a time on the steady clock, and then lets it be that time.
    pub(crate) async fn run_until(&mut self, until: Timestamp) -> Result<(), String> {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = self.site.machine.take_first() else { break };
            if until < message.due {
                let due = message.due;
                let receives = message.receives;
                self.site.machine.put_back(message, due, receives);
                break;
            }
            self.clock.advance(message.due.since(self.clock.steady()));
            self.hand_over(message).await;
        }
        self.clock.advance(until.since(self.clock.steady()));
        Ok(())
    }

    /// Lets everything happen.
    pub(crate) async fn settle(&mut self) -> Result<(), String> {
        for _ in 0..MESSAGES_MAX {
            self.site.quiet().await;
            let Some(message) = self.site.machine.take_first() else { return Ok(()) };
            self.clock.advance(message.due.since(self.clock.steady()));
            self.hand_over(message).await;
        }
        Err(format!("more than {MESSAGES_MAX} messages"))
    }

    async fn hand_over(&mut self, queued: Queued) {
        self.handed.push(queued.clone());
        let copies: &[&str] = if self.side_by_side { &["m", "n"] } else { &["m"] };
        let message = |id: &&str| Message {
            id: (*id).to_owned(),
            body: queued.body.clone(),
            receives: queued.receives + 1,
        };
        let batch = copies.iter().map(message).collect();
        let undone = match self.site.worker() {
            None => Some(handle(&self.process, queued.queue, batch).await),
            Some(worker) => tokio::select! {
                biased;
                () = worker.life.ended() => None,
                undone = handle(&worker, queued.queue, batch) => Some(undone),
            },
        };
        let Some(undone) = undone else {
            let back = Undone { id: "m".to_owned(), retry_after: Some(VISIBILITY), counts: true };
            self.come_back(queued, back);
            return;
        };
        let mut undone = undone.into_iter();
        match undone.next() {
            None => self.site.machine.finish(&queued),
            Some(first) => self.come_back(queued.clone(), first),
        }
        for other in undone {
            self.come_back(queued.clone(), other);
        }
    }

    fn come_back(&mut self, queued: Queued, undone: Undone) {
        let receives = queued.receives + u32::from(undone.counts);
        if QUEUE_RECEIVES_MAX <= receives {
            self.site.machine.finish(&queued);
            self.dead_letters.push(queued);
            return;
        }
        let after = undone.retry_after.unwrap_or(LEASE).max(Duration::from_millis(1));
        let due = self.clock.steady().plus(after);
        self.site.machine.put_back(queued, due, receives);
    }
}

/// The function of a queue works on a batch.
async fn handle(process: &Process, queue: QueueName, batch: Vec<Message>) -> Vec<Undone> {
    let calls = process.calls.clone();
    match queue {
        QueueName::Dispatch => dispatch::Dispatch::new(calls).handle(batch).await,
        QueueName::Resume => resume::Resume::new(calls).handle(batch).await,
        QueueName::Meter => meter::Meter::new(process.ports.store.clone()).handle(batch).await,
    }
}
