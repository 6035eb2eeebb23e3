//! Queues: when messages come, how often, and what is left of them.

use super::consumers::{Consumer, done, undone};
use super::*;
use crate::{ConsumerOptions, Depth};
use annex_core::limits::{LEASE, QUEUE_DELAY_MAX, QUEUE_RECEIVES_MAX};
use annex_core::ports::{DeadLetter, DeadLetters as _, Hold, Message};
use uuid::Uuid;

const SECOND: Duration = Duration::from_secs(1);

async fn depth(store: &Embedded) -> Depth {
    store.depth(QueueName::Resume).await.unwrap()
}

fn held(id: u128, body: &str, lease: Duration) -> Commit {
    let hold = Hold { id: Uuid::from_u128(id), send: outgoing(body, lease) };
    Commit { holds: vec![hold], ..Commit::default() }
}

fn released(id: u128) -> Commit {
    Commit { released: vec![Uuid::from_u128(id)], ..Commit::default() }
}

fn options(batch_size: usize, batches_in_flight: usize) -> ConsumerOptions {
    ConsumerOptions { batch_size, batches_in_flight, ..ConsumerOptions::default() }
}

#[tokio::test]
async fn a_message_is_handed_over_at_once_and_is_gone_when_it_is_done() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, done);
    commit(&store, message("a")).await;
    let batch = consumer.next().await;
    assert_eq!((batch[0].body.as_str(), batch[0].receives, batch.len()), ("a", 1, 1));
    commit(&store, message("b")).await;
    assert_eq!(consumer.next_bodies().await, ["b"]);
    consumer.stop().await;
    drop(store);
    assert_eq!(depth(&open_on(&medium, &clock)).await, Depth::default());
}

#[tokio::test]
async fn a_delayed_message_comes_when_it_is_due_whatever_the_wall_clock_does() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    let mut consumer = Consumer::start(&store, done);
    commit(&store, delayed("late", 10 * SECOND)).await;
    commit(&store, delayed("soon", 5 * SECOND)).await;
    clock.sleepers(1).await;
    clock.set_now(clock.now().plus(3600 * SECOND));
    clock.advance(Duration::from_millis(4_999));
    assert!(consumer.is_idle().await);
    clock.advance(Duration::from_millis(1));
    assert_eq!(consumer.next_bodies().await, ["soon"]);
    clock.set_now(clock.now().minus(7200 * SECOND));
    clock.sleepers(1).await;
    clock.advance(5 * SECOND);
    assert_eq!(consumer.next_bodies().await, ["late"]);
}

#[tokio::test]
async fn messages_of_a_lost_commit_are_not_sent() {
    let store = Embedded::in_memory(clock()).unwrap();
    let write = Write::Delete { key: key("none"), when: When::Present };
    let commit = Commit { writes: vec![write], ..message("never") };
    assert!(matches!(store.commit(commit).await.unwrap(), Committed::Lost { .. }));
    assert_eq!(depth(&store).await, Depth::default());
}

#[tokio::test]
async fn batches_have_at_most_10_messages_in_the_order_of_sending() {
    let store = Embedded::in_memory(clock()).unwrap();
    let names: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    let sends = names.iter().map(|name| outgoing(name, Duration::ZERO)).collect();
    commit(&store, Commit { sends, ..Commit::default() }).await;
    let mut consumer = Consumer::start(&store, done);
    assert_eq!(consumer.next_bodies().await, names[..10]);
    assert_eq!(consumer.next_bodies().await, names[10..20]);
    assert_eq!(consumer.next_bodies().await, names[20..]);
}

#[tokio::test]
async fn as_many_batches_are_under_way_as_the_options_say() {
    let store = Embedded::in_memory(clock()).unwrap();
    for name in ["a", "b", "c", "d"] {
        commit(&store, message(name)).await;
    }
    let mut consumer = Consumer::with(&store, done, options(1, 3));
    consumer.hang(true);
    for name in ["a", "b", "c"] {
        assert_eq!(consumer.next_bodies().await, [name]);
    }
    assert!(consumer.is_idle().await);
    assert_eq!(depth(&store).await, Depth { ready: 1, in_flight: 3, ..Depth::default() });
    consumer.hang(false);
    assert_eq!(consumer.next_bodies().await, ["d"]);
}

#[tokio::test]
async fn an_undone_message_comes_back_after_its_delay_or_its_visibility() {
    for (retry_secs, after) in [(Some(7), 7 * SECOND), (None, LEASE)] {
        let clock = clock();
        let store = Embedded::in_memory(clock.clone()).unwrap();
        commit(&store, message("a")).await;
        let mut consumer = Consumer::start(&store, undone(retry_secs, true));
        assert_eq!(consumer.next().await[0].receives, 1);
        clock.sleepers(1).await;
        assert_eq!(depth(&store).await, Depth { delayed: 1, ..Depth::default() });
        clock.advance(after - Duration::from_millis(1));
        assert!(consumer.is_idle().await);
        clock.advance(Duration::from_millis(1));
        assert_eq!(consumer.next().await[0].receives, 2);
    }
}

#[tokio::test]
async fn after_8_receives_that_count_a_message_is_a_dead_letter_until_it_is_put_back() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    commit(&store, message("poison")).await;
    let mut consumer = Consumer::start(&store, undone(Some(0), true));
    for receives in 1..=QUEUE_RECEIVES_MAX {
        assert_eq!(consumer.next().await[0].receives, receives);
    }
    assert!(consumer.is_idle().await);
    consumer.stop().await;
    commit(&store, put("other", b"x")).await;
    assert_eq!(depth(&store).await, Depth { dead: 1, ..Depth::default() });
    let letters = store.list(QueueName::Resume, 10).await.unwrap();
    let [DeadLetter { body, receives, .. }] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((body.as_str(), *receives), ("poison", Some(QUEUE_RECEIVES_MAX)));
    assert_eq!(store.list(QueueName::Resume, 0).await.unwrap(), []);
    assert_eq!(store.redrive(QueueName::Resume, 0).await.unwrap(), 0);
    assert_eq!(store.redrive(QueueName::Dispatch, 10).await.unwrap(), 0);
    assert_eq!(store.redrive(QueueName::Resume, 10).await.unwrap(), 1);
    assert_eq!(depth(&store).await, Depth { ready: 1, ..Depth::default() });
    let mut consumer = Consumer::start(&store, done);
    let batch = consumer.next().await;
    assert_eq!((batch[0].body.as_str(), batch[0].receives), ("poison", 1));
}

#[tokio::test]
async fn a_receive_that_does_not_count_never_leads_to_the_dead_letters() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    commit(&open_on(&medium, &clock), message("waits")).await;
    // The message is older than this process too, so that its receives are on disk.
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, undone(Some(0), false));
    for _ in 0..3 * QUEUE_RECEIVES_MAX {
        assert_eq!(consumer.next().await[0].receives, 1);
    }
    consumer.stop().await;
    drop(store);
    let mut consumer = Consumer::start(&open_on(&medium, &clock), done);
    assert_eq!(consumer.next().await[0].receives, 1);
}

#[tokio::test]
async fn a_message_that_kills_the_process_ends_in_the_dead_letters() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    commit(&open_on(&medium, &clock), message("deadly")).await;
    for receives in 1..=QUEUE_RECEIVES_MAX {
        let store = open_on(&medium.copy(), &clock);
        drop(store);
        let store = open_on(&medium, &clock);
        let mut consumer = Consumer::start(&store, done);
        consumer.hang(true);
        assert_eq!(consumer.next().await[0].receives, receives);
        consumer.kill().await;
    }
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, done);
    commit(&store, message("other")).await;
    assert_eq!(consumer.next_bodies().await, ["other"]);
    consumer.stop().await;
    commit(&store, put("other", b"x")).await;
    assert_eq!(depth(&store).await.dead, 1);
}

#[tokio::test]
async fn a_handler_that_panics_has_done_nothing() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    let panicking = |message: &Message| match message.receives {
        1 => panic!("as the test wants it"),
        _ => None,
    };
    let mut consumer = Consumer::start(&store, panicking);
    commit(&store, message("a")).await;
    while depth(&store).await.delayed == 0 {
        tokio::task::yield_now().await;
    }
    clock.sleepers(1).await;
    clock.advance(LEASE);
    assert_eq!(consumer.next().await[0].receives, 2);
}

#[tokio::test]
async fn a_held_message_is_seen_by_nobody_and_gone_when_it_is_released() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, done);
    commit(&store, held(1, "held", LEASE)).await;
    assert_eq!(depth(&store).await, Depth { held: 1, ..Depth::default() });
    assert!(consumer.is_idle().await);
    commit(&store, released(1)).await;
    assert_eq!(depth(&store).await, Depth::default());
    clock.advance(LEASE);
    assert!(consumer.is_idle().await);
    consumer.stop().await;
    drop(store);
    assert_eq!(depth(&open_on(&medium, &clock)).await, Depth::default());
}

#[tokio::test]
async fn a_held_message_becomes_visible_when_its_lease_is_over() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    let mut consumer = Consumer::start(&store, done);
    commit(&store, held(1, "held", LEASE)).await;
    clock.sleepers(1).await;
    clock.advance(LEASE - Duration::from_millis(1));
    assert!(consumer.is_idle().await);
    clock.advance(Duration::from_millis(1));
    assert_eq!(consumer.next_bodies().await, ["held"]);
    // Too late, and no error.
    commit(&store, released(1)).await;
    consumer.stop().await;
}

#[tokio::test]
async fn what_was_held_when_the_process_ended_is_due_at_the_next_start() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    commit(&store, held(1, "one", LEASE)).await;
    commit(&store, held(2, "two", LEASE)).await;
    commit(&store, released(2)).await;
    let crashed = medium.copy();
    drop(store);
    for medium in [medium, crashed] {
        let store = open_on(&medium, &clock);
        assert_eq!(depth(&store).await, Depth { ready: 1, ..Depth::default() });
        let mut consumer = Consumer::start(&store, done);
        assert_eq!(consumer.next_bodies().await, ["one"]);
        consumer.stop().await;
    }
}

#[tokio::test]
async fn what_was_sent_before_a_restart_comes_after_it_in_time() {
    let (clock, medium) = (clock(), FaultyMedium::default());
    let store = open_on(&medium, &clock);
    commit(&store, message("now")).await;
    commit(&store, delayed("later", 60 * SECOND)).await;
    drop(store);
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, done);
    assert_eq!(consumer.next_bodies().await, ["now"]);
    clock.sleepers(1).await;
    clock.advance(60 * SECOND);
    assert_eq!(consumer.next_bodies().await, ["later"]);
}

#[tokio::test]
async fn a_message_from_a_future_that_was_wrong_waits_no_longer_than_the_longest_delay() {
    let medium = FaultyMedium::default();
    let ahead = Arc::new(ManualClock::new(Timestamp::from_secs(4_000_000_000)));
    commit(&open_on(&medium, &ahead), message("a")).await;
    let clock = clock();
    let store = open_on(&medium, &clock);
    let mut consumer = Consumer::start(&store, done);
    clock.sleepers(1).await;
    clock.advance(QUEUE_DELAY_MAX);
    assert_eq!(consumer.next_bodies().await, ["a"]);
}

#[tokio::test]
async fn a_stop_waits_for_what_runs_up_to_its_deadline() {
    let clock = clock();
    let store = Embedded::in_memory(clock.clone()).unwrap();
    commit(&store, message("a")).await;
    let mut consumer = Consumer::start(&store, done);
    consumer.hang(true);
    consumer.next().await;
    consumer.ask_to_stop();
    clock.sleepers(1).await;
    assert!(!consumer.has_stopped());
    clock.advance(ConsumerOptions::default().drain);
    consumer.stop().await;
}

#[tokio::test]
async fn under_concurrent_sends_of_all_delays_each_message_is_handed_over_once() {
    let clock = Arc::new(crate::SystemClock::start());
    let store = Embedded::in_memory(clock).unwrap();
    let mut consumer = Consumer::with(&store, done, options(1, 64));
    let senders: Vec<_> = (0..20)
        .map(|sender| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..50_u64 {
                    let delay = Duration::from_millis((n * 7 + sender) % 5);
                    commit(&store, delayed(&format!("{sender}-{n}"), delay)).await;
                }
            })
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 1000 {
        for body in consumer.next_bodies().await {
            assert!(seen.insert(body));
        }
    }
    for sender in senders {
        sender.await.unwrap();
    }
    assert!(consumer.is_idle().await);
}
