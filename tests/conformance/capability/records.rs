//! What is kept of calls and events, for how long, and for whom.

use annex_core::capability::id::LockId;
use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::ports::Key;
use serde_json::{Value, json};

use super::events::event;
use super::manifests;
use super::scene::{LOCK, ORG, Scene, check, record};
use super::{Case, case};

/// 30 days, in milliseconds.
const RETENTION: u64 = 30 * 86_400_000;
const DAY: u64 = 86_400_000;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-067", "a record can be read for 30 days, and then no more", record_kept),
        case("CH-067", "a record says itself when it goes", record_expires),
        case("CH-068", "a hidden event can be read for 30 days, and then no more", event_kept),
        case("CH-068", "an event that is gone is no cause either", gone),
        case("CH-067", "a record is for the two who know it", for_two),
        case("CH-067", "a person's call is in the record of its target", of_a_person),
        case("CH-067", "the organization reads every record of its locks", of_the_organization),
    ]
}

fn unknown(text: &str) -> Value {
    json!({ "statusCode": 404, "code": "not-found", "message": text })
}

async fn record_kept(mut scene: Scene) {
    let made = scene.command("a", "b.run", json!({ "input": { "x": [1] } })).await;
    let path = format!("GET /invocations/{}", made.body["id"].as_str().expect("an id"));
    let read = scene.ask("a", &path, &json!({})).await;
    check(&read, 200, made.body.clone());
    scene.pass_millis(RETENTION - DAY);
    scene.world.restart();
    check(&scene.ask("a", &path, &json!({})).await, 200, made.body.clone());
    scene.pass_millis(DAY - 1);
    check(&scene.ask("a", &path, &json!({})).await, 200, made.body.clone());
    scene.pass_millis(1);
    let none = unknown("there is no such invocation");
    check(&scene.ask("a", &path, &json!({})).await, 404, none);
}

/// Whether the items of a scene lie there or not is not for the store alone to say: the record expires by its own time.
async fn record_expires(scene: Scene) {
    let made = scene.command("a", "b.run", json!({})).await;
    let id = made.body["id"].as_str().expect("an id");
    let (oid, lock) = place();
    check_expiry(&scene, &keys::capability_call(oid, &lock, id)).await;
    let made = scene.emit("a", event("a.quiet", 1)).await;
    let id = made.body["id"].as_str().expect("an id");
    check_expiry(&scene, &Key::new(keys::lock_events(oid, &lock), id)).await;
}

fn place() -> (Oid, LockId) {
    let oid = Oid::parse(ORG).expect("the organization has an id");
    (oid, LockId::parse(LOCK).expect("the lock has an id"))
}

async fn check_expiry(scene: &Scene, key: &Key) {
    let item = scene.world.process.ports.store.get(key).await.expect("the store answers");
    let expires = item.expect("the item lies there").expires_at.expect("it expires");
    let now = annex_core::ports::Clock::now(&*scene.world.clock);
    assert_eq!(expires.since(now).as_millis(), u128::from(RETENTION));
}

async fn event_kept(scene: Scene) {
    let made = scene.emit("a", event("a.quiet", 1)).await;
    let all = json!({ "results": [made.body], "hasMore": false });
    check(&scene.ask("a", "GET /events", &json!({})).await, 200, all.clone());
    scene.pass_millis(RETENTION - DAY);
    check(&scene.ask("a", "GET /events", &json!({})).await, 200, all.clone());
    scene.pass_millis(DAY - 1);
    check(&scene.ask("a", "GET /events", &json!({})).await, 200, all);
    scene.pass_millis(1);
    let none = json!({ "results": [], "hasMore": false });
    check(&scene.ask("a", "GET /events", &json!({})).await, 200, none);
}

async fn gone(scene: Scene) {
    let event = scene.emit("a", event("a.quiet", 1)).await.body["id"].clone();
    let call = scene.command("a", "b.run", json!({})).await.body["id"].clone();
    scene.pass_millis(RETENTION - 1);
    for cause in [&event, &call] {
        let reply = scene.command("a", "b.run", json!({ "causationId": cause })).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    scene.pass_millis(1);
    for cause in [&event, &call] {
        let reply = scene.command("a", "b.run", json!({ "causationId": cause })).await;
        super::scene::refused(&reply, 422, "invalid-causation");
    }
}

async fn for_two(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    scene.install("c", LOCK).await;
    scene.install("a", "l2").await;
    scene.calm().await;
    let made = scene.command("a", "b.run", json!({})).await;
    let path = format!("GET /invocations/{}", made.body["id"].as_str().expect("an id"));
    for slug in ["a", "b"] {
        check(&scene.ask(slug, &path, &json!({})).await, 200, made.body.clone());
    }
    let none = unknown("there is no such invocation");
    check(&scene.ask("c", &path, &json!({})).await, 404, none.clone());
    check(&scene.ask_on("l2", "a", &path, &json!({})).await, 404, none.clone());
    for id in ["none", "inv_", &format!("inv_{}", "0".repeat(32)), "evt_x"] {
        let path = format!("GET /invocations/{id}");
        check(&scene.ask("a", &path, &json!({})).await, 404, none.clone());
    }
    // Nothing that belongs to an event, however it is called.
    let emitted = scene.emit("a", event("a.done", 1)).await;
    let path = format!("GET /invocations/{}", emitted.body["id"].as_str().expect("an id"));
    check(&scene.ask("a", &path, &json!({})).await, 404, none);
}

async fn of_a_person(mut scene: Scene) {
    let made = scene.person("wearer", "commands/b.run", json!({})).await;
    let session = scene.sessions[&("b".to_owned(), LOCK.to_owned())].clone();
    let wearer = json!({ "caller": { "type": "wearer" }, "actor": "wearer", "sessionId": session });
    check(&made, 201, record(wearer));
    let path = format!("GET /invocations/{}", made.body["id"].as_str().expect("an id"));
    check(&scene.ask("b", &path, &json!({})).await, 200, made.body.clone());
    let none = unknown("there is no such invocation");
    check(&scene.ask("a", &path, &json!({})).await, 404, none);
}

async fn of_the_organization(mut scene: Scene) {
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    let by_wearer = scene.person("wearer", "commands/b.run", json!({})).await;
    let by_extension = scene.command("a", "b.run", json!({})).await;
    for made in [&by_wearer, &by_extension] {
        let id = made.body["id"].as_str().expect("an id");
        let read = scene.org("GET", &format!("{LOCK}/invocations/{id}"), None).await;
        check(&read, 200, made.body.clone());
        let elsewhere = scene.org("GET", &format!("l2/invocations/{id}"), None).await;
        let none = json!({ "error": "there is no such invocation", "code": "not-found" });
        check(&elsewhere, 404, none);
    }
    let path = format!("/v1/orgs/{ORG}/scopes/lock/{LOCK}/invocations/inv_{}", "0".repeat(32));
    let few = scene.world.token("key:ext.list", "A").await.expect("a key is made");
    let call = crate::harness::door::Call::new("GET", &path).token(&few);
    let own = json!({ "error": "${any}", "code": "forbidden" });
    check(&scene.world.send(call).await, 403, own);
}
