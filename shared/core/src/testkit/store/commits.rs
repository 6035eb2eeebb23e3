//! Promises of single items and of commits.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::{Bench, delete, item, key, lost, partition, put, put_until, tally};
use crate::limits::{
    COMMIT_WRITES_MAX, COUNTER_MAX, ITEM_BYTES_MAX, MESSAGE_BYTES_MAX, QUEUE_DELAY_MAX,
    SORT_KEY_BYTES_MAX,
};
use crate::ports::{Clock, Commit, Committed, Item, Key, Outgoing, Query, QueueName, When, Write};

/// What was put is what is read.
pub async fn an_item_is_read_as_it_was_put(bench: &Bench) {
    let key = key();
    let expires_at = bench.clock.now().plus(Duration::from_secs(60));
    assert_eq!(bench.write(vec![put_until(&key, b"data", expires_at)]).await, Committed::Done);
    let expected = Item { expires_at: Some(expires_at), ..item(b"data", 1) };
    assert_eq!(bench.get(&key).await, Some(expected));
}

/// What was not put is not there, beside what was.
pub async fn a_missing_item_is_none(bench: &Bench) {
    let key = key();
    bench.write(vec![put(&key, b"data", When::Always)]).await;
    assert_eq!(bench.get(&Key::new(&key.partition, "ite")).await, None);
    assert_eq!(bench.get(&Key::new(&key.partition, "item ")).await, None);
    assert_eq!(bench.get(&Key::new(format!("{}i", key.partition), "tem")).await, None);
}

/// Each write of an item, of whatever kind, gives it a higher revision.
pub async fn revisions_start_at_1_and_grow_with_every_write(bench: &Bench) {
    let key = key();
    let mut last = 0;
    let writes = [
        put(&key, b"1", When::Always),
        put(&key, b"1", When::Always),
        tally(&key, b"", &[("n", 1)], None),
        tally(&key, b"", &[], None),
        put(&key, b"2", When::Present),
    ];
    for (count, write) in writes.into_iter().enumerate() {
        bench.write(vec![write]).await;
        let revision = bench.get(&key).await.expect("it was just written").revision;
        assert!(last < revision, "{last} < {revision}");
        assert!(count != 0 || revision == 1, "the first revision is {revision}");
        last = revision;
    }
}

/// Nothing of the item before is left after a put.
pub async fn a_put_replaces_data_counters_and_expiry(bench: &Bench) {
    let key = key();
    let expires_at = bench.clock.now().plus(Duration::from_secs(60));
    bench.write(vec![tally(&key, b"old", &[("n", 5)], Some(expires_at))]).await;
    bench.write(vec![put(&key, b"new", When::Always)]).await;
    assert_eq!(bench.get(&key).await, Some(item(b"new", 2)));
}

/// A put that needs absence is done where nothing stands, and lost to what stands there.
pub async fn when_absent_wins_once_and_the_loser_sees_what_stands_there(bench: &Bench) {
    let key = key();
    assert_eq!(bench.write(vec![put(&key, b"a", When::Absent)]).await, Committed::Done);
    let answer = bench.write(vec![put(&key, b"b", When::Absent)]).await;
    assert_eq!(answer, lost(0, Some(item(b"a", 1))));
    assert_eq!(bench.get(&key).await, Some(item(b"a", 1)));
}

/// A write that needs presence is lost where nothing stands.
pub async fn when_present_needs_a_live_item(bench: &Bench) {
    let key = key();
    assert_eq!(bench.write(vec![put(&key, b"a", When::Present)]).await, lost(0, None));
    assert_eq!(bench.write(vec![delete(&key, When::Present)]).await, lost(0, None));
    bench.write(vec![put(&key, b"a", When::Always)]).await;
    assert_eq!(bench.write(vec![put(&key, b"b", When::Present)]).await, Committed::Done);
    assert_eq!(bench.write(vec![delete(&key, When::Present)]).await, Committed::Done);
    assert_eq!(bench.get(&key).await, None);
}

/// A write that needs a revision is lost to any other, and to absence.
pub async fn when_revision_needs_just_that_revision(bench: &Bench) {
    let key = key();
    assert_eq!(bench.write(vec![put(&key, b"a", When::Revision(1))]).await, lost(0, None));
    bench.write(vec![put(&key, b"a", When::Always)]).await;
    for revision in [0, 2] {
        let answer = bench.write(vec![put(&key, b"b", When::Revision(revision))]).await;
        assert_eq!(answer, lost(0, Some(item(b"a", 1))));
        let answer = bench.write(vec![delete(&key, When::Revision(revision))]).await;
        assert_eq!(answer, lost(0, Some(item(b"a", 1))));
    }
    assert_eq!(bench.write(vec![put(&key, b"b", When::Revision(1))]).await, Committed::Done);
    assert_eq!(bench.write(vec![delete(&key, When::Revision(2))]).await, Committed::Done);
    assert_eq!(bench.get(&key).await, None);
}

/// Removing what is absent is fine.
pub async fn a_delete_removes_and_may_be_repeated(bench: &Bench) {
    let key = key();
    bench.write(vec![put(&key, b"a", When::Always)]).await;
    for _ in 0..2 {
        assert_eq!(bench.write(vec![delete(&key, When::Always)]).await, Committed::Done);
        assert_eq!(bench.get(&key).await, None);
    }
    assert_eq!(bench.write(vec![delete(&key, When::Absent)]).await, Committed::Done);
    bench.write(vec![put(&key, b"b", When::Absent)]).await;
    assert_eq!(bench.get(&key).await, Some(item(b"b", 1)));
}

/// One lost condition, also that of the last write, undoes all.
pub async fn a_lost_commit_leaves_nothing_of_its_writes(bench: &Bench) {
    let p = partition();
    let [new, old, gone, counted, taken] =
        ["new", "old", "gone", "counted", "taken"].map(|sort| Key::new(&p, sort));
    let setup = [&old, &gone, &taken].map(|key| put(key, b"before", When::Always));
    bench.write(setup.to_vec()).await;
    let answer = bench
        .write(vec![
            put(&new, b"after", When::Absent),
            put(&old, b"after", When::Always),
            delete(&gone, When::Present),
            tally(&counted, b"after", &[("n", 1)], None),
            put(&taken, b"after", When::Absent),
        ])
        .await;
    let before = Some(item(b"before", 1));
    assert_eq!(answer, lost(4, before.clone()));
    let mut found = Vec::new();
    for key in [&new, &old, &gone, &counted, &taken] {
        found.push(bench.get(key).await);
    }
    assert_eq!(found, [None, before.clone(), before.clone(), None, before]);
}

/// Of several conditions that fail, the first is named.
pub async fn the_first_condition_that_fails_is_named(bench: &Bench) {
    let p = partition();
    let keys = ["a", "b", "c"].map(|sort| Key::new(&p, sort));
    bench.write(vec![put(&keys[1], b"b", When::Always), put(&keys[2], b"c", When::Always)]).await;
    let writes = keys.iter().map(|key| put(key, b"new", When::Absent)).collect();
    assert_eq!(bench.write(writes).await, lost(1, Some(item(b"b", 1))));
}

/// As many writes as a commit may have.
pub async fn a_commit_of_100_writes_happens_whole(bench: &Bench) {
    let p = partition();
    let writes = (0..COMMIT_WRITES_MAX)
        .map(|n| put(&Key::new(&p, format!("{n:03}")), b"x", When::Absent))
        .collect();
    assert_eq!(bench.write(writes).await, Committed::Done);
    let page = bench.store.query(Query::prefix(&p, "0")).await.expect("the store can be read");
    assert_eq!((page.items.len(), page.next), (COMMIT_WRITES_MAX, None));
}

/// Of many writers at a time, one is done, and all others see what it wrote.
pub async fn of_64_concurrent_writers_under_one_condition_one_is_done(bench: &Bench) {
    let key = key();
    let answers = join_all((0..64).map(|n: u32| {
        let write = put(&key, &n.to_be_bytes(), When::Absent);
        async move { (n, bench.write(vec![write]).await) }
    }))
    .await;
    let winners: Vec<u32> =
        answers.iter().filter(|(_, answer)| *answer == Committed::Done).map(|(n, _)| *n).collect();
    let [winner] = winners[..] else { panic!("done are {winners:?}") };
    let stands = item(&winner.to_be_bytes(), 1);
    for (n, answer) in answers.into_iter().filter(|(n, _)| *n != winner) {
        assert_eq!(answer, lost(0, Some(stands.clone())), "writer {n}");
    }
    assert_eq!(bench.get(&key).await, Some(stands));
}

/// The first tally makes the item; later ones add, and leave its data alone.
pub async fn a_tally_creates_then_adds_and_keeps_the_data(bench: &Bench) {
    let key = key();
    bench.write(vec![tally(&key, b"first", &[("a", 1), ("b", -2)], None)]).await;
    bench.write(vec![tally(&key, b"second", &[("b", 5), ("c", 7), ("c", 1)], None)]).await;
    let counters = [("a", 1), ("b", 3), ("c", 8)].map(|(name, n)| (name.to_owned(), n));
    let expected = Item { counters: BTreeMap::from(counters), ..item(b"first", 2) };
    assert_eq!(bench.get(&key).await, Some(expected));
}

/// Tallies do not race.
pub async fn concurrent_tallies_lose_nothing(bench: &Bench) {
    let key = key();
    let answers = join_all((0..50).map(|_| bench.write(vec![tally(&key, b"", &[("n", 2)], None)])));
    assert!(answers.await.into_iter().all(|answer| answer == Committed::Done));
    let found = bench.get(&key).await.expect("it was written");
    assert_eq!((found.counters["n"], found.revision), (100, 50));
}

/// A counter neither wraps nor fails.
pub async fn a_counter_stops_at_38_digits_either_way(bench: &Bench) {
    let key = key();
    for (add, expected) in [
        (COUNTER_MAX, COUNTER_MAX),
        (0, COUNTER_MAX),
        (1, COUNTER_MAX),
        (i128::MAX, COUNTER_MAX),
        (-COUNTER_MAX, 0),
        (i128::MIN, -COUNTER_MAX),
        (-1, -COUNTER_MAX),
    ] {
        bench.write(vec![tally(&key, b"", &[("n", add)], None)]).await;
        assert_eq!(bench.get(&key).await.expect("it was written").counters["n"], expected);
    }
}

/// Past its time an item does not exist: not for reads, not for conditions, not for tallies.
pub async fn an_expired_item_is_absent_to_every_method(bench: &Bench) {
    let p = partition();
    let keys = ["a", "b", "c", "d", "e"].map(|sort| Key::new(&p, sort));
    let expires_at = bench.clock.now().plus(Duration::from_secs(10));
    let writes = keys.iter().map(|key| put_until(key, b"old", expires_at)).collect();
    bench.write(writes).await;
    let all = || async { bench.store.query(Query::prefix(&p, "")).await.expect("readable").items };
    bench.clock.advance(Duration::from_millis(9_999));
    assert_eq!(all().await.len(), 5);
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(all().await, []);
    let [a, b, c, d, e] = &keys;
    assert_eq!(bench.get(a).await, None);
    assert_eq!(bench.write(vec![put(a, b"new", When::Present)]).await, lost(0, None));
    assert_eq!(bench.write(vec![put(b, b"new", When::Revision(1))]).await, lost(0, None));
    assert_eq!(bench.write(vec![delete(c, When::Present)]).await, lost(0, None));
    assert_eq!(bench.write(vec![put(d, b"new", When::Absent)]).await, Committed::Done);
    assert_eq!(bench.get(d).await, Some(item(b"new", 1)));
    bench.write(vec![tally(e, b"new", &[("n", 1)], None)]).await;
    let counters = BTreeMap::from([("n".to_owned(), 1)]);
    assert_eq!(bench.get(e).await, Some(Item { counters, ..item(b"new", 1) }));
}

/// An item that is tallied lives on.
pub async fn a_tally_moves_the_expiry(bench: &Bench) {
    let key = key();
    let soon = bench.clock.now().plus(Duration::from_secs(10));
    let late = bench.clock.now().plus(Duration::from_secs(1000));
    bench.write(vec![tally(&key, b"x", &[], Some(soon))]).await;
    bench.write(vec![tally(&key, b"", &[], Some(late))]).await;
    bench.clock.advance(Duration::from_secs(11));
    assert_eq!(bench.get(&key).await, Some(Item { expires_at: Some(late), ..item(b"x", 2) }));
    bench.clock.advance(Duration::from_secs(1000));
    assert_eq!(bench.get(&key).await, None);
}

/// Data is opaque.
pub async fn data_of_any_bytes_and_an_empty_one_are_kept(bench: &Bench) {
    let key = key();
    let every: Vec<u8> = (0..=255).collect();
    for data in [&every[..], b""] {
        bench.write(vec![put(&key, data, When::Always)]).await;
        assert_eq!(bench.get(&key).await.expect("it was written").data, data);
    }
}

/// The limit itself is accepted.
pub async fn an_item_of_the_largest_size_is_kept(bench: &Bench) {
    let key = key();
    let data = vec![7; ITEM_BYTES_MAX - key.partition.len() - key.sort.len()];
    assert_eq!(bench.write(vec![put(&key, &data, When::Absent)]).await, Committed::Done);
    assert_eq!(bench.get(&key).await, Some(item(&data, 1)));
}

/// What passes a limit is refused whole, whatever stands beside it in the commit.
pub async fn limits_are_refused_with_an_outage_that_writes_nothing(bench: &Bench) {
    let p = partition();
    let fine = Key::new(&p, "fine");
    let other = |sort: &str| put(&Key::new(&p, sort), b"x", When::Always);
    let send = |size, delay| Commit {
        sends: vec![Outgoing { queue: QueueName::Meter, body: "x".repeat(size), delay }],
        ..Commit::default()
    };
    let writes = |writes: Vec<Write>| Commit { writes, ..Commit::default() };
    let large = put(&Key::new(&p, "x"), &vec![0; ITEM_BYTES_MAX], When::Always);
    let refused = [
        writes(vec![large]),
        writes((0..COMMIT_WRITES_MAX).map(|n| other(&n.to_string())).collect()),
        writes(vec![other(&"s".repeat(SORT_KEY_BYTES_MAX + 1))]),
        writes(vec![other("")]),
        writes(vec![other("fine")]),
        send(MESSAGE_BYTES_MAX + 1, Duration::ZERO),
        send(0, Duration::ZERO),
        send(1, QUEUE_DELAY_MAX + Duration::from_secs(1)),
    ];
    for (case, mut commit) in refused.into_iter().enumerate() {
        commit.writes.insert(0, put(&fine, b"x", When::Always));
        assert!(bench.store.commit(commit).await.is_err(), "case {case}");
    }
    let page = bench.store.query(Query::prefix(&p, "")).await.expect("the store can be read");
    assert_eq!(page.items, []);
}
