//! Requests that fail, whose answer is lost, or that are throttled: a commit is still done once, or fails.

use std::time::Duration;

use annex_aws::tap::{Fault, Plan};
use annex_aws::testing::is_available;
use annex_core::ports::{Commit, Committed, Item, Key, QueueName, Store as _, When, Write};

use crate::bench::{Bench, item, message, put, tally};

fn keys() -> [Key; 2] {
    ["1", "2"].map(|sort| Key::new("p", sort))
}

/// What a commit leaves when its first request is disturbed in a way that the SDK makes good.
async fn check(bench: &Bench, fault: Fault) {
    let counted = |data: &[u8], n, revision| Item {
        counters: [("n".to_owned(), n)].into(),
        ..item(data, revision)
    };
    let put = |data: &'static [u8], when| move |key: &Key| put(key, data, when);
    let delete = |when| move |key: &Key| Write::Delete { key: key.clone(), when };
    let tally = |key: &Key| tally(key, &[("n", 2)]);
    type Make<'a> = &'a dyn Fn(&Key) -> Write;
    let cases: [(&str, bool, Make<'_>, Option<Item>); 8] = [
        ("absent", false, &put(b"a", When::Absent), Some(item(b"a", 1))),
        ("always", false, &put(b"a", When::Always), Some(item(b"a", 1))),
        ("tally", false, &tally, Some(counted(b"new", 2, 1))),
        ("revision", true, &put(b"b", When::Revision(1)), Some(item(b"b", 2))),
        ("present", true, &put(b"b", When::Present), Some(item(b"b", 2))),
        ("again", true, &tally, Some(counted(b"before", 2, 2))),
        ("delete", true, &delete(When::Revision(1)), None),
        ("delete present", true, &delete(When::Present), None),
    ];
    for (case, is_there, make, expected) in cases {
        for together in [false, true] {
            let name = format!("{case}, {fault:?}, {together}");
            let [key, other] = ["key", "other"].map(|sort| Key::new(&name, sort));
            if is_there {
                bench.write(vec![put(b"before", When::Absent)(&key)]).await.unwrap();
            }
            let mut writes = vec![make(&key)];
            if together {
                writes.push(tally(&other));
            }
            bench.tap.set_plan(Plan::fault(1, fault));
            assert_eq!(bench.write(writes).await.unwrap(), Committed::Done, "{name}");
            assert!(2 <= bench.tap.count(), "{name}");
            assert_eq!(bench.get(&key).await, expected, "{name}");
            let count = bench.get(&other).await.map(|item| item.counters["n"]);
            assert_eq!(count, together.then_some(2), "{name}");
        }
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_happens_once_and_is_done() {
    if is_available() {
        check(&Bench::new().await, Fault::AnswerLost).await;
    }
}

#[tokio::test]
async fn a_commit_that_was_not_sent_or_was_throttled_is_tried_again() {
    if is_available() {
        let bench = Bench::new().await;
        check(&bench, Fault::NotSent).await;
        check(&bench, Fault::Throttled).await;
    }
}

#[tokio::test]
async fn a_condition_that_does_not_hold_is_lost_also_where_the_request_is_sent_twice() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let [key, _] = keys();
    bench.write(vec![put(&key, b"a", When::Absent)]).await.unwrap();
    bench.tap.set_plan(Plan::fault(1, Fault::AnswerLost));
    let lost = Committed::Lost { index: 0, found: Some(item(b"a", 1)) };
    assert_eq!(bench.write(vec![put(&key, b"b", When::Absent)]).await.unwrap(), lost);
    bench.tap.set_plan(Plan::fault(1, Fault::Throttled));
    let missing = Write::Delete { key: Key::new("p", "missing"), when: When::Present };
    let lost = Committed::Lost { index: 0, found: None };
    assert_eq!(bench.write(vec![missing]).await.unwrap(), lost);
}

#[tokio::test]
async fn a_process_that_stops_between_writes_and_sends_fails_the_commit_and_keeps_the_writes() {
    if !is_available() {
        return;
    }
    for (stop, written, sent) in
        [(0, None, 0), (1, Some(item(b"a", 1)), 0), (2, Some(item(b"a", 1)), 1)]
    {
        let bench = Bench::new().await;
        let [key, _] = keys();
        bench.tap.set_plan(Plan::stop_after(stop));
        let commit = Commit {
            writes: vec![put(&key, b"a", When::Absent)],
            sends: vec![message(QueueName::Dispatch, "1")],
            ..Commit::default()
        };
        assert_eq!(bench.store.commit(commit).await.is_ok(), stop == 2);
        assert!(bench.tap.is_stopped());
        assert!(bench.store.get(&key).await.is_err());
        bench.tap.set_plan(Plan::default());
        assert_eq!(bench.get(&key).await, written);
        assert_eq!(bench.bodies(QueueName::Dispatch).await.len(), sent);
    }
}

#[tokio::test]
async fn a_request_that_is_refused_or_late_is_an_outage_or_is_waited_for() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let [key, _] = keys();
    for (fault, is_done) in [
        (Fault::Refused, false),
        (Fault::AnswerLostForGood, false),
        (Fault::Late(Duration::from_millis(20)), true),
    ] {
        bench.tap.set_plan(Plan::fault(1, fault));
        let answer = bench.write(vec![put(&key, b"a", When::Always)]).await;
        assert_eq!((answer.is_ok(), bench.tap.count()), (is_done, 1), "{fault:?}");
    }
    assert_eq!(bench.get(&key).await, Some(item(b"a", 2)));
}

#[tokio::test]
async fn messages_whose_answer_is_lost_are_sent_at_least_once() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    for fault in [Fault::NotSent, Fault::AnswerLost, Fault::Throttled] {
        bench.tap.set_plan(Plan::fault(1, fault));
        bench.send(vec![message(QueueName::Meter, &format!("{fault:?}"))]).await.unwrap();
    }
    let mut bodies = bench.bodies(QueueName::Meter).await;
    bodies.dedup();
    assert_eq!(bodies, ["AnswerLost", "NotSent", "Throttled"]);
}
