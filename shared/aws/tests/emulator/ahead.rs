//! Reading ahead: one request in place of many.

use std::sync::Arc;
use std::time::Duration;

use annex_aws::DynamoStore;
use annex_aws::tap::Tap;
use annex_aws::testing::{Sandbox, is_available};
use annex_core::limits::RECENT_MAX;
use annex_core::ports::{Commit, Key, Store, When, Write};
use annex_core::testkit::ManualClock;
use annex_core::time::Timestamp;

fn key(number: usize) -> Key {
    Key::new("p", format!("s{number}"))
}

async fn put(store: &DynamoStore, number: usize) {
    let data = number.to_string().into_bytes();
    let write = Write::Put { key: key(number), data, expires_at: None, when: When::Always };
    store.commit(Commit { writes: vec![write], ..Commit::default() }).await.unwrap();
}

#[tokio::test]
async fn what_was_read_ahead_is_at_hand_for_a_minute_and_until_it_is_written() {
    if !is_available() {
        return;
    }
    let sandbox = Sandbox::new().await;
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(4_000_000_000)));
    let tap = Tap::new();
    let clients = sandbox.clients_over(tap.client()).await;
    let store = DynamoStore::new(&clients, &sandbox.table, sandbox.queues.clone(), clock.clone());
    put(&store, 1).await;
    tap.take_seen();

    // 101 different keys are two requests, however often they are named. One of them is there.
    let keys: Vec<Key> = (0..101).chain(0..101).map(key).collect();
    store.read_ahead(&keys).await.unwrap();
    store.read_ahead(&keys).await.unwrap();
    for number in [0, 1, 100] {
        let found = store.recent(&key(number)).await.unwrap().map(|item| item.data);
        assert_eq!(found, (number == 1).then(|| b"1".to_vec()), "{number}");
    }
    let sums = Tap::sum(&tap.take_seen());
    let names: Vec<&str> = sums.keys().map(String::as_str).collect();
    assert_eq!(names, ["dynamodb BatchGetItem"]);
    let tally = sums["dynamodb BatchGetItem"];
    assert_eq!((tally.requests, tally.read_units), (2, 101.0));

    put(&store, 0).await;
    let written = store.recent(&key(0)).await.unwrap().map(|item| item.data);
    assert_eq!(written, Some(b"0".to_vec()));
    tap.take_seen();
    clock.advance(RECENT_MAX + Duration::from_millis(1));
    store.recent(&key(1)).await.unwrap();
    assert_eq!(Tap::sum(&tap.take_seen())["dynamodb GetItem"].requests, 1);
}
