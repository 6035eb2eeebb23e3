//! The clocks of the operating system.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use annex_core::ports::Clock;
use annex_core::time::Timestamp;
use async_trait::async_trait;

/// The wall clock, and beside it a steady one that starts at the wall clock's time and only ever goes on.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    wall_at_start: Timestamp,
}

impl SystemClock {
    /// Starts the steady clock. A process has one.
    pub fn start() -> Self {
        Self { started: Instant::now(), wall_at_start: wall() }
    }
}

fn wall() -> Timestamp {
    let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Timestamp::from_millis(millis)
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        wall()
    }

    fn steady(&self) -> Timestamp {
        self.wall_at_start.plus(self.started.elapsed())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_lasts_at_least_as_long_on_the_steady_clock() {
        let clock = SystemClock::start();
        let began = clock.steady();
        clock.sleep(Duration::from_millis(5)).await;
        assert!(Duration::from_millis(5) <= clock.steady().since(began));
        assert!(clock.now().since(began) < Duration::from_secs(3600));
    }
}
