//! The clock of a function.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use annex_core::ports::Clock;
use annex_core::time::Timestamp;
use async_trait::async_trait;

/// The wall clock, for both of the port's clocks: leases are compared between processes, which share no other. It is
/// kept right by the machine it runs on, and never jumps far.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_millis(millis)
    }

    fn steady(&self) -> Timestamp {
        self.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_clocks_are_the_wall_clock() {
        let clock = SystemClock;
        let before = clock.now();
        clock.sleep(Duration::from_millis(5)).await;
        let (steady, after) = (clock.steady(), clock.now());
        assert!(before <= steady && steady <= after);
        assert!(after.since(before) < Duration::from_secs(3600));
    }
}
