//! Promises of counting under bounds.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::{Bench, item, key, partition, put, put_until, tally};
use crate::limits::{COUNT_COUNTERS_MAX, COUNTER_MAX, COUNTER_NAME_BYTES_MAX, ITEM_BYTES_MAX};
use crate::ports::{Clock, Count, Counted, Item, Key, Query, When};
use crate::time::Timestamp;

fn named(counters: &[(&str, i128)]) -> Vec<(String, i128)> {
    counters.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

fn counters(counters: &[(&str, i128)]) -> BTreeMap<String, i128> {
    named(counters).into_iter().collect()
}

fn count(key: &Key, add: &[(&str, i128)], below: &[(&str, i128)]) -> Count {
    let (add, below) = (named(add), named(below));
    Count { key: key.clone(), data: b"new".to_vec(), add, below, expires_at: None }
}

fn until(count: Count, expires_at: Timestamp) -> Count {
    Count { expires_at: Some(expires_at), ..count }
}

fn done(found: &[(&str, i128)]) -> Counted {
    Counted::Done(counters(found))
}

fn refused(found: &[(&str, i128)]) -> Counted {
    Counted::Refused(counters(found))
}

impl Bench {
    async fn count(&self, count: Count) -> Counted {
        self.store.count(count).await.expect("the store can be written")
    }
}

/// The first count makes the item; later ones add, and leave its data alone.
pub async fn a_count_creates_then_adds_and_keeps_the_data(bench: &Bench) {
    let key = key();
    let first = Count { data: b"first".to_vec(), ..count(&key, &[("a", 1), ("b", -2)], &[]) };
    assert_eq!(bench.count(first).await, done(&[("a", 1), ("b", -2)]));
    let answer = bench.count(count(&key, &[("b", 5), ("c", 7), ("c", 1)], &[])).await;
    assert_eq!(answer, done(&[("a", 1), ("b", 3), ("c", 8)]));
    let counters = counters(&[("a", 1), ("b", 3), ("c", 8)]);
    assert_eq!(bench.get(&key).await, Some(Item { counters, ..item(b"first", 2) }));
}

/// A bound is the first value that is refused, also where nothing stands and where it is not above zero.
pub async fn a_counter_gets_through_under_its_bound_and_not_at_it(bench: &Bench) {
    for (stands, bound, gets_through) in [
        (Some(2), 3, true),
        (Some(3), 3, false),
        (Some(4), 3, false),
        (Some(-1), 0, true),
        (Some(-5), -4, true),
        (Some(-4), -4, false),
        (None, 1, true),
        (None, 0, false),
        (None, -1, false),
        (Some(COUNTER_MAX), i128::MAX, true),
        (Some(COUNTER_MAX), COUNTER_MAX, false),
        (Some(-COUNTER_MAX), i128::MIN, false),
        (Some(-COUNTER_MAX), 1 - COUNTER_MAX, true),
    ] {
        let key = key();
        let before = stands.map(|number| ("n", number));
        if let Some(before) = before {
            bench.write(vec![tally(&key, b"old", &[before], None)]).await;
        }
        let answer = bench.count(count(&key, &[("m", 1)], &[("n", bound)])).await;
        let after: Vec<_> = before.into_iter().chain([("m", 1)]).collect();
        let expected = if gets_through { done(&after) } else { refused(before.as_slice()) };
        assert_eq!(answer, expected, "{stands:?} below {bound}");
        let found = bench.get(&key).await.map(|item| item.counters);
        let left =
            if gets_through { Some(&after[..]) } else { before.as_ref().map(std::slice::from_ref) };
        assert_eq!(found, left.map(counters), "{stands:?} below {bound}");
    }
}

/// Of two counters of which one refuses, neither is added to, and nothing else of the item changes.
pub async fn a_refused_count_changes_nothing(bench: &Bench) {
    let key = key();
    let soon = bench.clock.now().plus(Duration::from_secs(10));
    let both = |a, b| count(&key, &[("a", 1), ("b", 1)], &[("a", a), ("b", b)]);
    assert_eq!(bench.count(until(both(1, 1), soon)).await, done(&[("a", 1), ("b", 1)]));
    let stands = bench.get(&key).await;
    let late = soon.plus(Duration::from_secs(1000));
    for refusing in [both(1, 9), both(9, 1), both(1, 1)] {
        assert_eq!(bench.count(until(refusing, late)).await, refused(&[("a", 1), ("b", 1)]));
        assert_eq!(bench.get(&key).await, stands);
    }
    assert_eq!(bench.count(until(both(2, 2), late)).await, done(&[("a", 2), ("b", 2)]));
    let counters = counters(&[("a", 2), ("b", 2)]);
    let expected = Item { counters, expires_at: Some(late), ..item(b"new", 2) };
    assert_eq!(bench.get(&key).await, Some(expected));
}

/// A refused count where nothing stands makes nothing.
pub async fn a_refused_count_makes_no_item(bench: &Bench) {
    let key = key();
    assert_eq!(bench.count(count(&key, &[("n", 1)], &[("n", 0)])).await, refused(&[]));
    assert_eq!(bench.get(&key).await, None);
}

/// A count of nothing writes all the same, and without bounds always.
pub async fn a_count_gives_the_item_a_higher_revision_and_a_refused_one_does_not(bench: &Bench) {
    let key = key();
    bench.write(vec![put(&key, b"data", When::Absent)]).await;
    let mut last = 1;
    for (add, below, grows) in
        [(&[("n", 1)][..], 2, 1), (&[("n", 1)], 1, 0), (&[], 2, 1), (&[("n", 1)], 2, 1)]
    {
        bench.count(count(&key, add, &[("n", below)])).await;
        let found = bench.get(&key).await.expect("it was written");
        last += grows;
        assert_eq!((found.revision, &found.data[..]), (last, &b"data"[..]));
    }
}

/// An expired item is absent to a count: its counters are nothing, and its data is replaced.
pub async fn a_count_begins_anew_where_an_item_has_expired(bench: &Bench) {
    let p = partition();
    let keys = ["counted", "put", "refusing"].map(|sort| Key::new(&p, sort));
    let soon = bench.clock.now().plus(Duration::from_secs(10));
    for key in [&keys[0], &keys[2]] {
        bench.write(vec![tally(key, b"old", &[("n", 5), ("old", 1)], Some(soon))]).await;
    }
    bench.write(vec![put_until(&keys[1], b"old", soon)]).await;
    bench.clock.advance(Duration::from_millis(9_999));
    let one = |key: &Key| count(key, &[("n", 1)], &[("n", 3)]);
    assert_eq!(bench.count(one(&keys[0])).await, refused(&[("n", 5), ("old", 1)]));
    bench.clock.advance(Duration::from_millis(1));
    for key in &keys[..2] {
        assert_eq!(bench.count(one(key)).await, done(&[("n", 1)]));
        let counters = counters(&[("n", 1)]);
        assert_eq!(bench.get(key).await, Some(Item { counters, ..item(b"new", 1) }));
    }
    let none = count(&keys[2], &[("n", 1)], &[("n", 0)]);
    assert_eq!(bench.count(none).await, refused(&[]));
    assert_eq!(bench.get(&keys[2]).await, None);
}

/// An item that is counted lives on; one whose count is refused does not.
pub async fn a_count_moves_the_expiry_where_it_is_done(bench: &Bench) {
    let key = key();
    let soon = bench.clock.now().plus(Duration::from_secs(10));
    let late = bench.clock.now().plus(Duration::from_secs(1000));
    bench.count(until(count(&key, &[("n", 1)], &[]), soon)).await;
    bench.count(until(count(&key, &[("n", 1)], &[("n", 1)]), late)).await;
    assert_eq!(bench.get(&key).await.and_then(|item| item.expires_at), Some(soon));
    bench.count(until(count(&key, &[("n", 1)], &[("n", 2)]), late)).await;
    assert_eq!(bench.get(&key).await.and_then(|item| item.expires_at), Some(late));
    bench.count(count(&key, &[], &[])).await;
    assert_eq!(bench.get(&key).await.and_then(|item| item.expires_at), None);
}

/// Counts and tallies are of the same counters, and a put drops them.
pub async fn counts_tallies_and_puts_see_each_other(bench: &Bench) {
    let key = key();
    bench.write(vec![tally(&key, b"x", &[("n", 5), ("until", 9)], None)]).await;
    let one = || count(&key, &[("n", 1)], &[("n", 6), ("until", 10)]);
    assert_eq!(bench.count(one()).await, done(&[("n", 6), ("until", 9)]));
    assert_eq!(bench.count(one()).await, refused(&[("n", 6), ("until", 9)]));
    bench.write(vec![put(&key, b"y", When::Always)]).await;
    assert_eq!(bench.count(one()).await, done(&[("n", 1)]));
}

/// Of many callers at a time on one bound, just as many get through as it lets, and each has a number of its own.
pub async fn of_64_concurrent_callers_on_one_bound_exactly_as_many_get_through(bench: &Bench) {
    let key = key();
    let answers = join_all((0..64).map(|_| bench.count(count(&key, &[("n", 1)], &[("n", 40)]))));
    let mut numbers = Vec::new();
    for answer in answers.await {
        match answer {
            Counted::Done(counters) => numbers.push(counters["n"]),
            Counted::Refused(found) => assert_eq!(found, counters(&[("n", 40)])),
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    assert_eq!(
        bench.get(&key).await.map(|item| (item.counters["n"], item.revision)),
        Some((40, 40))
    );
}

/// Many callers at a time with bounds of their own and one that they share.
pub async fn a_shared_bound_holds_over_concurrent_callers_with_bounds_of_their_own(bench: &Bench) {
    let key = key();
    let names = ["a", "b", "c", "d"];
    let answers = join_all((0..64).map(|n| {
        let name = names[n % names.len()];
        let count = count(&key, &[("all", 1), (name, 1)], &[("all", 25), (name, 10)]);
        async move { bench.count(count).await }
    }));
    let passed = answers.await.iter().filter(|it| matches!(it, Counted::Done(_))).count();
    let found = bench.get(&key).await.expect("it was written").counters;
    assert_eq!((passed, found["all"]), (25, 25));
    assert!(names.iter().all(|name| found[*name] <= 10), "{found:?}");
    assert_eq!(names.iter().map(|name| found[*name]).sum::<i128>(), 25);
}

/// A counter neither wraps nor fails.
pub async fn a_count_stops_at_38_digits_either_way(bench: &Bench) {
    let key = key();
    for (add, expected) in [
        (COUNTER_MAX, COUNTER_MAX),
        (1, COUNTER_MAX),
        (i128::MAX, COUNTER_MAX),
        (-COUNTER_MAX, 0),
        (i128::MIN, -COUNTER_MAX),
        (-1, -COUNTER_MAX),
    ] {
        let answer = bench.count(count(&key, &[("n", add)], &[("m", 1)])).await;
        assert_eq!(answer, done(&[("n", expected)]));
    }
}

/// What passes a limit is refused whole; the limits themselves are accepted.
pub async fn limits_of_a_count_are_refused_with_an_outage_that_writes_nothing(bench: &Bench) {
    let p = partition();
    let key = Key::new(&p, "s");
    let few = |count: usize| (0..count).map(|n| (n.to_string(), 1)).collect::<Vec<_>>();
    let large = vec![7; ITEM_BYTES_MAX];
    let base = || count(&key, &[("n", 1)], &[]);
    for (case, refused) in [
        Count { key: Key::new(&p, ""), ..base() },
        Count { data: large, ..base() },
        Count { add: few(COUNT_COUNTERS_MAX + 1), ..base() },
        Count { below: few(COUNT_COUNTERS_MAX + 1), ..base() },
        Count { add: vec![(String::new(), 1)], ..base() },
        Count { below: vec![("n".repeat(COUNTER_NAME_BYTES_MAX + 1), 1)], ..base() },
    ]
    .into_iter()
    .enumerate()
    {
        assert!(bench.store.count(refused).await.is_err(), "case {case}");
    }
    let page = bench.store.query(Query::prefix(&p, "")).await.expect("the store can be read");
    assert_eq!(page.items, []);
    let most = Count { add: few(COUNT_COUNTERS_MAX), below: few(COUNT_COUNTERS_MAX), ..base() };
    assert_eq!(bench.count(most.clone()).await, Counted::Done(most.add.iter().cloned().collect()));
    assert_eq!(bench.count(most.clone()).await, Counted::Refused(most.add.into_iter().collect()));
}
