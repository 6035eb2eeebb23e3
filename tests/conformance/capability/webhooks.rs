//! Documented webhooks: what they say, with which credentials, and when they are tried again.

use std::collections::BTreeSet;

use annex_core::ports::SendFault;
use serde_json::{Value, json};

use super::manifests;
use super::partners::{Answer, Received};
use super::scene::{LOCK, Registered, Scene, check};
use super::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("", "a session is told of when it is made, changed and removed", sessions),
        case("", "a line of the history is told to the others on the lock", lines),
        case("", "a webhook waits 10 s and reads 64 KiB", limits),
        case("", "without credentials a webhook carries none", no_credentials),
        case("", "an extension without a URL is told nothing, now or later", no_url),
        case("", "attempts come after 0, 60, 180, 420 and 900 s, each with its own id", retries),
        case("", "any 2xx is an end, and nothing else is", statuses),
        case("", "five failures are an error of the organization", reported),
        case("", "a webhook that is put off keeps no other waiting", put_off),
    ]
}

fn session_id(scene: &Scene, slug: &str, lock: &str) -> String {
    scene.sessions[&(slug.to_owned(), lock.to_owned())].clone()
}

#[track_caller]
fn check_data(found: &Received, word: &str, expected: Value) {
    assert_eq!(found.word(), word);
    let mut bindings = crate::harness::bindings::Bindings::default();
    bindings.check(&expected, &found.data, "data").expect("the data are as they should be");
}

async fn sessions(mut scene: Scene) {
    let id = scene.install("a", "l2").await;
    scene.settle().await;
    let shown = scene.ask_on("l2", "a", "GET ", &json!({})).await.body["session"].clone();
    let told = scene.partners.take();
    let [created] = &told[..] else { panic!("one webhook, not {told:?}") };
    let expected = json!({ "session": shown, "extension": { "slug": "a" } });
    check_data(created, "a:extension_session.created", expected);
    let patch = json!({ "config": { "x": 1 }, "metadata": { "y": 2 } });
    scene.pass(1);
    let patched = scene.ask_on("l2", "a", "PATCH ", &patch).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    scene.settle().await;
    let told = scene.partners.take();
    let [updated] = &told[..] else { panic!("one webhook, not {told:?}") };
    let expected = json!({ "session": patched.body["session"], "extension": { "slug": "a" } });
    check_data(updated, "a:extension_session.updated", expected);
    assert_eq!(updated.data["session"]["config"], json!({ "x": 1 }));
    let reply = scene.org("DELETE", &format!("l2/sessions/{id}"), None).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    scene.settle().await;
    let told = scene.partners.take();
    let [deleted] = &told[..] else { panic!("one webhook, not {told:?}") };
    let lock = scene.org("GET", "l2", None).await.body;
    let session = json!({ "sessionId": id, "lock": lock });
    let expected = json!({ "session": session, "extension": { "slug": "a" } });
    check_data(deleted, "a:extension_session.deleted", expected);
}

async fn lines(mut scene: Scene) {
    let line = json!({
        "title": "%USER% did it", "description": "well", "role": "wearer", "icon": "star",
        "color": "#fff",
    });
    let made = scene.ask("a", "POST /logs/custom", &line).await;
    let expected = json!({
        "_id": "${line}", "type": "custom", "payload": {}, "lock": LOCK, "role": "user",
        "extension": "a", "title": "%USER% did it", "description": "well", "color": "#fff",
        "icon": "star", "prefix": "a", "createdAt": "${time}",
    });
    check(&made, 201, expected);
    scene.settle().await;
    let told = scene.partners.take();
    let [only] = &told[..] else { panic!("one webhook, not {told:?}") };
    let data = json!({ "sessionId": session_id(&scene, "b", LOCK), "actionLog": made.body });
    check_data(only, "b:action_log.created", data);
    // What the organization does is told to all.
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    scene.settle().await;
    let words: BTreeSet<String> = scene.partners.take().iter().map(Received::word).collect();
    let both = ["a:action_log.created", "b:action_log.created"].map(str::to_owned);
    assert_eq!(words, BTreeSet::from(both));
}

async fn line(scene: &Scene) {
    let reply = scene.ask("a", "POST /logs/custom", &json!({ "title": "x" })).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

async fn limits(mut scene: Scene) {
    let word = "b:action_log.created";
    let answers = [
        Answer::status(200).after_millis(10_001),
        Answer::Is(500, vec![b'x'; 65_537]),
        // Taken, whatever is said beside that.
        Answer::of_bytes(65_537),
    ];
    scene.partners.answers(word, answers);
    line(&scene).await;
    scene.settle().await;
    let told = scene.partners.take();
    assert_eq!(told.len(), 3);
    for one in told {
        assert_eq!((one.timeout.as_secs(), one.bytes_max), (10, 65_536));
    }
    scene.partners.answer(word, Answer::status(200).after_millis(10_000));
    line(&scene).await;
    scene.settle().await;
    assert_eq!(scene.partners.take().len(), 1);
}

async fn no_credentials(mut scene: Scene) {
    scene.register("open", Registered { has_credentials: false, ..Registered::USUAL }).await;
    scene.install("open", LOCK).await;
    scene.settle().await;
    // That there is no header is checked by who gets it.
    assert_eq!(scene.partners.received("open:extension_session.created").len(), 1);
}

async fn no_url(mut scene: Scene) {
    scene.register("mute", Registered { has_url: false, ..Registered::USUAL }).await;
    scene.install("mute", LOCK).await;
    line(&scene).await;
    scene.settle().await;
    assert!(scene.partners.take().iter().all(|told| told.to != "mute"));
    let mut body = json!({
        "contract": "chaster", "name": "mute", "url": super::partners::url("mute"),
        "webhook": { "username": "mute", "password": super::scene::password("mute") },
    });
    body["description"] = json!("now it listens");
    let reply = scene.operator("PUT", "/v1/extension/definition", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    scene.world.restart();
    scene.settle().await;
    assert!(scene.partners.take().iter().all(|told| told.to != "mute"));
    line(&scene).await;
    scene.settle().await;
    assert_eq!(scene.partners.received("mute:action_log.created").len(), 1);
}

async fn retries(mut scene: Scene) {
    let word = "b:action_log.created";
    let fail = || Answer::status(500);
    scene.partners.answers(word, [fail(), fail(), fail(), fail(), Answer::status(200)]);
    line(&scene).await;
    let began = annex_core::ports::Clock::steady(&*scene.world.clock);
    scene.wait(7_200).await;
    let told = scene.partners.received(word);
    let after: Vec<u64> = told.iter().map(|told| told.at.since(began).as_secs()).collect();
    assert_eq!(after, [0, 60, 180, 420, 900]);
    // That no requestId came before is checked by who gets it.
    let ids: BTreeSet<&str> = told.iter().map(|told| &*told.request_id).collect();
    assert_eq!(ids.len(), 5);
    let data: BTreeSet<String> = told.iter().map(|told| told.data.to_string()).collect();
    assert_eq!(data.len(), 1, "they all say the same");
}

async fn statuses(mut scene: Scene) {
    let word = "b:action_log.created";
    for status in [200, 201, 202, 204, 299] {
        scene.partners.answer(word, Answer::status(status));
        line(&scene).await;
        scene.settle().await;
        assert_eq!(scene.partners.take().len(), 1, "{status}");
    }
    let bad = [
        Answer::status(199),
        Answer::status(300),
        Answer::status(400),
        Answer::status(410),
        Answer::status(503),
        Answer::Fails(SendFault::NotSent("no".into())),
        Answer::Fails(SendFault::Broken("no".into())),
    ];
    for answer in bad {
        scene.partners.answers(word, [answer.clone(), Answer::status(200)]);
        line(&scene).await;
        scene.settle().await;
        assert_eq!(scene.partners.take().len(), 2, "{answer:?}");
    }
}

async fn reported(mut scene: Scene) {
    scene.partners.answer("b:action_log.created", Answer::status(500));
    line(&scene).await;
    scene.settle().await;
    assert_eq!(scene.partners.take().len(), 5);
    scene.wait(48 * 3600).await;
    assert_eq!(scene.partners.take().len(), 0);
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let path = format!("/v1/errors/{}", super::scene::ORG);
    let call = crate::harness::door::Call::new("GET", &path).token(token);
    let reply = scene.world.send(call).await;
    let errors = reply.body["errors"].as_array().cloned().unwrap_or_default();
    let [error] = &errors[..] else { panic!("one error: {}", reply.body) };
    assert_eq!(error["component"], "b:webhook", "{error}");
    let text = "action_log.created was given up after 5 attempts: answered 500";
    assert_eq!(error["error"], text, "{error}");
}

async fn put_off(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    scene.install("c", LOCK).await;
    scene.calm().await;
    let word = "b:action_log.created";
    scene.partners.answers(word, [Answer::status(500), Answer::status(200)]);
    line(&scene).await;
    line(&scene).await;
    scene.wait(1).await;
    let ids = |scene: &Scene, word: &str| -> Vec<String> {
        let found = scene.partners.received(word);
        found.iter().map(|told| told.data["actionLog"]["_id"].to_string()).collect()
    };
    let (b, c) = (ids(&scene, word), ids(&scene, "c:action_log.created"));
    assert_eq!(b, c, "both lines, in order");
    assert_eq!(b.len(), 2);
    scene.wait(60).await;
    assert_eq!(ids(&scene, word), [b[0].clone(), b[1].clone(), b[0].clone()]);
}
