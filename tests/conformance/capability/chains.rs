//! Chains of calls and events: what may cause what, how deep, and who is charged.

use serde_json::{Value, json};

use super::codes::chain;
use super::manifests;
use super::scene::{LOCK, Scene, changed, check, limited, record, refused};
use super::{Case, case};
use crate::harness::door::Reply;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-056 CH-027 CH-058", "a chain of 8 links passes, the ninth is refused", eight),
        case("CH-057", "calls and events count together, in any alternation", alternating),
        case("CH-057", "a chain of events is as long", of_events),
        case("CH-058", "the ninth link runs nowhere, and may still begin a chain", ninth),
        case("CH-059", "the refused link is charged to who began the chain", charged),
        case("CH-059", "a chain that a person began is charged to no extension", by_a_person),
        case("CH-059 CH-042", "a charge over the limit blocks who began the chain", charge_blocks),
        case("CH-025", "what another lock or another extension alone knows is no cause", strangers),
        case("CH-026", "received events and own or received invocations are causes", known),
        case("CH-025", "a hidden event is no cause but for those who want it", hidden),
        case("CH-025", "a query causes nothing that changes something", of_a_query),
        case("CH-056", "every link names its cause, and all of them the first", linked),
        case("CH-059", "a ninth link by a starter's own event counts once", emitted_by_the_starter),
        case("CH-056", "a delivered event that is a call is a link", delivered),
    ]
}

fn id(reply: &Reply) -> String {
    reply.body["id"].as_str().unwrap_or_else(|| panic!("no id: {}", reply.body)).to_owned()
}

fn caused(id: &str) -> Value {
    json!({ "causationId": id })
}

fn event(kind: &str, cause: Option<&str>) -> Value {
    let mut body = json!({ "type": kind, "payload": { "n": 1 } });
    if let Some(cause) = cause {
        body["causationId"] = json!(cause);
    }
    body
}

async fn eight(scene: Scene) {
    let last = chain(&scene, 8).await;
    assert_eq!(scene.partners.take().len(), 8);
    refused(&scene.command("a", "b.run", caused(&last)).await, 422, "depth-exceeded");
    refused(&scene.command("b", "a.run", caused(&last)).await, 422, "depth-exceeded");
    refused(&scene.query("b", "a.get", caused(&last)).await, 422, "depth-exceeded");
    refused(&scene.emit("b", event("b.done", Some(&last))).await, 422, "depth-exceeded");
    assert_eq!(scene.partners.count(), 0);
}

/// A chain of so many links, each a call or an event by turns.
async fn mixed(scene: &Scene, links: usize, is_event: impl Fn(usize) -> bool) -> String {
    let mut last: Option<String> = None;
    for link in 0..links {
        // Each knows the call that it received, and every visible event.
        let (from, to) = if link % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let reply = if is_event(link) {
            scene.emit(from, event(&format!("{from}.done"), last.as_deref())).await
        } else {
            let body = last.as_deref().map_or(json!({}), caused);
            scene.command(from, &format!("{to}.run"), body).await
        };
        assert_eq!(reply.status, 201, "link {link}: {}", reply.body);
        assert_eq!(reply.body["depth"], link + 1);
        last = Some(id(&reply));
    }
    last.expect("a chain has a link")
}

async fn alternating(mut scene: Scene) {
    let patterns: [fn(usize) -> bool; 4] =
        [|link| link % 2 == 0, |link| link % 2 == 1, |link| link < 4, |link| link % 3 == 0];
    for is_event in patterns {
        let last = mixed(&scene, 8, is_event).await;
        scene.partners.take();
        refused(&scene.emit("a", event("a.done", Some(&last))).await, 422, "depth-exceeded");
        refused(&scene.command("a", "b.run", caused(&last)).await, 422, "depth-exceeded");
        assert_eq!(scene.partners.count(), 0);
        scene.calm().await;
    }
}

async fn of_events(scene: Scene) {
    let last = mixed(&scene, 8, |_| true).await;
    refused(&scene.emit("b", event("b.quiet", Some(&last))).await, 422, "depth-exceeded");
}

async fn ninth(scene: Scene) {
    let last = chain(&scene, 8).await;
    let keyed = json!({ "causationId": last, "idempotencyKey": "k" });
    refused(&scene.command("a", "b.run", keyed).await, 422, "depth-exceeded");
    assert_eq!(scene.partners.count(), 8);
    let first = scene.command("a", "b.run", json!({ "idempotencyKey": "k" })).await;
    check(&first, 201, record(json!({ "idempotencyKey": "k" })));
}

/// A chain of 8 that `a` begins, and `c` at its end, who did nothing before.
async fn long(scene: &mut Scene) -> String {
    scene.join("c", &manifests::target("c")).await;
    scene.install("c", LOCK).await;
    scene.calm().await;
    let seventh = chain(scene, 7).await;
    let last = scene.command("b", "c.run", caused(&seventh)).await;
    assert_eq!(last.body["depth"], 8);
    id(&last)
}

async fn charged(mut scene: Scene) {
    let last = long(&mut scene).await;
    scene.next_minute();
    for _ in 0..119 {
        assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    }
    // One is left of `a`, and `c` uses it up.
    refused(&scene.command("c", "a.run", caused(&last)).await, 422, "depth-exceeded");
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
    // It counts for the one who asked as well: every request does.
    for _ in 0..119 {
        assert_eq!(scene.command("c", "b.run", json!({})).await.status, 201);
    }
    limited(&scene.command("c", "b.run", json!({})).await, "extension", 300);
}

async fn by_a_person(mut scene: Scene) {
    let first = scene.person("wearer", "commands/b.run", json!({})).await;
    let mut last = id(&first);
    for link in 1..8 {
        let (from, to) = if link % 2 == 0 { ("a", "b.run") } else { ("b", "a.run") };
        last = id(&scene.command(from, to, caused(&last)).await);
    }
    scene.next_minute();
    refused(&scene.command("a", "b.run", caused(&last)).await, 422, "depth-exceeded");
    for _ in 0..119 {
        assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    }
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
    // A person may refer to what a person called.
    let reply = scene.person("wearer", "commands/b.run", caused(&id(&first))).await;
    assert_eq!(reply.body["depth"], 2, "{}", reply.body);
    let reply = scene.person("wearer", "commands/b.run", caused(&last)).await;
    refused(&reply, 422, "invalid-causation");
}

async fn charge_blocks(mut scene: Scene) {
    let last = long(&mut scene).await;
    scene.next_minute();
    for _ in 0..120 {
        assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    }
    refused(&scene.command("c", "a.run", caused(&last)).await, 422, "depth-exceeded");
    scene.pass(60);
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 240);
    assert_eq!(scene.lines("b", "extension_blocked").await.len(), 1);
}

async fn strangers(mut scene: Scene) {
    scene.join("c", &manifests::target("c")).await;
    scene.install("c", LOCK).await;
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.calm().await;
    let foreign = id(&scene.command("b", "c.run", json!({})).await);
    let elsewhere = scene.ask_on("l2", "a", "POST /commands/b.run", &json!({})).await;
    let by_wearer = id(&scene.person("wearer", "commands/b.run", json!({})).await);
    for cause in [foreign, id(&elsewhere), by_wearer, format!("inv_{}", "1".repeat(32))] {
        let reply = scene.command("a", "b.run", caused(&cause)).await;
        refused(&reply, 422, "invalid-causation");
        let reply = scene.emit("a", event("a.done", Some(&cause))).await;
        refused(&reply, 422, "invalid-causation");
    }
    let elsewhere = scene.ask_on("l2", "a", "POST /events", &event("a.done", None)).await;
    let reply = scene.command("a", "b.run", caused(&id(&elsewhere))).await;
    refused(&reply, 422, "invalid-causation");
}

async fn known(scene: Scene) {
    let own = id(&scene.command("a", "b.run", json!({})).await);
    let emitted = id(&scene.emit("a", event("a.done", None)).await);
    let received = id(&scene.emit("b", event("b.done", None)).await);
    for cause in [&own, &emitted, &received] {
        let reply = scene.command("a", "b.run", caused(cause)).await;
        let first = if *cause == own { &own } else { cause };
        let expected = json!({ "causationId": cause, "correlationId": first, "depth": 2 });
        check(&reply, 201, record(expected));
        let reply = scene.emit("a", event("a.quiet", Some(cause))).await;
        assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
    }
    // Who was called may refer to that.
    let reply = scene.command("b", "a.run", caused(&own)).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
}

async fn hidden(mut scene: Scene) {
    let subscriptions = json!([{ "type": "a.quiet" }]);
    scene
        .join("c", &changed(manifests::target("c"), json!({ "subscriptions": subscriptions })))
        .await;
    scene.install("c", LOCK).await;
    let quiet = id(&scene.emit("a", event("a.quiet", None)).await);
    refused(&scene.command("b", "a.run", caused(&quiet)).await, 422, "invalid-causation");
    let reply = scene.command("c", "a.run", caused(&quiet)).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
    let reply = scene.command("a", "b.run", caused(&quiet)).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
}

async fn of_a_query(scene: Scene) {
    let query = id(&scene.query("a", "b.get", json!({})).await);
    refused(&scene.command("b", "a.run", caused(&query)).await, 422, "invalid-causation");
    let reply = scene.emit("b", event("b.done", Some(&query))).await;
    refused(&reply, 422, "invalid-causation");
    let reply = scene.query("b", "a.get", caused(&query)).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(2)));
}

async fn linked(scene: Scene) {
    let first = id(&scene.command("a", "b.run", json!({})).await);
    let second = id(&scene.emit("b", event("b.done", Some(&first))).await);
    let third = scene.command("a", "b.run", caused(&second)).await;
    let expected = json!({ "causationId": second, "correlationId": first, "depth": 3 });
    check(&third, 201, record(expected));
    let told = scene.partners.take();
    let last = &told.last().expect("a call arrived").data;
    assert_eq!(last["causationId"], json!(second));
    assert_eq!((&last["correlationId"], &last["depth"]), (&json!(first), &json!(3)));
}

async fn emitted_by_the_starter(mut scene: Scene) {
    let subscriptions = json!([{ "type": "a.done", "command": "b.run" }]);
    scene.sync("b", &json!({ "subscriptions": subscriptions })).await;
    scene.world.restart();
    scene.next_minute();
    let mut last = id(&scene.command("a", "b.run", json!({})).await);
    for _ in 0..6 {
        last = id(&scene.command("a", "b.run", caused(&last)).await);
    }
    let reply = scene.emit("a", event("a.done", Some(&last))).await;
    assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(8)));
    scene.partners.take();
    scene.settle().await;
    assert!(scene.partners.received("b.run").is_empty());
    // Eight links of its own, and the ninth that the event would have been.
    for _ in 0..111 {
        assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    }
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
}

async fn delivered(mut scene: Scene) {
    for (slug, other) in [("a", "b"), ("b", "a")] {
        let event = format!("{other}.done");
        let command = format!("{slug}.run");
        let subscriptions = json!([{ "type": event, "command": command }]);
        scene.sync(slug, &json!({ "subscriptions": subscriptions })).await;
    }
    scene.world.restart();
    let seventh = mixed(&scene, 7, |link| link == 6).await;
    scene.partners.take();
    scene.settle().await;
    let told = scene.partners.received("b.run");
    let [call] = &told[..] else { panic!("one call, not {told:?}") };
    assert_eq!((&call.data["depth"], &call.data["causationId"]), (&json!(8), &json!(seventh)));
    let call = call.data["invocationId"].as_str().expect("a call has an id").to_owned();
    refused(&scene.command("b", "a.run", caused(&call)).await, 422, "depth-exceeded");
    // The eighth link is an event, and the call that it makes would be the ninth.
    scene.calm().await;
    mixed(&scene, 8, |link| link == 7).await;
    scene.partners.take();
    scene.settle().await;
    let found = scene.partners.received("a.run");
    assert!(found.is_empty(), "{found:?}");
    // It is charged to `a`, who made 4 links of the chain.
    for _ in 0..115 {
        assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    }
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
}
