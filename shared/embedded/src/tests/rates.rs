//! Rates over several callers of one store, and over its restarts.

use annex_core::capability::id::{LockId, Slug};
use annex_core::capability::rate::Rates;
use annex_core::capability::refusal::{Bucket, Refusal};
use annex_core::ids::Oid;
use annex_core::limits::{EXTENSION_BLOCK, EXTENSION_RATE_MAX};
use annex_core::ports::Store;
use annex_core::testkit::{ports, rates};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn of_64_concurrent_callers_exactly_as_many_get_through_as_may() {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let store: Arc<dyn Store> = open(dir.path(), &clock);
    let stores = vec![store; 4];
    rates::exactly_120_calls_pass_and_then_none_for_five_minutes(&stores, &clock).await;
    rates::exactly_300_calls_pass_on_a_lock_in_each_minute(&stores, &clock).await;
}

#[tokio::test]
async fn counters_and_blocks_outlive_a_restart() {
    // CH-042
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let (oid, lock) = (Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap(), "lock");
    let (lock, slug) = (LockId::parse(lock).unwrap(), Slug::parse("dice").unwrap());
    let open = || Rates::new(ports(open(dir.path(), &clock), &clock, 1));
    for _ in 0..2 {
        let rates = open();
        for _ in 0..EXTENSION_RATE_MAX / 2 {
            assert_eq!(rates.take(oid, &lock, &slug).await, Ok(()));
        }
    }
    let refused =
        |retry_after| Err(Refusal::RateLimited { bucket: Bucket::Extension, retry_after });
    assert_eq!(open().take(oid, &lock, &slug).await, refused(300));
    clock.advance(Duration::from_secs(60));
    assert_eq!(open().take(oid, &lock, &slug).await, refused(240));
    clock.advance(EXTENSION_BLOCK - Duration::from_secs(60));
    assert_eq!(open().take(oid, &lock, &slug).await, Ok(()));
}

#[tokio::test]
async fn a_count_costs_one_sync_and_a_refused_one_none() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    let count = |bound| Count {
        key: key("a"),
        data: Vec::new(),
        add: vec![("n".to_owned(), 1)],
        below: vec![("n".to_owned(), bound)],
        expires_at: None,
    };
    for (bound, syncs) in [(1, 1), (1, 0), (2, 1), (2, 0)] {
        let before = medium.syncs();
        store.count(count(bound)).await.unwrap();
        assert_eq!(medium.syncs() - before, syncs);
    }
    medium.fail_writes(true);
    assert!(store.count(count(3)).await.is_err_and(|outage| outage.write_refused));
    medium.fail_writes(false);
    let done = Counted::Done([("n".to_owned(), 3)].into());
    assert_eq!(store.count(count(3)).await.unwrap(), done);
    store.close();
    assert!(store.count(count(4)).await.is_err());
}
