//! Connections between two requests: whose they are, and until when.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use annex_core::limits::{VENDOR_KEPT_MAX, VENDOR_KEPT_PER_HOST_MAX};
use tokio::time::Instant;

use crate::draft::{Scheme, SentUrl};

/// No connection is kept longer than this, whatever is set.
const KEEPALIVE_MAX: Duration = Duration::from_secs(3600);

/// Whom a connection serves (AL-219).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    host: String,
    tenant: String,
    port: u16,
    scheme: Scheme,
}

impl Key {
    pub(super) fn new(tenant: &str, url: &SentUrl) -> Self {
        Self {
            host: url.host.clone(),
            tenant: tenant.to_owned(),
            port: url.port_or_default(),
            scheme: url.scheme,
        }
    }
}

/// Kept connections. Few enough to be searched one by one, in the order in which they were kept, and so in that in which
/// their time ends.
pub(super) struct Pool<L> {
    keepalive: Duration,
    state: Mutex<State<L>>,
}

struct State<L> {
    kept: VecDeque<Kept<L>>,
    /// Whether a task closes what nobody asks for.
    swept: bool,
}

struct Kept<L> {
    key: Key,
    since: Moment,
    link: L,
}

/// A moment on two clocks. The clock that never goes back may stand still while a function is frozen between two calls;
/// that of the calendar does not.
#[derive(Debug, Clone, Copy)]
struct Moment {
    steady: Instant,
    calendar: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Self { steady: Instant::now(), calendar: SystemTime::now() }
    }

    /// Whether `span` has passed since, by either clock.
    fn is_past(self, span: Duration, now: Self) -> bool {
        let calendar = now.calendar.duration_since(self.calendar).unwrap_or_default();
        now.steady.saturating_duration_since(self.steady).max(calendar) >= span
    }
}

impl<L: Send + 'static> Pool<L> {
    pub(super) fn new(keepalive: Duration) -> Self {
        let keepalive = keepalive.min(KEEPALIVE_MAX);
        Self { keepalive, state: Mutex::new(State { kept: VecDeque::new(), swept: false }) }
    }

    /// The connection of `key` that was kept last.
    pub(super) fn take(&self, key: &Key) -> Option<L> {
        self.take_at(key, Moment::now())
    }

    fn take_at(&self, key: &Key, now: Moment) -> Option<L> {
        let mut state = self.state();
        let expired = state.expire(self.keepalive, now);
        let index = state.kept.iter().rposition(|kept| kept.key == *key);
        let found = index.and_then(|index| state.kept.remove(index));
        // Closing takes a system call each, and needs no lock.
        drop(state);
        drop(expired);
        found.map(|kept| kept.link)
    }

    /// Keeps a connection for the next request of `key`; what is over a limit goes instead, oldest first.
    pub(super) fn keep(self: &Arc<Self>, key: Key, link: L) {
        if self.keep_at(key, link, Moment::now()) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Whether nobody sweeps yet.
    fn keep_at(&self, key: Key, link: L, now: Moment) -> bool {
        let mut state = self.state();
        let mut gone = state.expire(self.keepalive, now);
        if state.kept.iter().filter(|kept| kept.key == key).count() >= VENDOR_KEPT_PER_HOST_MAX {
            let oldest = state.kept.iter().position(|kept| kept.key == key);
            gone.extend(oldest.and_then(|index| state.kept.remove(index)));
        }
        if state.kept.len() >= VENDOR_KEPT_MAX {
            gone.extend(state.kept.pop_front());
        }
        state.kept.push_back(Kept { key, since: now, link });
        let start = !state.swept;
        state.swept = true;
        drop(state);
        start
    }

    /// Closes what has expired; when to look again, unless nothing is left.
    fn expire(&self) -> Option<Instant> {
        let mut state = self.state();
        let expired = state.expire(self.keepalive, Moment::now());
        let next = state.kept.front().map(|kept| kept.since.steady + self.keepalive);
        state.swept = next.is_some();
        drop(state);
        drop(expired);
        next
    }

    fn state(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L> State<L> {
    fn expire(&mut self, keepalive: Duration, now: Moment) -> Vec<Kept<L>> {
        let expired =
            self.kept.iter().take_while(|kept| kept.since.is_past(keepalive, now)).count();
        self.kept.drain(..expired).collect()
    }
}

/// Closes connections when their time has ended, as long as there are some.
async fn sweep<L: Send + 'static>(pool: Weak<Pool<L>>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.expire()) {
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPALIVE: Duration = Duration::from_secs(4);

    fn key(tenant: &str, host: &str) -> Key {
        let target = "/".to_owned();
        let (scheme, host) = (Scheme::Https, host.to_owned());
        Key::new(tenant, &SentUrl { scheme, host, port: None, target })
    }

    fn pool() -> Pool<usize> {
        Pool::new(KEEPALIVE)
    }

    fn later(moment: Moment, span: Duration) -> Moment {
        Moment { steady: moment.steady + span, calendar: moment.calendar + span }
    }

    // covers: AL-218
    #[test]
    fn connection_is_kept_for_its_time_and_not_longer() {
        assert_eq!(crate::VendorClient::KEEPALIVE, KEEPALIVE, "the default");
        let (pool, key, now) = (pool(), key("a", "h.example"), Moment::now());
        let check = |span, expected| {
            pool.keep_at(key.clone(), 1, now);
            assert_eq!(pool.take_at(&key, later(now, span)), expected);
        };
        check(Duration::ZERO, Some(1));
        check(KEEPALIVE - Duration::from_nanos(1), Some(1));
        check(KEEPALIVE, None);
        check(Duration::from_secs(6), None);
    }

    #[test]
    fn time_in_which_the_process_stood_still_counts() {
        let (pool, key, now) = (pool(), key("a", "h.example"), Moment::now());
        pool.keep_at(key.clone(), 1, now);
        let thawed = Moment { steady: now.steady, calendar: now.calendar + KEEPALIVE };
        assert_eq!(pool.take_at(&key, thawed), None);
        pool.keep_at(key.clone(), 2, now);
        let set_back = Moment { steady: now.steady, calendar: now.calendar - KEEPALIVE };
        assert_eq!(pool.take_at(&key, set_back), Some(2));
    }

    // covers: AL-219
    #[test]
    fn connection_serves_one_tenant_scheme_host_and_port() {
        let (pool, now) = (pool(), Moment::now());
        pool.keep_at(key("a", "h.example"), 1, now);
        let check = |other: Key| assert_eq!(pool.take_at(&other, now), None);
        check(key("b", "h.example"));
        check(key("", "h.example"));
        check(key("a", "i.example"));
        check(Key { port: 8443, ..key("a", "h.example") });
        check(Key { scheme: Scheme::Http, ..key("a", "h.example") });
        assert_eq!(pool.take_at(&key("a", "h.example"), now), Some(1));
        assert_eq!(pool.take_at(&key("a", "h.example"), now), None);
    }

    #[test]
    fn latest_connection_is_taken_first() {
        let (pool, key, now) = (pool(), key("a", "h.example"), Moment::now());
        for number in 0..3 {
            pool.keep_at(key.clone(), number, now);
        }
        let taken: Vec<_> = std::iter::from_fn(|| pool.take_at(&key, now)).collect();
        assert_eq!(taken, [2, 1, 0]);
    }

    #[test]
    fn only_so_many_connections_are_kept() {
        let (pool, now) = (pool(), Moment::now());
        let kept = || pool.state().kept.len();
        let first = key("a", "h.example");
        for number in 0..=VENDOR_KEPT_PER_HOST_MAX {
            pool.keep_at(first.clone(), number, now);
        }
        assert_eq!(kept(), VENDOR_KEPT_PER_HOST_MAX);
        for number in 0..VENDOR_KEPT_MAX {
            pool.keep_at(key(&number.to_string(), "h.example"), number, now);
        }
        assert_eq!(kept(), VENDOR_KEPT_MAX);
        assert_eq!(pool.take_at(&first, now), None);
        assert_eq!(pool.take_at(&key("0", "h.example"), now), Some(0));
    }
}
