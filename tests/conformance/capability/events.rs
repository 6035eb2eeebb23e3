//! Events: who may emit which, who reads them, and how they reach those who want them.

use serde_json::{Value, json};

use super::answers::nested;
use super::manifests;
use super::partners::Answer;
use super::scene::{LOCK, Scene, changed, check, refused};
use super::{Case, case};
use crate::harness::door::Reply;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-021", "an event of a lock that has ended makes no calls", of_ended_lock),
        case("CH-010 CH-011 CH-015", "the namespace is checked before the type", namespaces),
        case("CH-023", "an event is answered whole", whole),
        case("CH-066", "a payload of 64 levels is taken, one of 65 is not", deep),
        case("CH-068", "a visible event has its line in the history, a hidden one has none", lines),
        case("", "events are listed oldest first, hidden ones for whom they concern", listed),
        case("CH-026", "an event reaches its subscribers, by webhook and by command", reaches),
        case("", "who has no session on the lock, or no URL, gets nothing", others),
        case("", "events arrive in order, each once, where both sides are well", in_order),
        case("", "a failed delivery is tried again, and given up after five", given_up),
        case("", "a failing subscriber keeps nobody else waiting", side_by_side),
    ]
}

pub(crate) fn event(kind: &str, n: u32) -> Value {
    json!({ "type": kind, "payload": { "n": n } })
}

/// An event of `a` as it is shown.
fn shown(kind: &str, n: u32) -> Value {
    json!({
        "id": "${event}", "lockId": LOCK, "type": kind, "payload": { "n": n },
        "hidden": kind.ends_with(".quiet"), "source": { "slug": kind.split('.').next() },
        "actor": "extension", "correlationId": "${event}", "depth": 1, "createdAt": "${time}",
    })
}

async fn namespaces(scene: Scene) {
    for (kind, status, code) in [
        ("lock.none", 403, "reserved-namespace"),
        ("lock", 403, "reserved-namespace"),
        ("annex.done", 403, "reserved-namespace"),
        ("b.done", 403, "foreign-namespace"),
        ("b.none", 403, "foreign-namespace"),
        ("a.none", 404, "unknown-event"),
        // What is called so is none.
        ("a.run", 404, "unknown-event"),
    ] {
        refused(&scene.emit("a", json!({ "type": kind, "payload": [] })).await, status, code);
    }
}

async fn whole(scene: Scene) {
    let reply = scene.emit("a", event("a.done", 1)).await;
    check(&reply, 201, shown("a.done", 1));
    let body = json!({
        "type": "a.quiet", "payload": { "n": 2 }, "actor": "wearer",
        "causationId": reply.body["id"],
    });
    let expected = json!({
        "actor": "wearer", "causationId": reply.body["id"], "correlationId": reply.body["id"],
        "depth": 2,
    });
    check(&scene.emit("a", body).await, 201, changed(shown("a.quiet", 2), expected));
}

async fn deep(mut scene: Scene) {
    let any = json!({ "type": "a.any", "title": "any", "payloadSchema": true });
    scene.sync("a", &json!({ "events": [any] })).await;
    scene.world.restart();
    let emit = async |payload: &str| -> Reply {
        let mut call = scene.request("a", "POST /events", &json!({}));
        call.body = format!(r#"{{"type":"a.any","payload":{payload}}}"#).into_bytes();
        scene.world.send(call).await
    };
    assert_eq!(emit(&nested(64)).await.status, 201);
    refused(&emit(&nested(65)).await, 422, "invalid-payload");
    refused(&emit(&nested(100_000)).await, 422, "invalid-payload");
    let listed = scene.ask("a", "GET /events", &json!({})).await;
    assert_eq!(listed.body["results"].as_array().map(Vec::len), Some(1));
}

async fn lines(scene: Scene) {
    scene.emit("a", event("a.done", 1)).await;
    scene.emit("a", event("a.quiet", 2)).await;
    let lines = scene.lines("b", "a.done").await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    let expected = json!({
        "_id": "${line}", "type": "a.done", "payload": { "n": 1 }, "lock": LOCK,
        "role": "extension", "extension": "a", "title": "a.done", "description": "",
        "color": null, "icon": null, "prefix": "a", "createdAt": "${time}",
    });
    let mut bindings = crate::harness::bindings::Bindings::default();
    bindings.check(&expected, line, "line").expect("the line is as it should be");
    assert_eq!(scene.lines("b", "a.quiet").await, [Value::Null; 0]);
}

async fn listed(mut scene: Scene) {
    scene
        .join(
            "c",
            &changed(manifests::target("c"), json!({ "subscriptions": [{ "type": "a.quiet" }] })),
        )
        .await;
    scene.install("c", LOCK).await;
    let mut ids = Vec::new();
    for (slug, kind) in
        [("a", "a.done"), ("a", "a.quiet"), ("b", "b.quiet"), ("b", "b.done"), ("a", "a.done")]
    {
        scene.pass_millis(1);
        let reply = scene.emit(slug, event(kind, 1)).await;
        ids.push(reply.body["id"].as_str().expect("an event has an id").to_owned());
    }
    let read = async |slug: &str, rest: &str| -> (Vec<usize>, bool) {
        let reply = scene.ask(slug, &format!("GET /events{rest}"), &json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let results = reply.body["results"].as_array().expect("a list");
        let number = |event: &Value| ids.iter().position(|id| event["id"] == **id);
        let found = results.iter().map(|event| number(event).expect("an event that was emitted"));
        (found.collect(), reply.body["hasMore"].as_bool().expect("a flag"))
    };
    assert_eq!(read("a", "").await, (vec![0, 1, 3, 4], false));
    assert_eq!(read("b", "").await, (vec![0, 2, 3, 4], false));
    assert_eq!(read("c", "").await, (vec![0, 1, 3, 4], false));
    assert_eq!(read("b", "?limit=2").await, (vec![0, 2], true));
    assert_eq!(read("b", &format!("?limit=2&after={}", ids[2])).await, (vec![3, 4], false));
    assert_eq!(read("b", &format!("?after={}", ids[4])).await, (vec![], false));
    for bad in ["?after=none", "?limit=0", "?limit=101"] {
        let reply = scene.ask("a", &format!("GET /events{bad}"), &json!({})).await;
        assert_eq!((reply.status.as_u16(), &reply.body["code"]), (400, &json!("bad-request")));
    }
}

/// `b` wants `a.done` by a webhook, and `c` `a.done` by a command.
pub(crate) async fn subscribed(scene: &mut Scene) {
    let wants = json!([{ "type": "a.done" }, { "type": "a.quiet" }]);
    scene.sync("b", &json!({ "subscriptions": wants })).await;
    let wants = json!([{ "type": "a.done", "command": "c.run" }]);
    scene.join("c", &changed(manifests::target("c"), json!({ "subscriptions": wants }))).await;
    scene.install("c", LOCK).await;
    scene.calm().await;
    scene.world.restart();
}

async fn reaches(mut scene: Scene) {
    subscribed(&mut scene).await;
    let emitted = scene.emit("a", event("a.done", 7)).await;
    assert_eq!(emitted.status, 201, "{}", emitted.body);
    scene.settle().await;
    let id = |slug: &str| json!(scene.sessions[&(slug.to_owned(), LOCK.to_owned())]);
    let told = scene.partners.received("b:event.emitted");
    let [webhook] = &told[..] else { panic!("one webhook, not {told:?}") };
    let expected =
        json!({ "sessionId": id("b"), "extension": { "slug": "b" }, "event": emitted.body });
    assert_eq!(webhook.data, expected);
    let told = scene.partners.received("c.run");
    let [call] = &told[..] else { panic!("one call, not {told:?}") };
    let expected = json!({
        "sessionId": id("c"), "lockId": LOCK, "extension": { "slug": "c" },
        "invocationId": "${call}", "capability": "c.run", "input": { "n": 7 },
        "actor": "extension", "caller": { "type": "extension", "slug": "a" },
        "causationId": emitted.body["id"], "correlationId": emitted.body["id"], "depth": 2,
    });
    let mut bindings = crate::harness::bindings::Bindings::default();
    bindings.check(&expected, &call.data, "data").expect("the data are as they should be");
    // Both sides can read the record, and the subscriber may go on from the event and from the call.
    let call = call.data["invocationId"].as_str().expect("a call has an id");
    for slug in ["a", "c"] {
        let read = scene.ask(slug, &format!("GET /invocations/{call}"), &json!({})).await;
        assert_eq!((read.status.as_u16(), &read.body["status"]), (200, &json!("succeeded")));
    }
    let reply = scene.command("c", "a.run", json!({ "causationId": call })).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(3)));
    let body = json!({ "causationId": emitted.body["id"] });
    let reply = scene.command("c", "a.run", body).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
}

async fn others(mut scene: Scene) {
    use super::scene::Registered;
    let wants = json!({ "subscriptions": [{ "type": "a.done" }] });
    scene.join("away", &wants).await;
    scene.install("away", "l2").await;
    scene.register("mute", Registered { has_url: false, ..Registered::USUAL }).await;
    scene.sync("mute", &wants).await;
    scene.install("mute", LOCK).await;
    scene.calm().await;
    assert_eq!(scene.emit("a", event("a.done", 1)).await.status, 201);
    scene.settle().await;
    let told: Vec<String> = scene.partners.take().iter().map(|told| told.word()).collect();
    assert_eq!(told, ["b:action_log.created"]);
}

/// The numbers of what arrived under a word.
pub(crate) fn numbers(scene: &Scene, word: &str) -> Vec<i64> {
    let number = |data: &Value| {
        let n = &data["event"]["payload"]["n"];
        if n.is_null() { data["input"]["n"].as_i64() } else { n.as_i64() }
    };
    let found = scene.partners.received(word);
    found.iter().map(|told| number(&told.data).expect("it has a number")).collect()
}

async fn in_order(mut scene: Scene) {
    subscribed(&mut scene).await;
    for n in 0..20 {
        let reply = scene.emit("a", event("a.done", n)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    scene.settle().await;
    let all: Vec<i64> = (0..20).collect();
    assert_eq!(numbers(&scene, "b:event.emitted"), all);
    assert_eq!(numbers(&scene, "c.run"), all);
    assert_eq!(scene.partners.received("b:action_log.created").len(), 20);
}

async fn given_up(mut scene: Scene) {
    subscribed(&mut scene).await;
    scene.partners.answer("b:event.emitted", Answer::status(500));
    scene.partners.answer("c.run", Answer::status(500));
    assert_eq!(scene.emit("a", event("a.done", 1)).await.status, 201);
    scene.wait(24 * 3600).await;
    scene.settle().await;
    assert_eq!(numbers(&scene, "b:event.emitted"), [1; 5]);
    assert_eq!(numbers(&scene, "c.run"), [1; 5]);
    // Each attempt at a call is a call of its own.
    let calls = scene.partners.received("c.run");
    let ids: std::collections::BTreeSet<String> =
        calls.iter().map(|call| call.data["invocationId"].to_string()).collect();
    assert_eq!(ids.len(), 5);
}

async fn side_by_side(mut scene: Scene) {
    subscribed(&mut scene).await;
    scene.partners.answers("b:event.emitted", [Answer::status(500), Answer::status(200)]);
    assert_eq!(scene.emit("a", event("a.done", 1)).await.status, 201);
    assert_eq!(scene.emit("a", event("a.done", 2)).await.status, 201);
    scene.wait(1).await;
    assert_eq!(numbers(&scene, "c.run"), [1, 2]);
    assert_eq!(numbers(&scene, "b:event.emitted"), [1, 2]);
    scene.wait(60).await;
    assert_eq!(numbers(&scene, "b:event.emitted"), [1, 2, 1]);
}

async fn of_ended_lock(mut scene: Scene) {
    subscribed(&mut scene).await;
    scene.org("PATCH", LOCK, Some(&json!({ "status": "unlocked" }))).await;
    scene.settle().await;
    scene.partners.take();
    assert_eq!(scene.emit("a", event("a.done", 1)).await.status, 201);
    scene.settle().await;
    assert_eq!(numbers(&scene, "b:event.emitted"), [1]);
    assert_eq!(numbers(&scene, "c.run"), [0_i64; 0]);
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let errors = format!("/v1/errors/{}", super::scene::ORG);
    let call = crate::harness::door::Call::new("GET", &errors).token(token);
    assert_eq!(scene.world.send(call).await.body["errors"], json!([]), "nothing is given up");
}
