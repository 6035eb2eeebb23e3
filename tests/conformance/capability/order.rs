//! What holds for all refusals: their order, their shape, and that they are the same every time (CH-002 to CH-006).

use serde_json::{Value, json};

use super::codes::{chain, nothing_ran};
use super::manifests;
use super::scene::{LOCK, ORG, Registered, Scene, changed, check, record, refused, refused_with};
use super::{Case, case};
use crate::harness::door::{Call, Reply};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-002", "a refusal is the same on every run, and nothing ran", again_and_again),
        case("CH-002", "the first check that fails answers", in_order),
        case("CH-010 CH-011 CH-015", "an event is checked in order as well", events_in_order),
        case("CH-003 CH-006", "other faults have the same shape, with their own codes", others),
        case("CH-003 CH-006", "what no handler sees has the same shape", no_handler),
        case("CH-003", "a person's call is refused in the same shape, for the 21 codes", people),
    ]
}

async fn again_and_again(mut scene: Scene) {
    let replies = async |scene: &Scene| -> Vec<Reply> {
        let mut found = Vec::new();
        for id in ["b.worn", "b.nothing", "c.run", "not%20an%20id", "b.begin"] {
            found.push(scene.command("a", id, json!({ "idempotencyKey": "k" })).await);
        }
        found
    };
    let first = replies(&scene).await;
    assert_eq!(replies(&scene).await, first);
    scene.world.restart();
    assert_eq!(replies(&scene).await, first);
    nothing_ran(&scene);
    // A refused call has not used its key.
    let reply = scene.command("a", "b.run", json!({ "idempotencyKey": "k" })).await;
    check(&reply, 201, record(json!({ "idempotencyKey": "k" })));
}

/// Each request has everything wrong from one check on.
async fn in_order(mut scene: Scene) {
    let used = scene.command("a", "b.run", json!({ "idempotencyKey": "used" })).await;
    assert_eq!(used.status, 201);
    let last = chain(&scene, 8).await;
    scene.register("bare", Registered { has_url: false, ..Registered::USUAL }).await;
    let mut begin = manifests::for_callers("bare.begin", &["keyholder"]);
    begin["kind"] = json!("start");
    let strict = json!({ "type": "object", "required": ["n"] });
    let worn = manifests::for_callers("bare.worn", &["wearer"]);
    let typed = manifests::taking("bare.typed", strict);
    scene.sync("bare", &json!({ "commands": [begin, worn, typed] })).await;
    scene.install("bare", LOCK).await;
    scene.org("PATCH", LOCK, Some(&json!({ "status": "unlocked" }))).await;
    scene.calm().await;
    let wrong = json!({
        "input": 1, "actor": "keyholder", "idempotencyKey": "used", "causationId": "none",
    });
    let with = |name: &str, value: Value| changed(wrong.clone(), json!({ name: value }));
    refused(&scene.command("a", "not%20an%20id", wrong.clone()).await, 400, "invalid-command-id");
    let conflict = scene.command("a", "nobody.run", wrong.clone()).await;
    refused(&conflict, 409, "idempotency-key-conflict");
    let fresh = with("idempotencyKey", Value::Null);
    refused(&scene.command("a", "nobody.run", fresh.clone()).await, 404, "not-installed");
    refused(&scene.command("a", "bare.none", fresh.clone()).await, 404, "unknown-command");
    refused(&scene.command("a", "bare.begin", fresh.clone()).await, 422, "start-not-supported");
    refused(&scene.command("a", "bare.worn", fresh.clone()).await, 403, "caller-not-allowed");
    refused(&scene.command("a", "bare.typed", fresh).await, 422, "invalid-actor");
    let mut body = json!({ "input": 1, "causationId": "none" });
    let typed = async |body: &Value| scene.command("a", "bare.typed", body.clone()).await;
    refused(&typed(&body).await, 422, "invalid-causation");
    body["causationId"] = json!(last);
    refused(&typed(&body).await, 422, "depth-exceeded");
    refused(&typed(&json!({ "input": 1 })).await, 422, "invalid-input");
    let body = json!({ "input": { "n": 1 } });
    let reason = json!({ "reason": "lock-not-active" });
    refused_with(&typed(&body).await, 422, "command-unavailable", reason);
    scene.org("PATCH", LOCK, Some(&json!({ "status": "locked" }))).await;
    let reply = scene.command("a", "bare.typed", body).await;
    refused(&reply, 422, "not-dispatchable");
    nothing_ran(&scene);
}

async fn events_in_order(scene: Scene) {
    for kind in ["lock.x", "b.done", "a.none", "x"] {
        let body = json!({ "type": kind, "actor": "me" });
        check(&scene.emit("a", body).await, 400, fault(400, "bad-request"));
    }
    for kind in ["b.NOT VALID", "b", "b.", "b.x.y", ""] {
        let reply = scene.emit("a", json!({ "type": kind, "causationId": "none" })).await;
        refused(&reply, 403, "foreign-namespace");
    }
    for kind in ["a", "a.", "a.NOT VALID", "a.x.y", "a.none"] {
        let reply = scene.emit("a", json!({ "type": kind, "causationId": "none" })).await;
        refused(&reply, 404, "unknown-event");
    }
    let reply = scene.emit("a", json!({ "type": "lock.NOT VALID" })).await;
    refused(&reply, 403, "reserved-namespace");
    nothing_ran(&scene);
}

async fn others(scene: Scene) {
    let body = |status: u16, code: &str| json!({ "statusCode": status, "code": code, "message": "${any}" });
    let without = scene.request("a", "POST /commands/b.run", &json!({}));
    let without = Call { token: None, ..without };
    check(&scene.world.send(without).await, 401, body(401, "unauthorized"));
    let forged = scene.request("a", "POST /commands/b.run", &json!({})).token("axd.a.none");
    check(&scene.world.send(forged).await, 401, body(401, "unauthorized"));
    // The session of another extension is none.
    let call = scene.request("a", "POST /commands/b.run", &json!({})).token(&scene.tokens["b"]);
    check(&scene.world.send(call).await, 404, body(404, "not-found"));
    let reply = scene.command("a", "b.run", json!({ "actor": "nobody" })).await;
    check(&reply, 400, body(400, "bad-request"));
    let reply = scene.command("a", "b.run", json!({ "unknown": 1 })).await;
    check(&reply, 400, body(400, "bad-request"));
    let mut call = scene.request("a", "POST /commands/b.run", &json!({}));
    call.body = b"[]".to_vec();
    check(&scene.world.send(call).await, 400, body(400, "bad-request"));
    let reply = scene.ask("a", "GET /nothing", &json!({})).await;
    check(&reply, 404, body(404, "not-found"));
    nothing_ran(&scene);
}

fn fault(status: u16, code: &str) -> Value {
    json!({ "statusCode": status, "code": code, "message": "${any}" })
}

async fn no_handler(scene: Scene) {
    let mut large = scene.request("a", "POST /commands/b.run", &json!({}));
    large.body = vec![b' '; (1 << 20) + 1];
    check(&scene.world.send(large.clone()).await, 413, fault(413, "too-large"));
    large.path = scene.path("a", LOCK, "/logs/custom");
    check(&scene.world.send(large).await, 413, fault(413, "too-large"));
    let reply = scene.ask("a", "DELETE /events", &json!({})).await;
    check(&reply, 405, fault(405, "method-not-allowed"));
    for path in ["POST /commands/%FF", "POST /queries/%FF", "GET /invocations/%FF"] {
        check(&scene.ask("a", path, &json!({})).await, 400, fault(400, "bad-request"));
    }
    let token = &scene.tokens["a"];
    let nowhere = Call::new("GET", "/api/extensions/nothing").token(token);
    check(&scene.world.send(nowhere).await, 404, fault(404, "not-found"));
    nothing_ran(&scene);
}

async fn people(mut scene: Scene) {
    let reply = scene.person("wearer", "commands/b.none", json!({})).await;
    refused(&reply, 404, "unknown-command");
    let own = |code: &str| json!({ "error": "${any}", "code": code });
    let reply = scene.person("wearer", "commands/b.run", json!({ "actor": 1 })).await;
    check(&reply, 400, own("bad-request"));
    let reply = scene.person("somebody", "commands/b.run", json!({})).await;
    check(&reply, 404, own("not-found"));
    let few = scene.world.token("key:ext.list", "A").await.expect("a key is made");
    let path = format!("/v1/orgs/{ORG}/scopes/lock/{LOCK}/wearer/queries/b.get");
    let reply = scene.world.send(Call::new("POST", &path).token(&few).json(&json!({}))).await;
    check(&reply, 403, own("forbidden"));
    let reply = scene.world.send(Call::new("POST", &path).json(&json!({}))).await;
    check(&reply, 401, own("unauthenticated"));
    nothing_ran(&scene);
}
