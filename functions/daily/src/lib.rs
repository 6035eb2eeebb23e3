//! Fans the daily `update` event out to every install, spread over the day by organization.
//!
//! Trigger: a schedule, every minute or every few.

use annex_core::call::Calls;
use annex_core::ports::Outage;

/// The function behind the schedule.
#[derive(Clone)]
pub struct Daily {
    calls: Calls,
}

impl Daily {
    /// Over these calls.
    pub fn new(calls: Calls) -> Self {
        Self { calls }
    }

    /// Sends what has come due since the last run; answers how many events that were.
    pub async fn tick(&self) -> Result<usize, Outage> {
        annex_core::daily::run(&self.calls).await
    }
}
