//! One process, one clause at a time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::fault::{Code, Fault};
use crate::ports::{Clock as _, Commit, Query, Store as _, When, Write};
use crate::testkit::{ManualClock, MemoryStore, ports, rates};

/// 20 seconds into a minute.
const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const WITHIN: Duration = Duration::from_secs(40);

struct World {
    rates: Rates,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    oid: Oid,
}

fn lock(id: &str) -> LockId {
    LockId::parse(id).unwrap()
}

fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

/// What a caller sees of a refusal.
fn seen(taken: Result<(), Refusal>) -> Option<Value> {
    let refusal = taken.err()?;
    assert_eq!((refusal.status(), refusal.code()), (429, "rate-limited"));
    refusal.details()
}

fn limit(bucket: &str, secs: u64) -> Option<Value> {
    Some(json!({ "bucket": bucket, "retryAfterSeconds": secs }))
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let rates = Rates::new(ports(store.clone(), &clock, 1));
        let oid = Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap();
        Self { rates, store, clock, oid }
    }

    /// Another process on the same store.
    fn other(&self) -> Rates {
        Rates::new(ports(self.store.clone(), &self.clock, 2))
    }

    async fn take(&self, name: &str) -> Option<Value> {
        self.take_on("one", name).await
    }

    async fn take_on(&self, id: &str, name: &str) -> Option<Value> {
        seen(self.rates.take(self.oid, &lock(id), &slug(name)).await)
    }

    async fn pass(&self, name: &str, count: u32) {
        for n in 1..=count {
            assert_eq!(self.take(name).await, None, "call {n}");
        }
    }

    /// Goes over the limit of an extension.
    async fn exceed(&self, name: &str) {
        self.pass(name, EXTENSION_RATE_MAX).await;
        assert_eq!(self.take(name).await, limit("extension", 300));
    }

    async fn take_options(&self, chooser: Chooser<'_>) -> Option<Value> {
        seen(self.rates.take_options(self.oid, &lock("one"), chooser).await)
    }

    fn counters(&self) -> BTreeMap<String, i128> {
        let key = keys::rate_window(self.oid, &lock("one"), self.clock.now());
        self.store.items().remove(&key).map(|item| item.counters).unwrap_or_default()
    }

    async fn lines(&self) -> Vec<Value> {
        let query = Query::prefix(keys::history(self.oid, &lock("one")), "");
        let page = self.store.query(query).await.unwrap();
        let read = |(_, item): &(_, crate::ports::Item)| serde_json::from_slice(&item.data);
        page.items.iter().map(|entry| read(entry).unwrap()).collect()
    }
}

fn counters(list: &[(&str, i128)]) -> BTreeMap<String, i128> {
    list.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

#[tokio::test]
async fn an_extension_does_120_things_in_a_minute_and_not_121() {
    // CH-033, CH-037 to CH-041, CH-048, CH-054, CH-055: whatever it is that is counted.
    let world = World::new();
    world.pass("dice", 120).await;
    assert_eq!(world.counters(), counters(&[("t", 120), ("e:dice", 120)]));
    assert_eq!(world.take("dice").await, limit("extension", 300));
    let until = i128::from(START.plus(EXTENSION_BLOCK).millis());
    let expected = counters(&[("t", 120), ("e:dice", 120), ("b:dice", until)]);
    assert_eq!(world.counters(), expected);
}

#[tokio::test]
async fn a_window_is_a_minute_of_the_clock() {
    let world = World::new();
    world.pass("dice", 120).await;
    world.clock.advance(WITHIN);
    world.exceed("dice").await;
}

#[tokio::test]
async fn a_block_lasts_five_minutes_to_the_millisecond_and_names_the_time_that_is_left() {
    // CH-042, CH-050, CH-051; also for a process that has to be told.
    let world = World::new();
    world.exceed("dice").await;
    let mut at = 0;
    for (millis, secs) in
        [(1, 300), (59_000, 241), (60_000, 240), (120_500, 180), (299_000, 1), (299_999, 1)]
    {
        world.clock.advance(Duration::from_millis(millis - at));
        at = millis;
        assert_eq!(world.take("dice").await, limit("extension", secs), "{millis} ms");
        let told = world.other().take(world.oid, &lock("one"), &slug("dice")).await;
        assert_eq!(seen(told), limit("extension", secs), "{millis} ms");
    }
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.take("dice").await, None);
    assert_eq!(world.other().take(world.oid, &lock("one"), &slug("dice")).await, Ok(()));
    assert_eq!(world.lines().await.len(), 1);
}

#[tokio::test]
async fn whoever_waits_as_long_as_told_is_served() {
    // CH-051, for blocks and windows that begin at any millisecond.
    for offset in [0, 1, 499, 999, 20_000, 39_998, 39_999] {
        let world = World::new();
        world.clock.advance(Duration::from_millis(offset));
        let (four, wait) = (["a", "b", "c", "d"], |refused: &Value| {
            Duration::from_secs(refused["retryAfterSeconds"].as_u64().unwrap())
        });
        for name in &four[..3] {
            world.pass(name, 100).await;
        }
        let refused = world.take("d").await.unwrap();
        assert_eq!(refused["bucket"], "lock");
        world.clock.advance(wait(&refused));
        world.exceed("d").await;
        let refused = world.take("d").await.unwrap();
        world.clock.advance(wait(&refused));
        assert_eq!(world.take("d").await, None, "{offset} ms");
    }
}

#[tokio::test]
async fn a_block_is_of_one_extension_on_one_lock() {
    // CH-043, CH-044.
    let world = World::new();
    world.exceed("dice").await;
    assert_eq!(world.take_on("two", "dice").await, None);
    assert_eq!(world.take("dice2").await, None);
    let other = Oid::parse("8cbe27f4-0000-4000-8000-138cd51389ce").unwrap();
    assert_eq!(world.rates.take(other, &lock("one"), &slug("dice")).await, Ok(()));
    assert_eq!(world.take("dice").await, limit("extension", 300));
}

#[tokio::test]
async fn a_block_adds_one_line_to_the_history() {
    // CH-045
    let world = World::new();
    world.exceed("dice").await;
    for _ in 0..10 {
        world.take("dice").await;
    }
    let mut lines = world.lines().await;
    assert!(lines[0]["_id"].take().as_str().is_some_and(|id| id.len() == 32));
    let expected = json!([{
        "_id": null,
        "type": "extension_blocked",
        "payload": { "blockedUntil": "2023-11-14T22:18:20.000Z" },
        "role": "extension",
        "extension": "dice",
        "title": "An extension is blocked for a while",
        "description":
            "dice did more than 120 things on this lock in a minute, and is blocked for 5 minutes",
        "icon": null,
        "color": null,
        "prefix": "default",
        "createdAt": START.millis(),
    }]);
    assert_eq!(Value::from(lines), expected);
}

#[tokio::test]
async fn the_other_extensions_on_the_lock_are_told_of_the_line() {
    let world = World::new();
    let names = ["deaf", "dice", "other"];
    let lock_record = json!({
        "status": "locked", "has_keyholder": false, "created_at": 0, "updated_at": 0,
        "sessions": { "deaf": "1", "dice": "2", "other": "3" },
    });
    let records = names.map(|name| match name {
        "deaf" => (keys::capability_extension(&slug(name)), json!({})),
        _ => (keys::capability_extension(&slug(name)), json!({ "url": "https://e.example" })),
    });
    let records = records.into_iter().chain([(keys::lock(world.oid, &lock("one")), lock_record)]);
    let writes = records.map(|(key, record)| Write::Put {
        key,
        data: record.to_string().into_bytes(),
        expires_at: None,
        when: When::Always,
    });
    let commit = Commit { writes: writes.collect(), ..Commit::default() };
    world.store.commit(commit).await.unwrap();
    world.exceed("dice").await;
    let told = names.map(|name| keys::outbox(world.oid, &lock("one"), &slug(name)));
    let items = world.store.items();
    let told = told.map(|outbox| items.keys().filter(|key| key.partition == outbox).count());
    assert_eq!(told, [0, 0, 1]);
    assert_eq!(world.store.take_sent().len(), 1);
}

#[tokio::test]
async fn the_next_block_may_begin_in_the_minute_in_which_the_last_one_ends() {
    let world = World::new();
    for blocks in 1..=3 {
        world.exceed("dice").await;
        world.clock.advance(EXTENSION_BLOCK - Duration::from_millis(1));
        assert_eq!(world.take("dice").await, limit("extension", 1));
        let told = world.other().take(world.oid, &lock("one"), &slug("dice")).await;
        assert_eq!(seen(told), limit("extension", 1));
        world.clock.advance(Duration::from_millis(1));
        assert_eq!(world.lines().await.len(), blocks);
    }
}

#[tokio::test]
async fn all_extensions_and_people_do_300_things_in_a_minute_and_not_301() {
    // CH-040, CH-046, CH-047
    let world = World::new();
    for name in ["a", "b"] {
        world.pass(name, 100).await;
    }
    for _ in 0..100 {
        assert_eq!(world.rates.take_user(world.oid, &lock("one")).await, Ok(()));
    }
    let full = counters(&[("t", 300), ("e:a", 100), ("e:b", 100)]);
    for _ in 0..3 {
        assert_eq!(world.take("a").await, limit("lock", 40));
        assert_eq!(seen(world.rates.take_user(world.oid, &lock("one")).await), limit("lock", 40));
        assert_eq!(world.counters(), full);
    }
    assert_eq!(world.take_on("two", "a").await, None);
    world.clock.advance(WITHIN - Duration::from_millis(1));
    assert_eq!(world.take("c").await, limit("lock", 1));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.take("c").await, None);
    assert_eq!(world.lines().await, Vec::<Value>::new());
}

#[tokio::test]
async fn of_several_limits_a_block_is_named_first_then_that_of_the_extension() {
    // CH-049
    let world = World::new();
    world.pass("a", 120).await;
    world.pass("b", 120).await;
    world.pass("c", 60).await;
    assert_eq!(world.take("c").await, limit("lock", 40));
    assert_eq!(world.take("a").await, limit("extension", 300));
    assert_eq!(world.take("a").await, limit("extension", 300));
    let told = world.other().take(world.oid, &lock("one"), &slug("a")).await;
    assert_eq!(seen(told), limit("extension", 300));
    for _ in 0..60 {
        assert_eq!(world.take_options(Chooser::User("wearer")).await, None);
    }
    assert_eq!(world.take_options(Chooser::User("wearer")).await, limit("options", 40));
}

#[tokio::test]
async fn a_caller_asks_for_choices_60_times_in_a_minute_and_not_61_times() {
    // CH-052, CH-053
    let world = World::new();
    let (dice, wearer) = (slug("dice"), slug("wearer"));
    let choosers = [
        Chooser::Extension(&dice),
        Chooser::Extension(&wearer),
        Chooser::User("wearer"),
        Chooser::User("keyholder"),
    ];
    for chooser in choosers {
        for n in 1..=60 {
            assert_eq!(world.take_options(chooser).await, None, "{chooser:?} {n}");
        }
        assert_eq!(world.take_options(chooser).await, limit("options", 40), "{chooser:?}");
    }
    let expected =
        counters(&[("o:dice", 60), ("o:wearer", 60), ("o:#wearer", 60), ("o:#keyholder", 60)]);
    assert_eq!(world.counters(), expected);
    assert_eq!(world.take("dice").await, None);
    world.clock.advance(WITHIN);
    assert_eq!(world.take_options(choosers[0]).await, None);
}

#[tokio::test]
async fn concurrent_requests_for_choices_in_a_process_use_all_60() {
    let world = World::new();
    let all = (0..64).map(|_| world.take_options(Chooser::User("wearer")));
    let refused = futures_util::future::join_all(all).await.into_iter().flatten().count();
    assert_eq!(refused, 4);
}

#[tokio::test]
async fn a_request_for_choices_that_was_counted_in_one_minute_is_not_used_in_the_next() {
    let world = World::new();
    for (advance, expected) in [(0, 2), (0, 2), (0, 4), (40, 2), (0, 2), (0, 4)] {
        world.clock.advance(Duration::from_secs(advance));
        assert_eq!(world.take_options(Chooser::User("wearer")).await, None);
        assert_eq!(world.counters(), counters(&[("o:#wearer", expected)]));
    }
}

#[tokio::test]
async fn a_chain_that_was_too_deep_counts_for_its_starter() {
    // CH-059
    let world = World::new();
    let charge = || async { world.rates.charge(world.oid, &lock("one"), &slug("dice")).await };
    world.pass("dice", 119).await;
    charge().await.unwrap();
    assert_eq!(world.counters(), counters(&[("t", 119), ("e:dice", 120)]));
    assert_eq!(world.lines().await.len(), 0);
    // The one that makes it more than 120 begins a block, in which nothing is counted.
    charge().await.unwrap();
    assert_eq!(world.lines().await.len(), 1);
    assert_eq!(world.counters()["e:dice"], 121);
    charge().await.unwrap();
    world.other().charge(world.oid, &lock("one"), &slug("dice")).await.unwrap();
    assert_eq!(world.counters()["e:dice"], 121);
    assert_eq!(world.take("dice").await, limit("extension", 300));
    world.clock.advance(EXTENSION_BLOCK);
    assert_eq!(world.take("dice").await, None);
}

#[tokio::test]
async fn a_charge_counts_on_a_lock_that_is_full() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.pass(name, 100).await;
    }
    world.rates.charge(world.oid, &lock("one"), &slug("a")).await.unwrap();
    let expected = counters(&[("t", 300), ("e:a", 101), ("e:b", 100), ("e:c", 100)]);
    assert_eq!(world.counters(), expected);
}

#[tokio::test]
async fn a_block_that_is_known_costs_no_request() {
    let world = World::new();
    world.exceed("dice").await;
    let other = world.other();
    let told = other.take(world.oid, &lock("one"), &slug("dice")).await;
    assert_eq!(seen(told), limit("extension", 300));
    // A store that cannot be written is not asked.
    world.store.refuse_writes(true);
    for rates in [&world.rates, &other] {
        let told = rates.take(world.oid, &lock("one"), &slug("dice")).await;
        assert_eq!(seen(told), limit("extension", 300));
    }
    let outage = world.rates.take(world.oid, &lock("one"), &slug("dice2")).await;
    let Err(Refusal::Other(Fault { code, .. })) = outage else { panic!("{outage:?}") };
    assert_eq!(code, Code::Unavailable);
}

#[tokio::test]
async fn counters_and_blocks_are_gone_in_time() {
    let world = World::new();
    world.exceed("dice").await;
    world.clock.advance(EXTENSION_BLOCK + 2 * RATES_KEPT);
    let left: Vec<_> = world.store.items().into_keys().map(|key| key.partition).collect();
    assert_eq!(left, [keys::history(world.oid, &lock("one"))]);
}

#[tokio::test]
async fn several_processes_share_their_counters() {
    let clock = Arc::new(ManualClock::new(START));
    let store: Arc<dyn crate::ports::Store> = Arc::new(MemoryStore::new(clock.clone()));
    let stores = vec![store; 4];
    rates::exactly_120_calls_pass_and_then_none_for_five_minutes(&stores, &clock).await;
    rates::exactly_300_calls_pass_on_a_lock_in_each_minute(&stores, &clock).await;
}
