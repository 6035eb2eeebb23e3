//! Tests of the store and its queues.

mod consumers;
mod crashes;
mod faults;
mod outbox;
mod queues;
mod rates;
mod stores;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annex_core::ports::{
    Clock as _, Commit, Committed, Count, Counted, Item, Key, Outgoing, QueueName, Store as _,
    When, Write,
};
use annex_core::testkit::{ManualClock, store};
use annex_core::time::Timestamp;

use crate::testing::FaultyMedium;
use crate::{Embedded, Options};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)))
}

annex_core::store_contract!(store_in_memory, async {
    let clock = clock();
    store::Bench::new(Embedded::in_memory(clock.clone()).unwrap(), clock)
});

annex_core::store_contract!(store_in_a_file, async {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let store = open(dir.path(), &clock);
    store::Bench { store, clock, guard: Box::new(dir) }
});

fn open(dir: &Path, clock: &Arc<ManualClock>) -> Arc<Embedded> {
    Embedded::open(dir, clock.clone(), &Options::default()).unwrap()
}

fn open_on(medium: &FaultyMedium, clock: &Arc<ManualClock>) -> Arc<Embedded> {
    let options = Options { cache_bytes: 1 << 20 };
    Embedded::open_on(Box::new(medium.clone()), None, clock.clone(), &options).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("p", name)
}

fn put(name: &str, data: &[u8]) -> Commit {
    let write =
        Write::Put { key: key(name), data: data.to_vec(), expires_at: None, when: When::Always };
    Commit { writes: vec![write], ..Commit::default() }
}

fn outgoing(body: &str, delay: Duration) -> Outgoing {
    Outgoing { queue: QueueName::Resume, body: body.to_owned(), delay }
}

fn message(body: &str) -> Commit {
    delayed(body, Duration::ZERO)
}

fn delayed(body: &str, delay: Duration) -> Commit {
    Commit { sends: vec![outgoing(body, delay)], ..Commit::default() }
}

async fn commit(store: &Embedded, commit: Commit) {
    assert_eq!(store.commit(commit).await.unwrap(), Committed::Done);
}

async fn get(store: &Embedded, name: &str) -> Option<Item> {
    store.get(&key(name)).await.unwrap()
}

async fn has(store: &Embedded, name: &str) -> bool {
    get(store, name).await.is_some()
}
