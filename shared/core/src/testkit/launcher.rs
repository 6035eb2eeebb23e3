//! A launcher that needs no tasks.

use std::time::Duration;

use async_trait::async_trait;

use crate::call::{Calls, Claimed, Launcher, Reply};
use crate::ports::Outage;

/// Runs a call before it answers, however long the caller waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inline;

#[async_trait]
impl Launcher for Inline {
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        _wait: Duration,
    ) -> Option<Result<Reply, Outage>> {
        Some(calls.run_claimed(claimed).await)
    }
}
