//! Delivers calls, events and error reports to extensions.
//!
//! Trigger: the `dispatch` queue, in batches, with partial batch responses; and a call whose caller waits, directly.

use std::time::Duration;

use annex_core::call::{Calls, Claimed, Launcher, Reply};
use annex_core::ports::{Handler, Message, Outage, Undone};
use async_trait::async_trait;

/// The function behind the `dispatch` queue.
#[derive(Clone)]
pub struct Dispatch {
    calls: Calls,
}

impl Dispatch {
    /// Over these calls.
    pub fn new(calls: Calls) -> Self {
        Self { calls }
    }
}

#[async_trait]
impl Handler for Dispatch {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        self.calls.work_batch(batch).await
    }
}

/// Runs calls whose caller waits as tasks of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

#[async_trait]
impl Launcher for InProcess {
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        wait: Duration,
    ) -> Option<Result<Reply, Outage>> {
        let calls = calls.clone();
        let task = tokio::spawn(async move { calls.run_claimed(claimed).await });
        match tokio::time::timeout(wait, task).await {
            Err(_still_running) => None,
            Ok(Ok(reply)) => Some(reply),
            // What it died of stands on standard error; a message of a panic goes into no log.
            Ok(Err(_)) => Some(Err(Outage::new("a delivery died"))),
        }
    }
}
