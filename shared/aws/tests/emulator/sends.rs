//! Messages: batches, delays, and the characters and sizes that SQS takes.

use std::time::Duration;

use annex_aws::DynamoStore;
use annex_aws::Queues;
use annex_aws::testing::is_available;
use annex_core::limits::{MESSAGE_BYTES_MAX, QUEUE_DELAY_MAX};
use annex_core::ports::{Commit, Committed, Key, Outgoing, QueueName, Store as _, When};

use crate::bench::{Bench, item, message, put};

const DISPATCH: QueueName = QueueName::Dispatch;

#[tokio::test]
async fn messages_are_sent_in_batches_and_only_when_the_writes_were_done() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let key = Key::new("p", "s");
    let commit = || Commit {
        writes: vec![put(&key, b"a", When::Absent)],
        sends: (0..25).map(|n| message(DISPATCH, &format!("{n:02}"))).collect(),
        ..Commit::default()
    };
    assert_eq!(bench.store.commit(commit()).await.unwrap(), Committed::Done);
    let batch = "sqs SendMessageBatch";
    assert_eq!(bench.requests(), ["dynamodb PutItem", batch, batch, batch]);
    let lost = Committed::Lost { index: 0, found: Some(item(b"a", 1)) };
    assert_eq!(bench.store.commit(commit()).await.unwrap(), lost);
    assert_eq!(bench.requests(), ["dynamodb PutItem"]);
    let expected: Vec<String> = (0..25).map(|n| format!("{n:02}")).collect();
    assert_eq!(bench.bodies(DISPATCH).await, expected);
    assert_eq!(bench.bodies(QueueName::Resume).await, [""; 0]);
}

#[tokio::test]
async fn a_message_has_up_to_1_mib_and_waits_up_to_900_s() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let send =
        |size: usize, delay| Outgoing { queue: QueueName::Meter, body: "x".repeat(size), delay };
    let largest = send(MESSAGE_BYTES_MAX, Duration::ZERO);
    bench.send(vec![largest.clone(), largest.clone(), send(1, QUEUE_DELAY_MAX)]).await.unwrap();
    let seen = bench.tap.take_seen();
    let batches: Vec<_> = seen.iter().map(|seen| (seen.tally.messages, &*seen.delays)).collect();
    assert_eq!(batches, [(1, &[0][..]), (1, &[0]), (1, &[900])]);
    assert_eq!(bench.bodies(QueueName::Meter).await, [largest.body.clone(), largest.body]);
    for refused in [
        send(MESSAGE_BYTES_MAX + 1, Duration::ZERO),
        send(1, QUEUE_DELAY_MAX + Duration::from_secs(1)),
        // Fits, until what SQS refuses is escaped.
        Outgoing {
            queue: QueueName::Meter,
            body: format!("\"{}\u{ffff}\"", "x".repeat(MESSAGE_BYTES_MAX - 5)),
            delay: Duration::ZERO,
        },
    ] {
        let commit = Commit {
            writes: vec![put(&Key::new("p", "s"), b"", When::Always)],
            sends: vec![refused],
            ..Commit::default()
        };
        assert!(bench.store.commit(commit).await.is_err());
    }
    assert_eq!(bench.requests(), [""; 0]);
}

#[tokio::test]
async fn a_delayed_message_is_unseen_and_the_tap_can_drop_the_delay() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let later = |body: &str| Outgoing {
        delay: Duration::from_millis(299_001),
        ..message(QueueName::Resume, body)
    };
    bench.send(vec![later("unseen")]).await.unwrap();
    bench.tap.set_without_delays(true);
    bench.send(vec![later("seen"), message(QueueName::Resume, "now")]).await.unwrap();
    assert_eq!(bench.bodies(QueueName::Resume).await, ["now", "seen"]);
    let delays: Vec<Vec<u64>> = bench.tap.take_seen().into_iter().map(|seen| seen.delays).collect();
    assert_eq!(delays, [vec![300], vec![300, 0]]);
}

#[tokio::test]
async fn characters_that_sqs_refuses_arrive_as_the_same_json() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let body = "{\"k\u{ffff}\":\"\u{fffe}\u{7f}\u{80}\u{fffd}😀\\u0001\"}";
    bench.send(vec![message(DISPATCH, body)]).await.unwrap();
    let bodies = bench.bodies(DISPATCH).await;
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&bodies[0]), value(body));
}

#[tokio::test]
async fn a_queue_that_the_function_may_not_reach_fails_a_commit_before_it_writes() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let queues = Queues { dispatch: None, ..bench.sandbox.queues.clone() };
    let table = bench.sandbox.table.clone();
    let store = DynamoStore::new(&bench.clients, table, queues, bench.clock.clone());
    let commit = Commit {
        writes: vec![put(&Key::new("p", "s"), b"", When::Always)],
        sends: vec![message(DISPATCH, "1")],
        ..Commit::default()
    };
    let outage = store.commit(commit).await.unwrap_err();
    assert_eq!(outage.what, "no URL of the queue dispatch is set");
    assert_eq!(bench.requests(), [""; 0]);
}
