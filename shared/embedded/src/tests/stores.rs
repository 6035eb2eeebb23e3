//! The store's own promises, beyond those of the port.

use super::*;
use crate::OpenError;
use futures_util::future::join_all;

#[tokio::test]
async fn a_second_opener_is_told_that_the_store_is_in_use() {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let store = open(dir.path(), &clock);
    let second = Embedded::open(dir.path(), clock.clone(), &Options::default());
    let path = dir.path().join("annex.redb");
    assert!(matches!(&second, Err(OpenError::InUse(found)) if *found == path));
    let text = second.err().unwrap().to_string();
    assert_eq!(text, format!("{} is in use by another process", path.display()));
    drop(store);
    open(dir.path(), &clock);
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let path = dir.path().join("annex.redb");
    let text = "not a store ".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    let opened = Embedded::open(dir.path(), clock, &Options::default());
    assert!(matches!(opened, Err(OpenError::Database(_))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn the_epoch_grows_with_each_start() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    for epoch in 1..4 {
        assert_eq!(open_on(&medium, &clock).epoch(), epoch);
    }
}

#[tokio::test]
async fn items_outlive_a_restart() {
    let (clock, dir) = (clock(), tempfile::tempdir().unwrap());
    let store = open(dir.path(), &clock);
    commit(&store, put("a", b"x")).await;
    let before = get(&store, "a").await;
    drop(store);
    let store = open(dir.path(), &clock);
    assert!(before.is_some());
    assert_eq!(get(&store, "a").await, before);
}

#[tokio::test]
async fn concurrent_commits_share_syncs() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    medium.slow_syncs();
    let before = medium.syncs();
    let names: Vec<String> = (0..64).map(|n| n.to_string()).collect();
    join_all(names.iter().map(|name| commit(&store, put(name, b"x")))).await;
    let syncs = medium.syncs() - before;
    assert!((1..16).contains(&syncs), "{syncs} syncs for 64 commits");
}

#[tokio::test]
async fn a_commit_alone_costs_one_sync_and_one_that_is_lost_none() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    let before = medium.syncs();
    commit(&store, put("a", b"x")).await;
    assert_eq!(medium.syncs() - before, 1);
    let Write::Put { key, data, expires_at, .. } = put("a", b"y").writes.remove(0) else {
        unreachable!("it is a put");
    };
    let lost = Write::Put { key, data, expires_at, when: When::Absent };
    let answer = store.commit(Commit { writes: vec![lost], ..Commit::default() }).await.unwrap();
    assert!(matches!(answer, Committed::Lost { index: 0, found: Some(_) }));
    assert_eq!(medium.syncs() - before, 1);
}

#[tokio::test]
async fn a_closed_store_answers_with_outages() {
    let clock = clock();
    let store = Embedded::in_memory(clock).unwrap();
    commit(&store, put("a", b"x")).await;
    store.close();
    store.close();
    assert!(store.commit(put("b", b"x")).await.is_err());
}

#[tokio::test]
async fn a_sweep_removes_expired_items_and_their_index_and_keeps_the_others() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    let until = |secs| Some(clock.now().plus(Duration::from_secs(secs)));
    let write = |name: String, expires_at| Write::Put {
        key: key(&name),
        data: Vec::new(),
        expires_at,
        when: When::Always,
    };
    for n in 0..300 {
        let writes = vec![
            write(format!("soon{n}"), until(60)),
            write(format!("late{n}"), until(100_000)),
            write(format!("moved{n}"), until(60)),
            write(format!("always{n}"), None),
        ];
        commit(&store, Commit { writes, ..Commit::default() }).await;
        let writes = vec![write(format!("moved{n}"), until(100_000))];
        commit(&store, Commit { writes, ..Commit::default() }).await;
    }
    assert_eq!(store.sweep().await.unwrap(), 0);
    clock.advance(Duration::from_secs(7200));
    assert_eq!(store.sweep().await.unwrap(), 300);
    assert_eq!(stored(&store), (900, 600));
    clock.advance(Duration::from_secs(100_000));
    assert_eq!(store.sweep().await.unwrap(), 600);
    assert_eq!(stored(&store), (300, 0));
}

/// Items and expiry entries on disk.
fn stored(store: &Embedded) -> (u64, u64) {
    use redb::ReadableTableMetadata as _;
    let view = store.shared.engine.read().unwrap();
    let items = view.open_table(crate::tables::ITEMS).unwrap().len().unwrap();
    let expiry = view.open_table(crate::tables::EXPIRY).unwrap().len().unwrap();
    (items, expiry)
}

#[tokio::test]
async fn deleting_and_replacing_items_leaves_no_index_behind() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    let write =
        |expires_at| Write::Put { key: key("a"), data: Vec::new(), expires_at, when: When::Always };
    let day = |days: u64| Some(clock.now().plus(Duration::from_secs(days * 86_400)));
    for (write, expected) in [
        (write(day(1)), (1, 1)),
        (write(day(2)), (1, 1)),
        (write(None), (1, 0)),
        (write(day(1)), (1, 1)),
        (Write::Delete { key: key("a"), when: When::Always }, (0, 0)),
    ] {
        commit(&store, Commit { writes: vec![write], ..Commit::default() }).await;
        assert_eq!(stored(&store), expected);
    }
}
