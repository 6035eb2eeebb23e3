//! Disks that fail: nothing is lost, nothing half done, reads go on, and writes come back.

use super::*;

async fn refused(store: &Embedded, commit: Commit) {
    let outage = store.commit(commit).await.expect_err("the disk takes nothing");
    assert!(outage.write_refused, "{outage}");
}

async fn check_full_disk(medium: &FaultyMedium, fail: impl Fn(&FaultyMedium, bool)) {
    let clock = clock();
    let store = open_on(medium, &clock);
    // More than the cache of these tests holds, so that reads go to the disk.
    for n in 0..20 {
        commit(&store, put(&format!("before{n}"), &[n; 300_000])).await;
    }
    fail(medium, true);
    for _ in 0..3 {
        refused(&store, put("b", b"x")).await;
        for n in 0..20 {
            assert!(has(&store, &format!("before{n}")).await);
        }
        assert!(!has(&store, "b").await);
    }
    fail(medium, false);
    assert!(!has(&store, "b").await);
    commit(&store, put("b", b"y")).await;
    assert_eq!(get(&store, "b").await.unwrap().revision, 1);
    drop(store);
    let store = open_on(medium, &clock);
    assert!(has(&store, "before0").await && has(&store, "before19").await);
    assert_eq!(get(&store, "b").await.unwrap().data, b"y");
}

#[tokio::test]
async fn on_a_full_disk_commits_are_refused_reads_go_on_and_space_mends_it() {
    check_full_disk(&FaultyMedium::default(), FaultyMedium::fail_writes).await;
}

#[tokio::test]
async fn a_commit_whose_sync_failed_has_not_happened() {
    check_full_disk(&FaultyMedium::default(), FaultyMedium::fail_syncs).await;
}

#[tokio::test]
async fn whichever_change_of_the_disk_fails_nothing_is_lost_or_half_done() {
    let mut failures = 0;
    for changes in 0..40 {
        let (clock, medium) = (clock(), FaultyMedium::default());
        let store = open_on(&medium, &clock);
        commit(&store, put("a", b"x")).await;
        medium.fail_after(changes);
        let both = || {
            let writes = ["b", "c"].map(|name| put(name, &[7; 50_000]).writes.remove(0));
            Commit { writes: writes.to_vec(), ..message("sent") }
        };
        let done = store.commit(both()).await.is_ok();
        failures += usize::from(!done);
        assert!(has(&store, "a").await);
        assert_eq!((has(&store, "b").await, has(&store, "c").await), (done, done), "{changes}");

        // The power goes now; then what was not answered may have happened, but whole.
        let other = open_on(&medium.copy(), &clock);
        assert!(has(&other, "a").await);
        let found = (has(&other, "b").await, has(&other, "c").await);
        assert!(found == (done, done) || found == (true, true), "{changes}: {found:?}");

        medium.fail_writes(false);
        commit(&store, both()).await;
        commit(&store, put("d", b"x")).await;
        drop(store);
        let store = open_on(&medium, &clock);
        for name in ["a", "b", "c", "d"] {
            assert!(has(&store, name).await, "{changes}: {name}");
        }
        let sent = store.depth(QueueName::Resume).await.unwrap().ready;
        assert_eq!(sent, 1 + u64::from(done), "{changes}");
    }
    assert!((2..40).contains(&failures), "{failures} of 40 failed");
}

#[tokio::test]
async fn a_full_disk_keeps_messages_and_leftovers_for_later() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    commit(&store, message("m")).await;
    medium.fail_writes(true);
    refused(&store, message("n")).await;
    let mut consumer = consumers::Consumer::start(&store, consumers::done);
    assert_eq!(consumer.next_bodies().await, ["m"]);
    consumer.stop().await;
    medium.fail_writes(false);
    commit(&store, message("o")).await;
    drop(store);
    let store = open_on(&medium, &clock);
    let mut consumer = consumers::Consumer::start(&store, consumers::done);
    assert_eq!(consumer.next_bodies().await, ["o"]);
}
