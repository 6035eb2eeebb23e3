//! Refused requests are filed as errors of their organization. Where a write is billed, one that repeats is counted in the
//! process and filed from time to time only: a caller that is refused a thousand times a second costs next to nothing.

use std::sync::Mutex;
use std::time::Duration;

use crate::ids::Oid;
use crate::keys;
use crate::remembered::Remembered;
use crate::time::Timestamp;

/// Different refusals that are remembered at a time.
const REFUSALS_MAX: u64 = 10_000;

/// When a refusal was filed, and how often it was seen since.
struct Seen {
    filed_at: Timestamp,
    since: u32,
}

/// Refusals by what they say.
pub(super) struct Refusals {
    /// How often one is filed at most; zero: each time.
    every: Duration,
    seen: Remembered<[u8; 32], Mutex<Seen>>,
}

impl Refusals {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, seen: Remembered::new(REFUSALS_MAX) }
    }

    /// How many times this refusal is to be filed now: it, and those before it that were not; zero: later. `now` is on
    /// the steady clock.
    pub(super) async fn due(&self, oid: Oid, component: &str, text: &str, now: Timestamp) -> u32 {
        if self.every.is_zero() {
            return 1;
        }
        let oid = oid.to_string();
        let key = keys::digest_bytes(&[oid.as_bytes(), component.as_bytes(), text.as_bytes()]);
        let mut is_new = false;
        let first = async {
            is_new = true;
            Mutex::new(Seen { filed_at: now, since: 0 })
        };
        let seen = self.seen.get_or(key, first).await;
        if is_new {
            return 1;
        }
        let mut seen = seen.lock().expect("no holder of the lock panics");
        seen.since = seen.since.saturating_add(1);
        if now.since(seen.filed_at) < self.every {
            return 0;
        }
        seen.filed_at = now;
        std::mem::take(&mut seen.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_repeated_refusal_is_counted_and_filed_when_its_time_has_come() {
        // LC-063
        let oid = Oid::new(uuid::Uuid::nil());
        let refusals = Refusals::new(Duration::from_secs(60));
        let check = async |secs, text, times| {
            let due = refusals.due(oid, "c", text, Timestamp::from_secs(secs)).await;
            assert_eq!(due, times, "{text} at {secs}");
        };
        for (secs, times) in [(0, 1), (1, 0), (59, 0)] {
            check(secs, "a", times).await;
        }
        // Another text is another refusal.
        check(59, "b", 1).await;
        for (secs, times) in [(60, 3), (61, 0), (120, 2)] {
            check(secs, "a", times).await;
        }
        let other = Oid::new(uuid::Uuid::max());
        assert_eq!(refusals.due(other, "c", "a", Timestamp::from_secs(1)).await, 1);
    }

    #[tokio::test]
    async fn without_a_time_each_is_filed() {
        let refusals = Refusals::new(Duration::ZERO);
        let due = || refusals.due(Oid::new(uuid::Uuid::nil()), "c", "a", Timestamp::from_secs(1));
        assert_eq!([due().await, due().await], [1, 1]);
    }
}
