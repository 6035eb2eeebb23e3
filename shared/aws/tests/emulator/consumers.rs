//! The answer to a batch: what comes back, when, and what is replaced.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use annex_aws::QueueConsumer;
use annex_aws::testing::is_available;
use annex_core::ports::{Handler, Message, QueueName, Undone};
use async_trait::async_trait;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};

use crate::bench::{Bench, clients_of_nothing, message};

/// Whether a message of this body is undone: when it may come back, in seconds, and whether the receive counts.
type Script = fn(&str) -> Option<(Option<u64>, bool)>;

/// Answers each message by its body.
struct Scripted {
    got: Mutex<Vec<Message>>,
    undone: Script,
}

#[async_trait]
impl Handler for Scripted {
    async fn handle(&self, batch: Vec<Message>) -> Vec<Undone> {
        let answer = |message: &Message| {
            let (secs, counts) = (self.undone)(&message.body)?;
            let retry_after = secs.map(Duration::from_secs);
            Some(Undone { id: message.id.clone(), retry_after, counts })
        };
        let undone = batch.iter().filter_map(answer).collect();
        self.got.lock().unwrap().extend(batch);
        undone
    }
}

/// What the event source mapping makes of received messages.
fn event(messages: &[aws_sdk_sqs::types::Message]) -> SqsEvent {
    let records = messages.iter().map(|message| {
        let mut record = SqsMessage::default();
        record.message_id = message.message_id.clone();
        record.receipt_handle = message.receipt_handle.clone();
        record.body = message.body.clone();
        let attributes = message.attributes().into_iter().flatten();
        record.attributes =
            attributes.map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect();
        record
    });
    let mut event = SqsEvent::default();
    event.records = records.collect();
    event
}

#[tokio::test]
async fn failed_messages_come_back_when_they_ask_and_waiting_ones_are_replaced_by_copies() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    let bodies = ["done", "failed", "failed-at-once", "failed-late", "waits", "waits-long"];
    bench
        .send(bodies.iter().map(|body| message(QueueName::Dispatch, body)).collect())
        .await
        .unwrap();
    let url = bench.url(QueueName::Dispatch);
    let received = bench.receive(url).await;
    bench.tap.take_seen();
    let handler = Scripted {
        got: Mutex::default(),
        undone: |body| match body {
            "failed" => Some((None, true)),
            "failed-at-once" => Some((Some(0), true)),
            "failed-late" => Some((Some(100_000), true)),
            "waits" => Some((Some(0), false)),
            "waits-long" => Some((Some(5_000), false)),
            _ => None,
        },
    };
    let consumer = QueueConsumer::new(&bench.clients, url);
    let answer = consumer.run(&handler, event(&received)).await;

    let names: BTreeMap<&str, &str> = received
        .iter()
        .map(|message| (message.message_id().unwrap(), message.body().unwrap()))
        .collect();
    let mut failed: Vec<&str> =
        answer.batch_item_failures.iter().map(|failure| names[&*failure.item_identifier]).collect();
    failed.sort_unstable();
    assert_eq!(failed, ["failed", "failed-at-once", "failed-late"]);
    let got = std::mem::take(&mut *handler.got.lock().unwrap());
    assert!(got.iter().all(|message| message.receives == 1 && names[&*message.id] == message.body));
    let seen = bench.tap.take_seen();
    let requests: Vec<_> =
        seen.iter().map(|seen| (&*seen.name, seen.tally.messages, &*seen.delays)).collect();
    let expected: [(_, _, &[u64]); 2] =
        [("sqs ChangeMessageVisibilityBatch", 2, &[]), ("sqs SendMessageBatch", 2, &[0, 900])];
    assert_eq!(requests, expected);
    // The copy of a message that waits is new: its receives count from the start.
    let again = bench.receive(url).await;
    let mut again: Vec<(&str, &str)> = again
        .iter()
        .map(|message| {
            let receives = message.attributes().into_iter().flatten();
            let receives = receives.filter(|(name, _)| name.as_str() == "ApproximateReceiveCount");
            (message.body().unwrap(), receives.map(|(_, count)| &**count).next().unwrap())
        })
        .collect();
    again.sort_unstable();
    assert_eq!(again, [("failed-at-once", "2"), ("waits", "1")]);
}

#[tokio::test]
async fn a_message_that_waits_and_cannot_be_replaced_is_reported_as_failed() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    bench.send(vec![message(QueueName::Meter, "waits")]).await.unwrap();
    let received = bench.receive(bench.url(QueueName::Meter)).await;
    let handler = Scripted { got: Mutex::default(), undone: |_| Some((Some(0), false)) };
    let consumer =
        QueueConsumer::new(&bench.clients, format!("{}-gone", bench.url(QueueName::Meter)));
    let answer = consumer.run(&handler, event(&received)).await;
    let failed: Vec<_> =
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect();
    assert_eq!(failed, [received[0].message_id().unwrap()]);
}

#[tokio::test]
async fn a_batch_with_a_nameless_message_comes_back_whole_and_unknown_names_are_left_out() {
    struct Stranger;
    #[async_trait]
    impl Handler for Stranger {
        async fn handle(&self, _batch: Vec<Message>) -> Vec<Undone> {
            vec![Undone { id: "unknown".to_owned(), retry_after: None, counts: true }]
        }
    }
    let tap = annex_aws::tap::Tap::new();
    let clients = clients_of_nothing(tap.client());
    let consumer = QueueConsumer::new(&clients, "http://127.0.0.1:1/q");
    let mut nameless = SqsEvent::default();
    nameless.records = vec![SqsMessage::default()];
    for (event, expected) in [(nameless, vec![String::new()]), (SqsEvent::default(), vec![])] {
        let answer = consumer.run(&Stranger, event).await;
        let failed: Vec<String> =
            answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect();
        assert_eq!(failed, expected);
    }
    assert_eq!(tap.take_seen(), []);
}
