//! A clock that tests set by hand.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::ports::Clock;
use crate::time::Timestamp;

/// A clock that stands still until a test moves it. Wall clock and steady clock move together with
/// [`ManualClock::advance`], and the wall clock alone with [`ManualClock::set_now`].
#[derive(Debug)]
pub struct ManualClock {
    times: watch::Sender<Times>,
    sleepers: watch::Sender<usize>,
    slept: Mutex<Vec<Duration>>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    now: Timestamp,
    steady: Timestamp,
    auto_advance: bool,
}

impl ManualClock {
    /// A clock at this time, on the wall and steadily.
    pub fn new(at: Timestamp) -> Self {
        let times = Times { now: at, steady: at, auto_advance: false };
        Self {
            times: watch::Sender::new(times),
            sleepers: watch::Sender::new(0),
            slept: Mutex::default(),
        }
    }

    /// A clock on which every sleep takes no real time: it moves the clock by the duration asked for, and is noted
    /// in [`ManualClock::slept`].
    pub fn auto_advancing(at: Timestamp) -> Self {
        let clock = Self::new(at);
        clock.times.send_modify(|times| times.auto_advance = true);
        clock
    }

    /// Time passes on both clocks; sleeps whose time has come end.
    pub fn advance(&self, duration: Duration) {
        self.times.send_modify(|times| {
            times.now = times.now.plus(duration);
            times.steady = times.steady.plus(duration);
        });
    }

    /// The wall clock is set, forward or back; nothing that goes by the steady clock notices.
    pub fn set_now(&self, now: Timestamp) {
        self.times.send_modify(|times| times.now = now);
    }

    /// The durations of all sleeps so far, in the order in which they began.
    pub fn slept(&self) -> Vec<Duration> {
        self.slept.lock().expect("no holder of the lock panics").clone()
    }

    /// Waits until at least `count` sleeps are under way.
    pub async fn sleepers(&self, count: usize) {
        let mut sleepers = self.sleepers.subscribe();
        sleepers
            .wait_for(|&found| count <= found)
            .await
            .expect("the sender lives as long as the clock");
    }
}

/// Counts a sleep as under way for as long as it lives, so that a cancelled one is not counted either.
struct Sleeper<'a>(&'a watch::Sender<usize>);

impl<'a> Sleeper<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.times.borrow().now
    }

    fn steady(&self) -> Timestamp {
        self.times.borrow().steady
    }

    async fn sleep(&self, duration: Duration) {
        self.slept.lock().expect("no holder of the lock panics").push(duration);
        if self.times.borrow().auto_advance {
            self.advance(duration);
            return;
        }
        // Timestamps are whole milliseconds, and a sleep is never short.
        let until = self.steady().plus(duration + Duration::from_nanos(999_999));
        let mut times = self.times.subscribe();
        let _sleeper = Sleeper::new(&self.sleepers);
        times
            .wait_for(|times| until <= times.steady)
            .await
            .expect("the sender lives as long as the clock");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_sleep_ends_when_the_steady_clock_has_moved_far_enough() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(100)));
        let sleeping = clock.clone();
        let sleep = tokio::spawn(async move { sleeping.sleep(Duration::from_secs(5)).await });
        clock.sleepers(1).await;
        clock.set_now(Timestamp::from_secs(100_000));
        clock.advance(Duration::from_millis(4_999));
        assert!(!sleep.is_finished());
        clock.advance(Duration::from_millis(1));
        sleep.await.unwrap();
        assert_eq!(clock.now(), Timestamp::from_secs(100_005));
        assert_eq!(clock.steady(), Timestamp::from_secs(105));
        assert_eq!(clock.slept(), [Duration::from_secs(5)]);
    }

    #[tokio::test]
    async fn an_auto_advancing_clock_moves_by_its_sleeps() {
        let clock = ManualClock::auto_advancing(Timestamp::from_secs(0));
        clock.sleep(Duration::from_secs(5)).await;
        clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(clock.steady(), Timestamp::from_secs(7));
        assert_eq!(clock.slept(), [Duration::from_secs(5), Duration::from_secs(2)]);
    }
}
