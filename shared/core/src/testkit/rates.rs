//! What rates promise over several processes on one store, for every adapter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use uuid::Uuid;

use super::{ManualClock, ports};
use crate::capability::id::{LockId, Slug};
use crate::capability::rate::Rates;
use crate::capability::refusal::{Bucket, Refusal};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{EXTENSION_BLOCK, EXTENSION_RATE_MAX, LOCK_RATE_MAX};
use crate::ports::{Clock as _, Query, Store};
use crate::time::Timestamp;

const CALLERS: usize = 64;

/// Processes, and a lock that no other test uses.
struct World {
    processes: Vec<Rates>,
    oid: Oid,
    lock: LockId,
}

impl World {
    fn new(stores: &[Arc<dyn Store>], clock: &Arc<ManualClock>) -> Self {
        // The middle of a minute, so that nothing depends on where the clock stood.
        let minute = clock.now().secs().div_euclid(60) + 1;
        clock.set_now(Timestamp::from_secs(minute * 60 + 20));
        let processes = (1..).zip(stores);
        let processes =
            processes.map(|(seed, store)| Rates::new(ports(store.clone(), clock, seed))).collect();
        let oid = Oid::parse(&Uuid::new_v4().to_string()).expect("it is a UUID");
        Self { processes, oid, lock: LockId::parse("lock").expect("it is a word") }
    }

    /// So many callers at a time, spread over the processes, each with so many calls one after the other: how often
    /// each outcome came.
    async fn call(&self, slugs: &[Slug], calls: usize) -> BTreeMap<String, u32> {
        let callers = (0..CALLERS).map(async |n| {
            let (rates, slug) =
                (&self.processes[n % self.processes.len()], &slugs[n % slugs.len()]);
            let mut outcomes = Vec::new();
            for _ in 0..calls {
                outcomes.push(outcome(rates.take(self.oid, &self.lock, slug).await));
            }
            outcomes
        });
        let mut found = BTreeMap::new();
        for outcome in join_all(callers).await.into_iter().flatten() {
            *found.entry(outcome).or_default() += 1;
        }
        found
    }
}

fn outcome(taken: Result<(), Refusal>) -> String {
    match taken {
        Ok(()) => "passed".to_owned(),
        Err(Refusal::RateLimited { bucket, retry_after }) => {
            format!("{} {retry_after}", bucket.word())
        }
        Err(refusal) => refusal.body(),
    }
}

fn slugs(names: &[&str]) -> Vec<Slug> {
    names.iter().map(|name| Slug::parse(name).expect("it is a slug")).collect()
}

fn outcomes(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(outcome, count)| ((*outcome).to_owned(), *count)).collect()
}

/// CH-041, CH-042, CH-045, CH-050, CH-051: of 64 callers at a time in processes on these stores exactly 120 calls pass,
/// and then none for five minutes, with one line in the history.
///
/// # Panics
/// Where that does not hold.
pub async fn exactly_120_calls_pass_and_then_none_for_five_minutes(
    stores: &[Arc<dyn Store>],
    clock: &Arc<ManualClock>,
) {
    let world = World::new(stores, clock);
    let slug = slugs(&["one"]);
    let all = u32::try_from(CALLERS).unwrap_or(u32::MAX);
    let expected =
        [("passed", EXTENSION_RATE_MAX), ("extension 300", 3 * all - EXTENSION_RATE_MAX)];
    assert_eq!(world.call(&slug, 3).await, outcomes(&expected));
    clock.advance(Duration::from_secs(60));
    assert_eq!(world.call(&slug, 1).await, outcomes(&[("extension 240", all)]));
    clock.advance(EXTENSION_BLOCK - Duration::from_secs(60) - Duration::from_millis(1));
    assert_eq!(world.call(&slug, 1).await, outcomes(&[("extension 1", all)]));
    let history = Query::prefix(keys::history(world.oid, &world.lock), "");
    let lines = stores[0].query(history).await.expect("the store can be read").items.len();
    assert_eq!(lines, 1);
    clock.advance(Duration::from_millis(1));
    assert_eq!(world.call(&slug, 1).await, outcomes(&[("passed", all)]));
}

/// CH-046, CH-047: of 64 callers at a time from four extensions exactly 300 calls pass on a lock, and again in the next
/// minute.
///
/// # Panics
/// Where that does not hold.
pub async fn exactly_300_calls_pass_on_a_lock_in_each_minute(
    stores: &[Arc<dyn Store>],
    clock: &Arc<ManualClock>,
) {
    let world = World::new(stores, clock);
    let four = slugs(&["one", "two", "three", "four"]);
    let calls = u32::try_from(CALLERS * 6).unwrap_or(u32::MAX);
    let refused = format!("{} 40", Bucket::Lock.word());
    let expected = outcomes(&[("passed", LOCK_RATE_MAX), (&refused, calls - LOCK_RATE_MAX)]);
    assert_eq!(world.call(&four, 6).await, expected);
    clock.advance(Duration::from_secs(60));
    assert_eq!(world.call(&four, 6).await, expected);
}
