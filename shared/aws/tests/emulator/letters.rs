//! Dead letters: listed without being hidden, redriven without being lost.

use annex_aws::SqsDeadLetters;
use annex_aws::tap::{Fault, Plan};
use annex_aws::testing::is_available;
use annex_core::limits::QUEUE_RECEIVES_MAX;
use annex_core::ports::{DeadLetters as _, QueueName};

use crate::bench::{Bench, message};

const DISPATCH: QueueName = QueueName::Dispatch;

async fn letters(bench: &Bench, count: usize) {
    let url = bench.dead_letters_url(DISPATCH);
    for n in 0..count {
        let request = bench.sandbox.clients.sqs.send_message().queue_url(url);
        request.message_body(format!("{n:02}")).send().await.unwrap();
    }
}

fn expected(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:02}")).collect()
}

async fn listed(dead: &SqsDeadLetters, limit: usize) -> Vec<String> {
    let letters = dead.list(DISPATCH, limit).await.unwrap();
    assert!(letters.iter().all(|letter| !letter.id.is_empty()));
    let mut bodies: Vec<String> = letters.into_iter().map(|letter| letter.body).collect();
    bodies.sort();
    bodies
}

#[tokio::test]
async fn a_message_received_too_often_is_a_dead_letter() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    bench.send(vec![message(DISPATCH, "poison")]).await.unwrap();
    let dead = SqsDeadLetters::new(&bench.clients, bench.sandbox.queues.clone());
    let url = bench.url(DISPATCH);
    for _ in 0..QUEUE_RECEIVES_MAX {
        let request = bench.sandbox.clients.sqs.receive_message().queue_url(url);
        let received = request.visibility_timeout(0).send().await.unwrap();
        assert_eq!(received.messages().len(), 1);
    }
    assert_eq!(bench.receive(url).await.len(), 0);
    assert_eq!(listed(&dead, 10).await, ["poison"]);
}

#[tokio::test]
async fn letters_are_listed_again_and_again_and_redriven_once() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    letters(&bench, 12).await;
    let dead = SqsDeadLetters::new(&bench.clients, bench.sandbox.queues.clone());
    assert_eq!(listed(&dead, 5).await.len(), 5);
    assert_eq!(listed(&dead, 100).await, expected(12));
    assert_eq!(dead.redrive(DISPATCH, 3).await.unwrap(), 3);
    assert_eq!(dead.redrive(DISPATCH, 100).await.unwrap(), 9);
    assert_eq!(dead.redrive(DISPATCH, 100).await.unwrap(), 0);
    assert_eq!(listed(&dead, 100).await, [""; 0]);
    assert_eq!(bench.bodies(DISPATCH).await, expected(12));
}

#[tokio::test]
async fn a_redrive_that_stops_anywhere_loses_no_letter() {
    if !is_available() {
        return;
    }
    let mut points = 0;
    for stop in 0.. {
        let bench = Bench::new().await;
        letters(&bench, 2).await;
        let dead = SqsDeadLetters::new(&bench.clients, bench.sandbox.queues.clone());
        bench.tap.set_plan(Plan::stop_after(stop));
        let done = dead.redrive(DISPATCH, 2).await;
        points += 1;
        let mut bodies = bench.bodies(DISPATCH).await;
        let url = bench.dead_letters_url(DISPATCH);
        // What was received and not deleted is hidden for a while; its number is known.
        let request = bench.sandbox.clients.sqs.purge_queue().queue_url(url);
        let hidden = hidden(&bench, url).await;
        request.send().await.unwrap();
        bodies.dedup();
        assert!(bodies.len() == 2 || hidden == 2, "stopped after {stop}: {bodies:?} {hidden}");
        if done.is_ok() {
            break;
        }
    }
    assert_eq!(points, 4);
}

async fn hidden(bench: &Bench, url: &str) -> usize {
    let request = bench.sandbox.clients.sqs.get_queue_attributes().queue_url(url);
    let answer =
        request.attribute_names(aws_sdk_sqs::types::QueueAttributeName::All).send().await.unwrap();
    let count = |name: &str| -> usize {
        let mut all = answer.attributes().into_iter().flatten();
        let found = all.find(|(attribute, _)| attribute.as_str() == name);
        found.map_or(0, |(_, count)| count.parse().unwrap())
    };
    count("ApproximateNumberOfMessages") + count("ApproximateNumberOfMessagesNotVisible")
}

#[tokio::test]
async fn letters_stay_where_the_queue_takes_nothing() {
    if !is_available() {
        return;
    }
    let bench = Bench::new().await;
    letters(&bench, 1).await;
    let dead = SqsDeadLetters::new(&bench.clients, bench.sandbox.queues.clone());
    bench.tap.set_plan(Plan::fault(2, Fault::Refused));
    assert!(dead.redrive(DISPATCH, 1).await.is_err());
    assert_eq!(hidden(&bench, bench.dead_letters_url(DISPATCH)).await, 1);
    assert_eq!(bench.bodies(DISPATCH).await, [""; 0]);
}
