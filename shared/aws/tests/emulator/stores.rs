//! What the store promises beyond the suite: how many requests a commit is, and what is read recently.

use std::collections::BTreeMap;
use std::time::Duration;

use annex_aws::testing::is_available;
use annex_core::limits::{COUNTER_MAX, ITEM_BYTES_MAX, RECENT_MAX};
use annex_core::ports::{Clock as _, Commit, Committed, Item, Key, Query, Store as _, When, Write};

use crate::bench::{Bench, item, put, tally};

fn key() -> Key {
    Key::new("p", "s")
}

#[tokio::test]
async fn a_write_under_a_condition_is_one_request_won_or_lost() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let lost = Committed::Lost { index: 0, found: Some(item(b"a", 1)) };
    for (when, expected, request) in [
        (When::Absent, Committed::Done, "dynamodb PutItem"),
        (When::Absent, lost.clone(), "dynamodb PutItem"),
        (When::Revision(2), lost, "dynamodb PutItem"),
        (When::Revision(1), Committed::Done, "dynamodb PutItem"),
        (When::Present, Committed::Done, "dynamodb UpdateItem"),
        (When::Always, Committed::Done, "dynamodb UpdateItem"),
    ] {
        assert_eq!(bench.write(vec![put(&key(), b"a", when)]).await.unwrap(), expected, "{when:?}");
        assert_eq!(bench.requests(), [request], "{when:?}");
    }
    bench.write(vec![tally(&Key::new("p", "new"), &[("n", 1)])]).await.unwrap();
    bench.write(vec![tally(&Key::new("p", "new"), &[("n", 1), ("m", 2)])]).await.unwrap();
    assert_eq!(bench.requests(), ["dynamodb UpdateItem", "dynamodb UpdateItem"]);
    let two = vec![put(&key(), b"b", When::Always), tally(&Key::new("p", "new"), &[])];
    bench.write(two).await.unwrap();
    assert_eq!(bench.requests(), ["dynamodb TransactWriteItems"]);
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_write_costs_it_one_more_request() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let expiring = |key: &Key| Write::Put {
        key: key.clone(),
        data: b"old".to_vec(),
        expires_at: Some(bench.clock.now().plus(Duration::from_secs(1))),
        when: When::Always,
    };
    let keys: Vec<Key> = (0..4).map(|n| Key::new("p", n.to_string())).collect();
    bench.write(vec![expiring(&keys[0]), expiring(&keys[1])]).await.unwrap();
    bench.write(vec![tally(&keys[2], &[("n", 1)])]).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    bench.requests();
    // One has expired, one has counters.
    for (write, requests) in [
        (put(&keys[0], b"new", When::Always), ["dynamodb UpdateItem", "dynamodb PutItem"]),
        (tally(&keys[1], &[("n", 7)]), ["dynamodb UpdateItem", "dynamodb PutItem"]),
        (put(&keys[2], b"new", When::Present), ["dynamodb UpdateItem", "dynamodb PutItem"]),
        // More counters than fit an expression.
        (tally(&keys[3], &many(1)), ["dynamodb GetItem", "dynamodb PutItem"]),
        (tally(&keys[3], &many(2)), ["dynamodb GetItem", "dynamodb PutItem"]),
    ] {
        assert_eq!(bench.write(vec![write]).await.unwrap(), Committed::Done);
        assert_eq!(bench.requests(), requests);
    }
    assert_eq!(bench.get(&keys[0]).await, Some(item(b"new", 1)));
    let counters = BTreeMap::from([("n".to_owned(), 7)]);
    assert_eq!(bench.get(&keys[1]).await, Some(Item { counters, ..item(b"new", 1) }));
    assert_eq!(bench.get(&keys[2]).await, Some(item(b"new", 2)));
    let many = bench.get(&keys[3]).await.unwrap();
    assert_eq!((many.counters.len(), many.counters["c50"], many.revision), (51, 3, 2));
    // The same inside a transaction, where another write's condition does not hold.
    bench.write(vec![tally(&keys[0], &[("n", 1)])]).await.unwrap();
    let answer = bench
        .write(vec![
            put(&keys[0], b"newer", When::Present),
            put(&keys[1], b"newer", When::Always),
            put(&keys[2], b"newer", When::Absent),
        ])
        .await;
    assert_eq!(answer.unwrap(), Committed::Lost { index: 2, found: Some(item(b"new", 2)) });
    let both = vec![put(&keys[0], b"newer", When::Present), put(&keys[1], b"newer", When::Always)];
    assert_eq!(bench.write(both).await.unwrap(), Committed::Done);
    assert_eq!(bench.get(&keys[0]).await, Some(item(b"newer", 3)));
    assert_eq!(bench.get(&keys[1]).await, Some(item(b"newer", 2)));
}

const NAMES: [&str; 51] = {
    const TEXT: &str = "c00c01c02c03c04c05c06c07c08c09c10c11c12c13c14c15c16c17c18c19c20c21c22c23c24c25c26c27\
        c28c29c30c31c32c33c34c35c36c37c38c39c40c41c42c43c44c45c46c47c48c49c50";
    let mut names = [""; 51];
    let mut n = 0;
    while n < names.len() {
        names[n] = TEXT.split_at(3 * n).1.split_at(3).0;
        n += 1;
    }
    names
};

fn many(amount: i128) -> Vec<(&'static str, i128)> {
    NAMES.iter().map(|name| (*name, amount)).collect()
}

#[tokio::test]
async fn concurrent_tallies_of_any_kind_lose_nothing() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let other = Key::new("p", "other");
    let transactions = futures_util::future::join_all((0..4).map(|n| {
        let bench = &bench;
        let mine = Key::new("p", format!("mine-{n}"));
        let other = other.clone();
        async move {
            for _ in 0..3 {
                let writes = vec![tally(&mine, &[("n", 1)]), tally(&other, &[("n", 1)])];
                bench.write(writes).await.unwrap();
            }
        }
    }));
    transactions.await;
    assert_eq!(bench.get(&other).await.unwrap().counters["n"], 12);
}

#[tokio::test]
async fn a_counter_near_its_limit_stops_there_inside_a_transaction_too() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let other = || put(&Key::new("p", "other"), b"x", When::Always);
    for (amount, expected) in [(COUNTER_MAX, COUNTER_MAX), (1, COUNTER_MAX), (-1, COUNTER_MAX - 1)]
    {
        bench.write(vec![tally(&key(), &[("n", amount)]), other()]).await.unwrap();
        assert_eq!(bench.get(&key()).await.unwrap().counters["n"], expected);
    }
}

#[tokio::test]
async fn what_was_read_recently_is_not_read_again_until_this_process_writes_it() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let recent = || async { bench.store.recent(&key()).await.unwrap() };
    let get = "dynamodb GetItem";
    assert_eq!(recent().await, None);
    assert_eq!(recent().await, None);
    assert_eq!(bench.requests(), [get]);
    bench.write(vec![put(&key(), b"a", When::Absent)]).await.unwrap();
    assert_eq!(recent().await, Some(item(b"a", 1)));
    assert_eq!(recent().await, Some(item(b"a", 1)));
    assert_eq!(bench.requests(), ["dynamodb PutItem", get]);
    // Another process writes: it is seen a minute later.
    let other = bench.other();
    let writes = vec![put(&key(), b"b", When::Always)];
    other.commit(Commit { writes, ..Commit::default() }).await.unwrap();
    bench.clock.advance(RECENT_MAX - Duration::from_millis(1));
    assert_eq!(recent().await, Some(item(b"a", 1)));
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(recent().await, Some(item(b"b", 2)));
    assert_eq!(bench.requests(), [get]);
    // A write that is lost shows that what is remembered is old.
    let writes = vec![put(&key(), b"c", When::Always)];
    other.commit(Commit { writes, ..Commit::default() }).await.unwrap();
    bench.write(vec![put(&key(), b"d", When::Absent)]).await.unwrap();
    assert_eq!(recent().await, Some(item(b"c", 3)));
}

#[tokio::test]
async fn a_page_of_expired_items_is_empty_and_has_a_next_one() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let soon = bench.clock.now().plus(Duration::from_secs(1));
    let write = |n: usize| Write::Put {
        key: Key::new("p", format!("{n:02}")),
        data: Vec::new(),
        expires_at: (n != 7).then_some(soon),
        when: When::Always,
    };
    bench.write((0..10).map(write).collect()).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    for backward in [false, true] {
        let mut query = Query { limit: 2, backward, ..Query::prefix("p", "") };
        let mut found = Vec::new();
        for _ in 0..10 {
            let page = bench.store.query(query.clone()).await.unwrap();
            found.extend(page.items.into_iter().map(|(sort, _)| sort));
            match page.next {
                None => break,
                Some(next) if backward => query.to = next,
                Some(next) => query.from = next,
            }
        }
        assert_eq!(found, ["07"], "{backward}");
    }
}

#[tokio::test]
async fn sort_keys_of_the_largest_size_come_in_pages_too() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let sorts = ["a", "\u{7f}", "\u{d7ff}", "\u{e000}", "\u{10ffff}"]
        .map(|end| format!("{}{end}", "k".repeat(1024 - end.len())));
    let mut expected = sorts.to_vec();
    expected.sort();
    let writes = sorts.iter().map(|sort| put(&Key::new("p", sort), b"", When::Always)).collect();
    bench.write(writes).await.unwrap();
    let mut query = Query { limit: 1, ..Query::prefix("p", "k") };
    let mut found = Vec::new();
    for _ in 0..10 {
        let page = bench.store.query(query.clone()).await.unwrap();
        found.extend(page.items.into_iter().map(|(sort, _)| sort));
        match page.next {
            None => break,
            Some(next) => query.from = next,
        }
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_item_of_the_largest_size_is_kept_by_every_kind_of_write() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let far = bench.clock.now().plus(Duration::from_secs(1_000_000));
    let data = vec![7; ITEM_BYTES_MAX - 4];
    for (n, when) in [When::Absent, When::Always, When::Always, When::Present].iter().enumerate() {
        let key = Key::new("p", format!("{:03}", n / 2));
        let write = Write::Put { key, data: data.clone(), expires_at: Some(far), when: *when };
        assert_eq!(bench.write(vec![write.clone()]).await.unwrap(), Committed::Done, "{when:?}");
    }
    let add = vec![("n".to_owned(), 1)];
    let counted = |size: usize| Write::Tally {
        key: Key::new("p", "tal"),
        data: vec![7; size],
        add: add.clone(),
        expires_at: Some(far),
    };
    let most = ITEM_BYTES_MAX - 4 - 22;
    assert!(bench.write(vec![counted(most + 1)]).await.is_err());
    assert_eq!(bench.write(vec![counted(most)]).await.unwrap(), Committed::Done);
    assert_eq!(bench.write(vec![counted(most)]).await.unwrap(), Committed::Done);
    // It has grown as far as it can.
    let names: Vec<(String, i128)> =
        (0..50).map(|n| (format!("{n}{}", "x".repeat(100)), 1)).collect();
    let more =
        Write::Tally { key: Key::new("p", "tal"), data: vec![], add: names, expires_at: None };
    assert!(bench.write(vec![more]).await.is_err());
}
