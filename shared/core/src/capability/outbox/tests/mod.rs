//! Documented webhooks under a test clock, with crashes at every step (webhooks of 1.3 of the profile).

mod crashes;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::capability::id::LockId;
use crate::capability::locks::{self, LockPatch};
use crate::capability::members::Members;
use crate::capability::model::LockStatus;
use crate::capability::sessions::{self, Patch};
use crate::capability::{extensions, operations};
use crate::org_errors;
use crate::ports::Message;

use world::{LARGE, World};

#[tokio::test]
async fn a_webhook_that_fails_is_tried_five_times_with_five_request_ids_and_then_filed() {
    for is_atomic in [true, false] {
        let mut world = World::new(is_atomic).await;
        world.register("dice", true).await;
        for status in [500, 0, 301, LARGE + 404, 503] {
            world.receivers.says.lock().unwrap().push(("dice", status));
        }
        let session = world.install("dice", "l-1").await;
        world.run().await;
        let got = world.receivers.got.lock().unwrap().clone();
        let minutes: Vec<u64> = got.iter().map(|got| got.at / 60).collect();
        assert_eq!(minutes, [0, 1, 3, 7, 15]);
        let ids = |name: &str| -> BTreeSet<String> {
            got.iter().map(|got| got.body[name].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((ids("requestId").len(), ids("sentAt").len()), (5, 5));
        for got in &got {
            // RFC 7617: base64 of `annex:p4ssw0rd`.
            assert_eq!(got.authorization.as_deref(), Some("Basic YW5uZXg6cDRzc3cwcmQ="));
            assert_eq!(got.body.as_object().unwrap().len(), 4, "{}", got.body);
            assert_eq!(got.body["event"], "extension_session.created");
            assert_eq!(got.body["data"]["session"]["sessionId"], session.id.as_str());
            assert_eq!(got.body["data"]["extension"], json!({"slug": "dice"}));
        }
        assert_eq!(world.left(), 0);
        let errors = org_errors::list(&world.ports, world.oid).await.unwrap();
        let text = "extension_session.created was given up after 5 attempts: answered 503";
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0].component.as_str(), errors[0].error.as_str()),
            ("dice:webhook", text)
        );
    }
}

#[tokio::test]
async fn deliveries_keep_their_order_while_their_receiver_is_healthy() {
    let mut world = World::new(true).await;
    world.register("dice", true).await;
    let session = world.install("dice", "l-1").await;
    for n in 0..30 {
        let data = serde_json::value::to_raw_value(&json!({"n": n})).ok();
        let patch = Patch { data, ..Patch::default() };
        sessions::patch(&world.ports, &session.extension, &session.id, patch).await.unwrap();
    }
    sessions::delete(&world.ports, world.oid, &session.lock, &session.id).await.unwrap();
    world.run().await;
    let got = world.receivers.got.lock().unwrap().clone();
    assert_eq!(got.len(), 32);
    for (n, got) in got[1..31].iter().enumerate() {
        assert_eq!(got.body["data"]["session"]["data"], json!({"n": n}));
    }
    let last = &got[31].body;
    assert_eq!(last["event"], "extension_session.deleted");
    assert_eq!(last["data"]["session"]["sessionId"], session.id.as_str());
    assert_eq!(last["data"]["session"]["lock"]["_id"], "l-1");
    assert!(last["data"]["session"].get("config").is_none());
    assert_eq!(world.left(), 0);
}

#[tokio::test]
async fn what_fails_is_put_off_and_the_others_go_on() {
    let mut world = World::new(true).await;
    world.register("dice", true).await;
    world.receivers.says.lock().unwrap().extend([("dice", 200), ("dice", 500)]);
    let session = world.install("dice", "l-1").await;
    for _ in 0..2 {
        let patch = Patch::default();
        sessions::patch(&world.ports, &session.extension, &session.id, patch).await.unwrap();
    }
    sessions::delete(&world.ports, world.oid, &session.lock, &session.id).await.unwrap();
    world.run().await;
    let expected = [
        "0 dice extension_session.created",
        "0 dice extension_session.updated",
        "0 dice extension_session.updated",
        "0 dice extension_session.deleted",
        "60 dice extension_session.updated",
    ];
    assert_eq!(world.events(), expected);
}

#[tokio::test]
async fn a_line_is_told_to_every_other_session_of_its_lock_that_can_be_told() {
    let mut world = World::new(true).await;
    for (slug, has_url) in [("dice", true), ("cards", true), ("mute", false), ("far", true)] {
        world.register(slug, has_url).await;
    }
    let dice = world.install("dice", "l-1").await;
    let cards = world.install("cards", "l-1").await;
    world.install("mute", "l-1").await;
    world.install("far", "l-2").await;
    world.run().await;
    world.receivers.got.lock().unwrap().clear();
    let body = Members::read(br#"{"title":"%USER% rolled"}"#).unwrap();
    let line = operations::log(&world.ports, &dice, &body).await.unwrap();
    world.run().await;
    let got = world.receivers.got.lock().unwrap().pop().unwrap();
    assert_eq!((got.host.as_str(), &got.body["event"]), ("cards", &json!("action_log.created")));
    let log = json!({
        "_id": line.id, "type": "custom", "payload": {}, "lock": "l-1", "role": "extension",
        "extension": "dice", "title": "%USER% rolled", "description": "", "color": null, "icon": null,
        "prefix": "dice", "createdAt": line.created_at.to_string(),
    });
    assert_eq!(got.body["data"], json!({"sessionId": cards.id, "actionLog": log}));
    assert!(world.receivers.got.lock().unwrap().is_empty());

    // What the organization does is told to all.
    let patch = LockPatch { status: Some(LockStatus::Unlocked), has_keyholder: Some(true) };
    locks::patch(&world.ports, world.oid, &dice.lock, patch).await.unwrap();
    world.run().await;
    let mut events = world.events();
    events.sort();
    let told = |slug| format!("0 {slug} action_log.created");
    assert_eq!(events, [told("cards"), told("cards"), told("dice"), told("dice")]);
    assert_eq!(world.left(), 0);
}

#[tokio::test]
async fn an_extension_without_an_endpoint_or_that_is_gone_gets_nothing() {
    let mut world = World::new(true).await;
    world.register("mute", false).await;
    world.register("dice", true).await;
    world.install("mute", "l-1").await;
    assert_eq!(world.left(), 0);
    world.install("dice", "l-1").await;
    let slug = crate::capability::id::Slug::parse("dice").unwrap();
    extensions::delete(&world.ports, &slug).await.unwrap();
    world.run().await;
    assert_eq!((world.events(), world.left()), (Vec::new(), 0));
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_its_own_lock_only() {
    let world = World::new(true).await;
    world.register("slow", true).await;
    world.register("dice", true).await;
    for (slug, lock) in [("slow", "l-1"), ("slow", "l-2"), ("dice", "l-1")] {
        world.install(slug, lock).await;
    }
    *world.receivers.hangs.lock().unwrap() = Some("slow");
    let messages: Vec<Message> = world
        .store
        .inner
        .take_sent()
        .into_iter()
        .map(|sent| Message { id: "m".to_owned(), body: sent.body, receives: 1 })
        .collect();
    let mut hanging = Vec::new();
    for message in &messages[..2] {
        let (calls, message) = (world.calls.clone(), message.clone());
        hanging.push(tokio::spawn(async move { calls.work(message).await }));
    }
    while world.receivers.got.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    // Another lock's, and another extension's on the same lock, go out meanwhile.
    assert_eq!(world.calls.work(messages[2].clone()).await, None);
    assert_eq!(world.receivers.got.lock().unwrap().last().unwrap().host, "dice");
    // A second message for the hanging outbox waits, without being at fault, and comes back soon.
    let waits = world.calls.work(messages[0].clone()).await.unwrap();
    assert_eq!((waits.retry_after, waits.counts), (Some(Duration::from_secs(2)), false));
    assert_eq!(world.receivers.got.lock().unwrap().len(), 3);
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    for task in hanging {
        assert!(task.await.unwrap_err().is_cancelled());
    }
    // Who hung is gone; its lease runs out, and its message delivers again.
    *world.receivers.hangs.lock().unwrap() = None;
    world.clock.advance(Duration::from_secs(60));
    for message in &messages[..2] {
        assert_eq!(world.calls.work(message.clone()).await, None);
    }
    assert_eq!((world.receivers.got.lock().unwrap().len(), world.left()), (5, 0));
}

#[tokio::test]
async fn what_is_said_beside_a_2xx_does_not_matter() {
    let mut world = World::new(true).await;
    world.register("dice", true).await;
    world.receivers.says.lock().unwrap().push(("dice", LARGE + 299));
    world.install("dice", "l-1").await;
    world.run().await;
    assert_eq!((world.receivers.got.lock().unwrap().len(), world.left()), (1, 0));
    assert!(org_errors::list(&world.ports, world.oid).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_drain_ends_in_time_and_its_message_goes_on() {
    struct Slow(Arc<crate::testkit::ManualClock>);

    #[async_trait::async_trait]
    impl crate::ports::Outbound for Slow {
        fn check_url(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        async fn send(
            &self,
            _: crate::ports::WebhookRequest,
        ) -> Result<crate::ports::WebhookAnswer, crate::ports::SendFault> {
            self.0.advance(Duration::from_secs(9));
            Ok(crate::ports::WebhookAnswer {
                status: 204,
                retry_after: None,
                body: Default::default(),
            })
        }
    }

    let world = World::new(true).await;
    world.register("dice", true).await;
    let session = world.install("dice", "l-1").await;
    for _ in 0..6 {
        let patch = Patch::default();
        sessions::patch(&world.ports, &session.extension, &session.id, patch).await.unwrap();
    }
    let mut ports = world.ports.clone();
    ports.outbound = Arc::new(Slow(world.clock.clone()));
    let calls = crate::capability::Capabilities::new(ports.clone(), 16);
    let place = sessions::place(&session);
    let drain = || super::drain(&ports, &calls, &place, None);
    // 45 s: the fifth begins within 40 s, the sixth does not.
    assert_eq!(drain().await.unwrap(), super::Drained::Again(Duration::ZERO));
    assert_eq!(world.left(), 2);
    assert_eq!(drain().await.unwrap(), super::Drained::Done);
    assert_eq!(world.left(), 0);
    let lock = LockId::parse("l-1").unwrap();
    assert_eq!(lock, place.lock);
}
