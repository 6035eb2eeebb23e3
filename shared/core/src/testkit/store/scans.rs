//! Promises of scans.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Bench, delete, partition, put, put_until};
use crate::limits::{ITEM_BYTES_MAX, PAGE_BYTES_MAX};
use crate::ports::{Clock as _, Key, Scan, ScanPage, When, Write};

async fn page(bench: &Bench, scan: &Scan) -> ScanPage {
    bench.store.scan(scan.clone()).await.expect("the store can be scanned")
}

/// All keys that a scan finds, and how often.
async fn found(bench: &Bench, prefix: &str, limit: usize) -> BTreeMap<Key, usize> {
    let mut found = BTreeMap::new();
    let mut scan = Scan { limit, ..Scan::prefix(prefix) };
    for _ in 0..10_000 {
        let page = page(bench, &scan).await;
        assert!(page.items.len() <= limit);
        for (key, _) in page.items {
            *found.entry(key).or_default() += 1;
        }
        match page.next {
            None => return found,
            next => scan.cursor = next,
        }
    }
    panic!("a scan of few items has no end");
}

async fn fill(bench: &Bench, keys: &[Key]) {
    for chunk in keys.chunks(50) {
        bench.write(chunk.iter().map(|key| put(key, b"x", When::Always)).collect()).await;
    }
}

fn once(keys: &[Key]) -> BTreeMap<Key, usize> {
    keys.iter().map(|key| (key.clone(), 1)).collect()
}

/// Partitions of different lengths, each with items of its own, and none that only looks alike.
pub async fn a_scan_finds_every_partition_of_its_prefix_once_and_no_other(bench: &Bench) {
    let prefix = format!("{}#", partition());
    let mut inside = Vec::new();
    for tail in ["", "a", "b", "b#10", "b#2", "é", "a longer one than all the others"] {
        for sort in ["1", "2", "x"] {
            inside.push(Key::new(format!("{prefix}{tail}"), sort));
        }
    }
    let shorter = &prefix[..prefix.len() - 1];
    let outside = [
        Key::new(shorter, &*prefix),
        Key::new(format!("{shorter}$"), "1"),
        Key::new(format!("{shorter}\"b"), "1"),
        Key::new(format!("x{prefix}"), "1"),
        Key::new(prefix.to_uppercase(), "1"),
    ];
    fill(bench, &inside).await;
    fill(bench, &outside).await;
    for limit in [1, 2, 7, 1_000] {
        assert_eq!(found(bench, &prefix, limit).await, once(&inside), "pages of {limit}");
    }
}

/// A prefix that nothing has is no error.
pub async fn a_scan_without_a_match_ends_empty(bench: &Bench) {
    assert_eq!(found(bench, &partition(), 10).await, BTreeMap::new());
}

/// As to every other method, an expired item is absent.
pub async fn a_scan_leaves_out_what_has_expired(bench: &Bench) {
    let prefix = partition();
    let end = bench.clock.now().plus(Duration::from_secs(60));
    let key = |n: usize| Key::new(format!("{prefix}#{}", n % 3), n.to_string());
    bench.write((0..9).map(|n| put_until(&key(n), b"x", end)).collect()).await;
    let stays: Vec<Key> = (9..12).map(key).collect();
    fill(bench, &stays).await;
    assert_eq!(found(bench, &prefix, 2).await.len(), 12);
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(found(bench, &prefix, 2).await, once(&stays));
}

/// A page holds at most [`PAGE_BYTES_MAX`], unless its one item is larger.
pub async fn a_scan_of_large_items_comes_in_pages(bench: &Bench) {
    let prefix = partition();
    let data = vec![b'x'; ITEM_BYTES_MAX * 3 / 4];
    let keys: Vec<Key> = (0..6).map(|n| Key::new(format!("{prefix}#{n}"), "item")).collect();
    for key in &keys {
        bench.write(vec![put(key, &data, When::Always)]).await;
    }
    let mut scan = Scan::prefix(&*prefix);
    let mut seen = Vec::new();
    loop {
        let page = page(bench, &scan).await;
        let bytes: usize = page.items.iter().map(|(_, item)| item.data.len()).sum();
        assert!(bytes <= PAGE_BYTES_MAX || page.items.len() == 1);
        seen.extend(page.items.into_iter().map(|(key, _)| key));
        match page.next {
            None => break,
            next => scan.cursor = next,
        }
    }
    seen.sort();
    assert_eq!(seen, keys);
}

/// Others add, replace and remove around it; what is there from the first page to the last is found once.
pub async fn what_stands_there_during_a_whole_scan_is_in_it_once_while_others_write(bench: &Bench) {
    let prefix = partition();
    let key = |kind: &str, n: usize| Key::new(format!("{prefix}#{n:02}"), kind);
    let stays: Vec<Key> = (0..20).map(|n| key("stays", n)).collect();
    let goes: Vec<Key> = (0..20).map(|n| key("goes", n)).collect();
    fill(bench, &stays).await;
    fill(bench, &goes).await;
    let mut found: BTreeMap<Key, usize> = BTreeMap::new();
    let mut scan = Scan { limit: 3, ..Scan::prefix(&*prefix) };
    for round in 0.. {
        let page = page(bench, &scan).await;
        for (key, _) in page.items {
            *found.entry(key).or_default() += 1;
        }
        match page.next {
            None => break,
            next => scan.cursor = next,
        }
        assert!(round < 1_000, "a scan of few items has no end");
        let n = round % 20;
        let writes: Vec<Write> = vec![
            delete(&key("goes", n), When::Always),
            put(&key("comes", n), b"new", When::Always),
            put(&key("stays", n), b"replaced", When::Always),
        ];
        bench.write(writes).await;
    }
    assert!(found.values().all(|count| *count == 1));
    for key in &stays {
        assert_eq!(found.get(key), Some(&1), "{key:?}");
    }
}

/// A scan is for a tenant. One of the whole store is a mistake.
pub async fn a_scan_of_everything_is_refused(bench: &Bench) {
    assert!(bench.store.scan(Scan::prefix("")).await.is_err());
    assert!(bench.store.scan(Scan::prefix("p".repeat(2_048))).await.is_ok());
    assert!(bench.store.scan(Scan::prefix("p".repeat(2_049))).await.is_err());
}
