//! What a count under bounds costs, and what it does where requests fail and many processes count.

use std::time::Duration;

use annex_aws::DynamoStore;
use annex_aws::tap::{Fault, Plan, Tap};
use annex_aws::testing::is_available;
use annex_core::ports::{Clock as _, Count, Counted, Item, Key, Store as _};
use futures_util::future::join_all;

use crate::bench::{Bench, item, tally};

fn count(key: &Key, add: &[(&str, i128)], below: &[(&str, i128)]) -> Count {
    let named = |list: &[(&str, i128)]| {
        list.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    let (add, below) = (named(add), named(below));
    Count { key: key.clone(), data: b"new".to_vec(), add, below, expires_at: None }
}

fn done(number: i128) -> Counted {
    Counted::Done([("n".to_owned(), number)].into())
}

fn refused(number: i128) -> Counted {
    Counted::Refused([("n".to_owned(), number)].into())
}

/// Names and write units of the requests since the last call.
fn requests(tap: &Tap) -> Vec<(String, u64)> {
    tap.take_seen().into_iter().map(|seen| (seen.name, seen.tally.write_units)).collect()
}

fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect()
}

#[tokio::test]
async fn a_count_is_one_request_and_one_unit_done_or_refused() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let key = Key::new("p", "s");
    let one = |bound| count(&key, &[("n", 1)], &[("n", bound)]);
    for (count, expected) in [
        (one(0), Counted::Refused([].into())),
        (one(1), done(1)),
        (one(1), refused(1)),
        (one(2), done(2)),
        (one(-7), refused(2)),
        (count(&key, &[], &[]), done(2)),
    ] {
        assert_eq!(bench.store.count(count).await.unwrap(), expected);
        assert_eq!(requests(&bench.tap), named(&[("dynamodb UpdateItem", 1)]));
    }
}

#[tokio::test]
async fn what_an_update_cannot_count_costs_one_more_request() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let keys = ["expired", "refusing", "huge", "full"].map(|sort| Key::new("p", sort));
    let soon = bench.clock.now().plus(Duration::from_secs(1));
    for key in &keys[..2] {
        let old = Count { expires_at: Some(soon), ..count(key, &[("n", 5), ("old", 1)], &[]) };
        bench.store.count(old).await.unwrap();
    }
    bench.clock.advance(Duration::from_secs(1));
    bench.requests();
    let huge = 10_i128.pow(30);
    for (count, expected, names) in [
        (
            count(&keys[0], &[("n", 1)], &[("n", 1)]),
            done(1),
            vec!["dynamodb UpdateItem", "dynamodb PutItem"],
        ),
        (
            count(&keys[1], &[("n", 1)], &[("n", 0)]),
            Counted::Refused([].into()),
            vec!["dynamodb UpdateItem"],
        ),
        (
            count(&keys[2], &[("n", huge)], &[("n", 1)]),
            done(huge),
            vec!["dynamodb GetItem", "dynamodb PutItem"],
        ),
        (count(&keys[2], &[("n", huge)], &[("n", 1)]), refused(huge), vec!["dynamodb GetItem"]),
        (
            count(&keys[2], &[("n", 1)], &[("n", huge + 1)]),
            done(huge + 1),
            vec!["dynamodb UpdateItem", "dynamodb PutItem"],
        ),
    ] {
        assert_eq!(bench.store.count(count).await.unwrap(), expected);
        assert_eq!(bench.requests(), names);
    }
    let counters = [("n".to_owned(), 1)].into();
    assert_eq!(bench.get(&keys[0]).await, Some(Item { counters, ..item(b"new", 1) }));
}

#[tokio::test]
async fn a_count_whose_answer_is_lost_or_that_is_throttled_counts_once() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    for fault in [Fault::AnswerLost, Fault::NotSent, Fault::Throttled] {
        let key = Key::new("p", format!("{fault:?}"));
        for (bound, expected) in [(1, done(1)), (1, refused(1)), (2, done(2)), (2, refused(2))] {
            bench.tap.set_plan(Plan::fault(1, fault));
            let counted = bench.store.count(count(&key, &[("n", 1)], &[("n", bound)])).await;
            assert_eq!(counted.unwrap(), expected, "{fault:?}");
            assert!(2 <= bench.tap.count(), "{fault:?}");
        }
        let counters = [("n".to_owned(), 2)].into();
        let expected = Item { counters, ..item(b"new", 2) };
        assert_eq!(bench.get(&key).await, Some(expected), "{fault:?}");
    }
}

#[tokio::test]
async fn of_64_callers_of_several_clients_exactly_as_many_get_through_as_the_bound_lets() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        let clients = bench.sandbox.clients_over(Tap::new().client()).await;
        let (table, queues) = (bench.sandbox.table.clone(), bench.sandbox.queues.clone());
        stores.push(DynamoStore::new(&clients, table, queues, bench.clock.clone()));
    }
    let [new, expired] = ["new", "expired"].map(|sort| Key::new("p", sort));
    let soon = bench.clock.now().plus(Duration::from_secs(1));
    let old = Count { expires_at: Some(soon), ..count(&expired, &[("n", 39)], &[]) };
    bench.store.count(old).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    for key in [new, expired] {
        let counted = join_all((0..64).map(|n: usize| {
            let (store, count) = (&stores[n % 4], count(&key, &[("n", 1)], &[("n", 40)]));
            async move { store.count(count).await.unwrap() }
        }));
        let (done, refused): (Vec<_>, Vec<_>) =
            counted.await.into_iter().partition(|it| matches!(it, Counted::Done(_)));
        let mut numbers: Vec<i128> = done
            .into_iter()
            .map(|it| match it {
                Counted::Done(counters) | Counted::Refused(counters) => counters["n"],
            })
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "{key:?}");
        assert_eq!(refused, vec![self::refused(40); 24], "{key:?}");
        let found = bench.get(&key).await.unwrap();
        assert_eq!((found.counters["n"], found.revision), (40, 40), "{key:?}");
    }
}

#[tokio::test]
async fn what_was_read_recently_is_read_again_after_a_count() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let key = Key::new("p", "s");
    bench.write(vec![tally(&key, &[("n", 1)])]).await.unwrap();
    for (bound, expected) in [(2, 2), (2, 2), (3, 3)] {
        bench.store.recent(&key).await.unwrap();
        bench.store.count(count(&key, &[("n", 1)], &[("n", bound)])).await.unwrap();
        let found = bench.store.recent(&key).await.unwrap().unwrap();
        assert_eq!(found.counters["n"], expected);
    }
}
