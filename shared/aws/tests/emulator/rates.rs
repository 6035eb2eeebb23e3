//! Rates of extensions over several processes on one table, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use annex_aws::DynamoStore;
use annex_aws::tap::Tap;
use annex_aws::testing::{Sandbox, is_available};
use annex_core::capability::id::{LockId, Slug};
use annex_core::capability::rate::{Chooser, Rates};
use annex_core::capability::refusal::{Bucket, Refusal};
use annex_core::ids::Oid;
use annex_core::limits::{EXTENSION_RATE_MAX, OPTIONS_RATE_MAX};
use annex_core::ports::Store;
use annex_core::testkit::{ManualClock, ports, rates};

use crate::bench::clock;

/// The store of another process, over an HTTP client of its own.
async fn store(sandbox: &Sandbox, tap: &Tap, clock: &Arc<ManualClock>) -> Arc<dyn Store> {
    let clients = sandbox.clients_over(tap.client()).await;
    let (table, queues) = (sandbox.table.clone(), sandbox.queues.clone());
    Arc::new(DynamoStore::new(&clients, table, queues, clock.clone()))
}

async fn several() -> (Vec<Arc<dyn Store>>, Arc<ManualClock>) {
    let (sandbox, clock) = (Sandbox::new().await, clock());
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(store(&sandbox, &Tap::new(), &clock).await);
    }
    (stores, clock)
}

#[tokio::test]
async fn of_64_concurrent_callers_of_several_processes_exactly_120_pass() {
    if is_available() {
        let (stores, clock) = several().await;
        rates::exactly_120_calls_pass_and_then_none_for_five_minutes(&stores, &clock).await;
    }
}

#[tokio::test]
async fn of_64_concurrent_callers_of_several_processes_exactly_300_pass_on_a_lock() {
    if is_available() {
        let (stores, clock) = several().await;
        rates::exactly_300_calls_pass_on_a_lock_in_each_minute(&stores, &clock).await;
    }
}

#[tokio::test]
async fn a_call_costs_one_unit_a_block_that_is_known_none_and_choices_half_a_unit() {
    if !is_available() {
        return;
    }
    let (sandbox, clock, taps) = (Sandbox::new().await, clock(), [Tap::new(), Tap::new()]);
    let mut processes = Vec::new();
    for tap in &taps {
        processes.push(Rates::new(ports(store(&sandbox, tap, &clock).await, &clock, 1)));
    }
    let [rates, other] = &processes[..] else { unreachable!("there are two") };
    let cost = |tap: &Tap| {
        let seen = tap.take_seen();
        let units: u64 = seen.iter().map(|seen| seen.tally.write_units).sum();
        (seen.len(), units)
    };
    let oid = Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap();
    let lock = LockId::parse("lock").unwrap();
    let slug = Slug::parse("dice").unwrap();
    for _ in 0..EXTENSION_RATE_MAX {
        assert_eq!(rates.take(oid, &lock, &slug).await, Ok(()));
        assert_eq!(cost(&taps[0]), (1, 1));
    }
    let refused =
        |retry_after| Err(Refusal::RateLimited { bucket: Bucket::Extension, retry_after });
    // The count that is refused, the record of the block before, the lock, and a transaction of eight writes.
    assert_eq!(rates.take(oid, &lock, &slug).await, refused(300));
    assert_eq!(cost(&taps[0]), (4, 1 + 2 * 8));
    for wait in [0, 60] {
        clock.advance(Duration::from_secs(wait));
        assert_eq!(rates.take(oid, &lock, &slug).await, refused(300 - wait));
        assert_eq!(cost(&taps[0]), (0, 0));
    }
    for expected in [(1, 1), (0, 0)] {
        assert_eq!(other.take(oid, &lock, &slug).await, refused(240));
        assert_eq!(cost(&taps[1]), expected);
    }
    for n in 0..OPTIONS_RATE_MAX {
        let chooser = Chooser::Extension(&slug);
        assert_eq!(other.take_options(oid, &lock, chooser).await, Ok(()));
        assert_eq!(cost(&taps[1]), if n % 2 == 0 { (1, 1) } else { (0, 0) });
    }
}
