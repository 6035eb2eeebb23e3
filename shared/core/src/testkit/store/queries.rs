//! Promises of queries.

use super::{Bench, partition, put};
use crate::ports::{Key, Page, Query, When};

async fn fill(bench: &Bench, partition: &str, sorts: &[&str]) {
    for chunk in sorts.chunks(50) {
        let writes = chunk
            .iter()
            .map(|sort| put(&Key::new(partition, *sort), sort.as_bytes(), When::Always))
            .collect();
        bench.write(writes).await;
    }
}

fn range(partition: &str, from: &str, to: &str) -> Query {
    Query {
        partition: partition.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        limit: 100,
        backward: false,
    }
}

async fn query(bench: &Bench, query: Query) -> Page {
    bench.store.query(query).await.expect("the store can be read")
}

/// All pages of a query, followed by their cursors; each holds at most what was asked for.
async fn pages(bench: &Bench, mut query: Query) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    for _ in 0..1_000 {
        let page = self::query(bench, query.clone()).await;
        assert!(page.items.len() <= query.limit);
        pages.push(page.items.into_iter().map(|(sort, _)| sort).collect());
        match page.next {
            None => return pages,
            Some(next) if query.backward => query.to = next,
            Some(next) => query.from = next,
        }
    }
    panic!("a query of few items has no end");
}

async fn sorts(bench: &Bench, query: Query) -> Vec<String> {
    pages(bench, query).await.concat()
}

/// Keys are compared as bytes: no collation, no numbers, no case.
pub async fn a_sort_key_is_ordered_byte_by_byte(bench: &Bench) {
    let p = partition();
    let expected = ["\u{1}", "#", "10", "2", "A", "a", "a\u{1}", "aa", "b", "é", "\u{ffff}", "😀"];
    let mut shuffled = expected;
    shuffled.reverse();
    shuffled.swap(1, 6);
    fill(bench, &p, &shuffled).await;
    assert_eq!(sorts(bench, range(&p, "", "")).await, expected);
}

/// A range includes its start and excludes its end, and knows no other partition.
pub async fn a_query_reads_a_range_of_one_partition(bench: &Bench) {
    let p = partition();
    fill(bench, &p, &["a", "b", "c", "d"]).await;
    fill(bench, &format!("{p}b"), &["b"]).await;
    fill(bench, &p[..p.len() - 1], &["b"]).await;
    for (from, to, expected) in [
        ("", "", &["a", "b", "c", "d"][..]),
        ("b", "", &["b", "c", "d"]),
        ("", "c", &["a", "b"]),
        ("b", "d", &["b", "c"]),
        ("bb", "cc", &["c"]),
        ("a", "a\u{1}", &["a"]),
    ] {
        assert_eq!(sorts(bench, range(&p, from, to)).await, expected, "{from}..{to}");
    }
    let page = query(bench, range(&p, "b", "c")).await;
    assert_eq!(page.items[0].1.data, b"b");
}

/// From the end to the start, over the same range.
pub async fn a_query_goes_backward(bench: &Bench) {
    let p = partition();
    fill(bench, &p, &["a", "b", "c", "d"]).await;
    let back = |from, to| Query { backward: true, ..range(&p, from, to) };
    assert_eq!(sorts(bench, back("", "")).await, ["d", "c", "b", "a"]);
    assert_eq!(sorts(bench, back("b", "d")).await, ["c", "b"]);
}

/// Following the cursor gives every item once, in either direction.
pub async fn pages_of_a_query_join_without_gap_or_repeat(bench: &Bench) {
    let p = partition();
    let names: Vec<String> = (0..10).map(|n| format!("{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fill(bench, &p, &names).await;
    for limit in [1, 3, 9, 10, 11] {
        for backward in [false, true] {
            let mut expected = names.clone();
            if backward {
                expected.reverse();
            }
            let query = Query { limit, backward, ..range(&p, "", "") };
            assert_eq!(sorts(bench, query).await, expected, "{limit} {backward}");
        }
    }
}

/// A prefix is a range.
pub async fn a_query_by_prefix_reads_what_starts_with_it(bench: &Bench) {
    let p = partition();
    fill(bench, &p, &["a", "a#", "a#1", "a#2", "a$", "b"]).await;
    assert_eq!(sorts(bench, Query::prefix(&p, "a#")).await, ["a#", "a#1", "a#2"]);
    assert_eq!(sorts(bench, Query::prefix(&p, "c")).await, [""; 0]);
    assert_eq!(sorts(bench, Query::prefix(&p, "")).await.len(), 6);
}

/// A range that holds nothing, also one that ends before it starts, is no error.
pub async fn an_empty_range_is_an_empty_page(bench: &Bench) {
    let p = partition();
    fill(bench, &p, &["a", "b", "c"]).await;
    for (from, to) in [("b", "b"), ("c", "a"), ("d", "")] {
        for backward in [false, true] {
            let query = Query { backward, ..range(&p, from, to) };
            assert_eq!(sorts(bench, query).await, [""; 0], "{from}..{to}");
        }
    }
    assert_eq!(sorts(bench, range(&partition(), "", "")).await, [""; 0]);
}

/// A page is bounded in bytes too, so that nobody's memory is at risk.
pub async fn a_query_of_large_items_comes_in_pages(bench: &Bench) {
    let p = partition();
    for n in 0..8 {
        bench.write(vec![put(&Key::new(&p, n.to_string()), &[n; 300_000], When::Always)]).await;
    }
    for backward in [false, true] {
        let pages = pages(bench, Query { backward, ..range(&p, "", "") }).await;
        assert!(pages.iter().all(|page| page.len() <= 5), "{pages:?}");
        let mut all = pages.concat();
        all.sort();
        assert_eq!(all, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    }
}
