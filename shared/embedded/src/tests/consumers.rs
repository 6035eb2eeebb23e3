//! A consumer under a test's eyes.

use super::*;
use crate::ConsumerOptions;
use annex_core::ports::{Handler, Message, Undone};
use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

type Verdict = Box<dyn Fn(&Message) -> Option<Undone> + Send + Sync>;

struct Recorder {
    seen: mpsc::UnboundedSender<Vec<Message>>,
    verdict: Verdict,
    /// Handlers wait until this is true.
    open: watch::Receiver<bool>,
}

#[async_trait]
impl Handler for Recorder {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        let undone = batch.iter().filter_map(|message| (self.verdict)(message)).collect();
        let _ = self.seen.send(batch);
        let _ = self.open.clone().wait_for(|open| *open).await;
        undone
    }
}

/// A consumer of the resume queue, and what it was handed.
pub(super) struct Consumer {
    seen: mpsc::UnboundedReceiver<Vec<Message>>,
    stop: watch::Sender<bool>,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Every message is done.
pub(super) fn done(_: &Message) -> Option<Undone> {
    None
}

/// No message is done.
pub(super) fn undone(retry_secs: Option<u64>, counts: bool) -> impl Fn(&Message) -> Option<Undone> {
    move |message| {
        let retry_after = retry_secs.map(Duration::from_secs);
        Some(Undone { id: message.id.clone(), retry_after, counts })
    }
}

impl Consumer {
    pub(super) fn start(
        store: &Arc<Embedded>,
        verdict: impl Fn(&Message) -> Option<Undone> + Send + Sync + 'static,
    ) -> Self {
        Self::with(store, verdict, ConsumerOptions::default())
    }

    pub(super) fn with(
        store: &Arc<Embedded>,
        verdict: impl Fn(&Message) -> Option<Undone> + Send + Sync + 'static,
        options: ConsumerOptions,
    ) -> Self {
        let (seen_tx, seen) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let (open, opened) = watch::channel(true);
        let recorder = Recorder { seen: seen_tx, verdict: Box::new(verdict), open: opened };
        let consume =
            store.clone().consume(QueueName::Resume, Arc::new(recorder), options, stopped);
        Self { seen, stop, open, task: tokio::spawn(consume) }
    }

    /// The next batch.
    pub(super) async fn next(&mut self) -> Vec<Message> {
        self.seen.recv().await.expect("the consumer runs")
    }

    pub(super) async fn next_bodies(&mut self) -> Vec<String> {
        self.next().await.into_iter().map(|message| message.body).collect()
    }

    /// Whether a batch came that was not looked at. It would come soon, since everything but time is at hand.
    pub(super) async fn is_idle(&mut self) -> bool {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.seen.is_empty()
    }

    /// Makes handlers hang, or lets them go on.
    pub(super) fn hang(&self, hang: bool) {
        self.open.send_replace(!hang);
    }

    /// Asks it to end.
    pub(super) fn ask_to_stop(&self) {
        self.stop.send_replace(true);
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it, and waits for that.
    pub(super) async fn stop(self) {
        self.ask_to_stop();
        self.task.await.unwrap();
    }

    /// Ends it as a crash does: nothing that runs is finished.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
