//! The loop that hands the messages of a queue to a function.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use annex_core::limits::{LEASE, QUEUE_BATCH_MAX, QUEUE_RECEIVES_MAX};
use annex_core::ports::{Handler, Message, QueueName, Undone};
use annex_core::time::Timestamp;
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::{Candidate, Queue, Step};
use crate::jobs::{Chore, Leftover};
use crate::shared::Shared;
use crate::store::Embedded;
use crate::tables::{MessageKey, first_number};

/// Messages that are taken at a time, over all batches.
const TAKE_MAX: usize = 64;

/// How long a consumer waits after the store failed it.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// Longest time after which an undone message comes back (SQS).
const RETURN_MAX: Duration = Duration::from_secs(12 * 3600);

/// How messages are handed over.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// Messages of a batch, 1 to [`QUEUE_BATCH_MAX`]. A batch is done when its slowest message is.
    pub batch_size: usize,
    /// Batches under way at a time.
    pub batches_in_flight: usize,
    /// How long to wait for running batches at the end. What is not done by then comes back at the next start.
    pub drain: Duration,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self { batch_size: QUEUE_BATCH_MAX, batches_in_flight: 1, drain: Duration::from_secs(10) }
    }
}

impl Embedded {
    /// Hands the messages of `queue` to `handler` as they become due, until `shutdown` is true or its sender gone,
    /// and then waits for what runs. A message is handed to one batch at a time; it is done when the handler does not
    /// name it as undone, and a dead letter after [`QUEUE_RECEIVES_MAX`] receives that count. A handler that panics
    /// has done nothing.
    pub async fn consume(
        self: Arc<Self>,
        queue: QueueName,
        handler: Arc<dyn Handler>,
        options: ConsumerOptions,
        shutdown: watch::Receiver<bool>,
    ) {
        let consumer = Arc::new(Consumer { shared: self.shared.clone(), queue, handler, options });
        let mut running = JoinSet::new();
        consumer.work(Stop(shutdown), &mut running).await;
        let drained = async { while running.join_next().await.is_some() {} };
        tokio::select! {
            () = drained => {}
            () = self.shared.clock.sleep(consumer.options.drain) => {
                tracing::warn!(queue = queue.name(), "stopped before all messages were done");
            }
        }
    }
}

/// The wish that a consumer ends. It is heard only where nothing is taken and not yet handed over.
struct Stop(watch::Receiver<bool>);

impl Stop {
    /// What comes of `wait`; `None` once the consumer is to end.
    async fn or<T>(&mut self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.0.wait_for(|stop| *stop) => None,
            came = wait => Some(came),
        }
    }
}

struct Consumer {
    shared: Arc<Shared>,
    queue: QueueName,
    handler: Arc<dyn Handler>,
    options: ConsumerOptions,
}

impl Consumer {
    fn queue(&self) -> &Queue {
        self.shared.queue(self.queue)
    }

    /// Takes and hands over until it is to stop.
    async fn work(self: &Arc<Self>, mut stop: Stop, running: &mut JoinSet<()>) {
        let places = Arc::new(Semaphore::new(self.options.batches_in_flight.max(1)));
        let mut wake = self.queue().wake();
        while let Some(Ok(place)) = stop.or(places.clone().acquire_owned()).await {
            while running.try_join_next().is_some() {}
            wake.mark_unchanged();
            let generation = *self.shared.engine.generation().borrow();
            let now = self.shared.clock.steady();
            let limit = self.batch_size() * (1 + places.available_permits());
            let pause = match self.queue().take(&self.shared.engine, now, limit.min(TAKE_MAX)) {
                Ok(Step::Work(found)) => {
                    self.start(found, place, &places, running).await;
                    continue;
                }
                Ok(Step::Release(ids)) => match self.shared.chore(Chore::Release { ids }).await {
                    Ok(_) => continue,
                    Err(outage) => {
                        tracing::error!(queue = self.queue.name(), %outage, "holds are stuck");
                        Some(now.plus(OUTAGE_PAUSE))
                    }
                },
                Ok(Step::Wait(next)) => next,
                Err(failure) => {
                    tracing::error!(queue = self.queue.name(), %failure, "messages are stuck");
                    self.shared.jobs.report_broken(generation);
                    Some(now.plus(OUTAGE_PAUSE))
                }
            };
            drop(place);
            if stop.or(self.wait(pause, now, &mut wake)).await.is_none() {
                return;
            }
        }
    }

    fn batch_size(&self) -> usize {
        self.options.batch_size.clamp(1, QUEUE_BATCH_MAX)
    }

    async fn wait(&self, next: Option<Timestamp>, now: Timestamp, wake: &mut watch::Receiver<()>) {
        let timer = async {
            match next {
                Some(next) => self.shared.clock.sleep(next.since(now)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives as long as the store, which `self` holds.
            _ = wake.changed() => {}
            () = timer => {}
        }
    }

    /// Starts batches of messages that were taken. There are places for all of them.
    async fn start(
        self: &Arc<Self>,
        found: Vec<Candidate>,
        place: OwnedSemaphorePermit,
        places: &Arc<Semaphore>,
        running: &mut JoinSet<()>,
    ) {
        let mut found = self.receive(found).await.into_iter().peekable();
        let mut place = Some(place);
        while found.peek().is_some() {
            let batch: Vec<Candidate> = found.by_ref().take(self.batch_size()).collect();
            let place = match place.take() {
                Some(place) => Some(place),
                None => places.clone().acquire_owned().await.ok(),
            };
            let consumer = self.clone();
            running.spawn(async move {
                consumer.handle(batch).await;
                drop(place);
            });
        }
    }

    /// Those of the messages that may be handed over. Of messages that an earlier process may have died of, each
    /// receive is on disk first.
    async fn receive(&self, found: Vec<Candidate>) -> Vec<Candidate> {
        let (old, mut ready): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|candidate| self.is_old(candidate.key));
        if old.is_empty() {
            return ready;
        }
        let (old, dead): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|candidate| candidate.receives < QUEUE_RECEIVES_MAX);
        for candidate in dead {
            self.bury(candidate.key, candidate.receives);
        }
        let receives = old.iter().map(|candidate| (candidate.key, candidate.receives + 1));
        let chore = Chore::Mark { queue: self.queue, receives: receives.collect() };
        match self.shared.chore(chore).await {
            Ok(_) => ready.extend(old),
            Err(outage) => {
                tracing::error!(queue = self.queue.name(), %outage, "messages must wait");
                let due = self.shared.clock.steady().plus(OUTAGE_PAUSE);
                for Candidate { key, receives, .. } in old {
                    self.queue().returned(key, receives, due);
                }
            }
        }
        ready
    }

    /// Whether it lay on disk when this process opened the store.
    fn is_old(&self, key: MessageKey) -> bool {
        key.number() < first_number(self.shared.epoch)
    }

    async fn handle(&self, batch: Vec<Candidate>) {
        let began = self.shared.clock.steady();
        let receives: Vec<(MessageKey, u32)> =
            batch.iter().map(|candidate| (candidate.key, candidate.receives)).collect();
        let messages = batch.into_iter().map(|candidate| Message {
            id: id(candidate.key),
            body: candidate.body,
            receives: candidate.receives.saturating_add(1),
        });
        let handled = AssertUnwindSafe(self.handler.handle(messages.collect()));
        let undone = handled.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(queue = self.queue.name(), "the function has panicked");
            let all = receives.iter().map(|(key, _)| Undone {
                id: id(*key),
                retry_after: None,
                counts: true,
            });
            all.collect()
        });
        for (key, receives) in receives {
            let id = id(key);
            match undone.iter().find(|undone| undone.id == id) {
                None => {
                    self.queue().finished();
                    self.shared.jobs.leave([Leftover::Remove(self.queue, key)]);
                }
                Some(undone) => self.put_back(key, receives, undone, began),
            }
        }
    }

    fn put_back(&self, key: MessageKey, receives: u32, undone: &Undone, began: Timestamp) {
        let counted = receives.saturating_add(u32::from(undone.counts));
        if QUEUE_RECEIVES_MAX <= counted {
            return self.bury(key, counted);
        }
        if !undone.counts && self.is_old(key) {
            self.shared.jobs.leave([Leftover::Count(self.queue, key, counted)]);
        }
        let due = match undone.retry_after {
            Some(delay) => self.shared.clock.steady().plus(delay.min(RETURN_MAX)),
            None => began.plus(LEASE),
        };
        self.queue().returned(key, counted, due);
    }

    fn bury(&self, key: MessageKey, receives: u32) {
        tracing::error!(queue = self.queue.name(), id = id(key), "a message is a dead letter");
        self.queue().finished();
        self.shared.jobs.leave([Leftover::Bury(self.queue, key, receives)]);
    }
}

/// A message's id, as the function sees it.
pub(super) fn id(key: MessageKey) -> String {
    format!("{:032x}", key.0)
}
