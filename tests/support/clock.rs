//! A clock that runs, faster than the real one if a test likes, and whose wall time a test can set.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use annex_core::ports::Clock;
use annex_core::time::Timestamp;
use async_trait::async_trait;

/// Time that runs `speed` times as fast as the real one; 0: it stands still, and sleeps take real time. The wall clock can jump, the steady one cannot.
#[derive(Debug)]
pub struct TestClock {
    started: Instant,
    at_start: Timestamp,
    speed: u32,
    /// By how much the wall clock was set, in milliseconds.
    jumped: AtomicI64,
}

impl TestClock {
    /// Starts at the real time.
    pub fn start(speed: u32) -> Self {
        Self::start_off(speed, 0)
    }

    /// Starts this many seconds after the real time, or before it.
    pub fn start_off(speed: u32, secs: i64) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let millis = i64::try_from(since.as_millis()).unwrap() + secs * 1_000;
        let at_start = Timestamp::from_millis(millis);
        Self { started: Instant::now(), at_start, speed, jumped: AtomicI64::new(0) }
    }

    /// Sets the wall clock forward, or back, by this many seconds.
    pub fn jump(&self, secs: i64) {
        self.jumped.fetch_add(secs * 1_000, Ordering::SeqCst);
    }

    /// Sets the wall clock to this time.
    pub fn jump_to(&self, now: Timestamp) {
        self.jumped.store(now.millis() - self.steady().millis(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let jumped = self.jumped.load(Ordering::SeqCst);
        Timestamp::from_millis(self.steady().millis() + jumped)
    }

    fn steady(&self) -> Timestamp {
        self.at_start.plus(self.started.elapsed() * self.speed)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration / self.speed.max(1)).await;
    }
}
