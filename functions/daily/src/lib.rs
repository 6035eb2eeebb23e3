//! Fans the daily `update` event out to every install, spread over the day by organization.
//!
//! Trigger: a schedule, every minute or every few on one machine, once a day on AWS.

use annex_core::call::Calls;
use annex_core::ports::Outage;
use annex_core::time::Timestamp;

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

    /// Sends every update of the day of `at` on its way; answers how many that are. For a schedule of once a day.
    pub async fn run_day(&self, at: Timestamp) -> Result<usize, Outage> {
        annex_core::daily::run_day(&self.calls, at).await
    }
}
