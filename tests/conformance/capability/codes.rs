//! The 21 codes: one request each that gets exactly that answer, before anything ran (CH-002 to CH-006).

use serde_json::{Value, json};

use super::scene::{LOCK, Registered, Scene, check, limited, record, refused, refused_with};
use super::{Case, case, manifests};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-002 CH-003 CH-004 CH-005 CH-006 CH-007", "400 invalid-command-id", command_id),
        case("CH-008 CH-004 CH-005", "403 caller-not-allowed", caller),
        case("CH-009", "403 caller-not-allowed for a person", person),
        case("CH-010 CH-004 CH-005", "403 reserved-namespace", reserved),
        case("CH-011 CH-004 CH-005", "403 foreign-namespace", foreign),
        case("CH-012 CH-004 CH-005", "404 not-installed", not_installed),
        case("CH-013 CH-014 CH-004 CH-005", "404 unknown-command", unknown_command),
        case("CH-015 CH-004 CH-005", "404 unknown-event", unknown_event),
        case("CH-016 CH-004 CH-005", "404 options-not-declared", options_not_declared),
        case("CH-017 CH-004 CH-005", "409 idempotency-key-conflict", conflict),
        case("CH-020 CH-021 CH-006 CH-004 CH-005", "422 command-unavailable", unavailable),
        case("CH-022 CH-004 CH-005", "422 invalid-input", input),
        case("CH-023 CH-004 CH-005", "422 invalid-payload", payload),
        case("CH-024 CH-004 CH-005", "422 invalid-actor", actor),
        case("CH-025 CH-004 CH-005", "422 invalid-causation", causation),
        case("CH-027 CH-058 CH-004 CH-005", "422 depth-exceeded", depth),
        case("CH-028 CH-004 CH-005", "422 start-not-supported", start),
        case("CH-029 CH-030 CH-004 CH-005", "422 not-dispatchable", not_dispatchable),
        case("CH-031 CH-004 CH-005", "422 invocable-by-widened", widened),
        case("CH-033 CH-048 CH-004 CH-005", "429 rate-limited", rate),
        case("CH-034 CH-004 CH-005", "502 options-unavailable", options_unavailable),
        case("CH-035 CH-036 CH-004 CH-005", "503 partner-busy", busy),
    ]
}

#[track_caller]
pub(crate) fn nothing_ran(scene: &Scene) {
    assert_eq!(scene.partners.count(), 0, "a refused call reaches nobody");
}

async fn command_id(scene: Scene) {
    for id in ["not%20an%20id", "run", "b.", ".run", "B.run", "b.run.twice", "b.-run", "b_.run"] {
        let reply = scene.command("a", id, json!({})).await;
        refused(&reply, 400, "invalid-command-id");
        let reply = scene.query("a", id, json!({})).await;
        refused(&reply, 400, "invalid-command-id");
    }
    let longest = |n| format!("b.{}", "x".repeat(n));
    refused(&scene.command("a", &longest(40), json!({})).await, 404, "unknown-command");
    refused(&scene.command("a", &longest(41), json!({})).await, 400, "invalid-command-id");
    let reply = scene.options("a", json!({ "id": "not an id", "field": "color" })).await;
    refused(&reply, 400, "invalid-command-id");
    nothing_ran(&scene);
}

async fn caller(scene: Scene) {
    refused(&scene.command("a", "b.worn", json!({})).await, 403, "caller-not-allowed");
    nothing_ran(&scene);
}

async fn person(mut scene: Scene) {
    let reply = scene.person("wearer", "commands/b.own", json!({})).await;
    refused(&reply, 403, "caller-not-allowed");
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    let reply = scene.person("keyholder", "commands/b.worn", json!({})).await;
    refused(&reply, 403, "caller-not-allowed");
    nothing_ran(&scene);
    let reply = scene.person("wearer", "commands/b.worn", json!({})).await;
    let expected = json!({
        "capability": "b.worn", "caller": { "type": "wearer" }, "actor": "wearer",
    });
    check(&reply, 201, record(expected));
}

async fn reserved(scene: Scene) {
    for namespace in ["lock", "default", "chaster", "annex"] {
        let body = json!({ "type": format!("{namespace}.done"), "payload": { "n": 1 } });
        refused(&scene.emit("a", body).await, 403, "reserved-namespace");
    }
}

async fn foreign(scene: Scene) {
    let body = json!({ "type": "b.done", "payload": { "n": 1 } });
    refused(&scene.emit("a", body).await, 403, "foreign-namespace");
    // Whether anybody is called so makes no difference.
    let body = json!({ "type": "nobody.done", "payload": { "n": 1 } });
    refused(&scene.emit("a", body).await, 403, "foreign-namespace");
}

async fn not_installed(mut scene: Scene) {
    scene.install("a", "l2").await;
    let reply = scene.ask_on("l2", "a", "POST /commands/b.run", &json!({})).await;
    refused(&reply, 404, "not-installed");
    refused(&scene.command("a", "nobody.run", json!({})).await, 404, "not-installed");
    refused(&scene.command("a", "lock.run", json!({})).await, 404, "not-installed");
    nothing_ran(&scene);
    scene.install("b", "l2").await;
    let reply = scene.ask_on("l2", "a", "POST /commands/b.run", &json!({})).await;
    check(&reply, 201, record(json!({ "lockId": "l2" })));
}

async fn unknown_command(scene: Scene) {
    refused(&scene.command("a", "b.nothing", json!({})).await, 404, "unknown-command");
    refused(&scene.query("a", "b.nothing", json!({})).await, 404, "unknown-command");
    // A query is no command, nor the other way round.
    refused(&scene.command("a", "b.get", json!({})).await, 404, "unknown-command");
    refused(&scene.query("a", "b.run", json!({})).await, 404, "unknown-command");
    nothing_ran(&scene);
}

async fn unknown_event(scene: Scene) {
    let body = json!({ "type": "a.undeclared", "payload": { "n": 1 } });
    refused(&scene.emit("a", body).await, 404, "unknown-event");
}

async fn options_not_declared(scene: Scene) {
    for field in ["size", "nothing", ""] {
        let body = json!({ "id": "b.choose", "field": field });
        refused(&scene.options("a", body).await, 404, "options-not-declared");
    }
    nothing_ran(&scene);
}

async fn conflict(scene: Scene) {
    let body = json!({ "idempotencyKey": "k" });
    let reply = scene.command("a", "b.run", body.clone()).await;
    check(&reply, 201, record(json!({ "idempotencyKey": "k" })));
    scene.partners.take();
    let reply = scene.command("a", "b.other", body).await;
    refused(&reply, 409, "idempotency-key-conflict");
    nothing_ran(&scene);
}

async fn unavailable(mut scene: Scene) {
    let push = json!({ "commands": { "b.run": { "available": false, "reason": "sold-out" } } });
    let reply = scene.ask("b", "PUT /availability", &push).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let reply = scene.command("a", "b.run", json!({})).await;
    refused_with(&reply, 422, "command-unavailable", json!({ "reason": "sold-out" }));
    // An ended lock comes first.
    for status in ["unlocked", "deserted"] {
        scene.org("PATCH", LOCK, Some(&json!({ "status": status }))).await;
        let reply = scene.command("a", "b.other", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", json!({ "reason": "lock-not-active" }));
        let reply = scene.command("a", "b.run", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", json!({ "reason": "lock-not-active" }));
    }
    nothing_ran(&scene);
}

async fn input(scene: Scene) {
    let reply = scene.command("a", "b.typed", json!({ "input": { "n": "one" } })).await;
    refused(&reply, 422, "invalid-input");
    refused(&scene.command("a", "b.typed", json!({ "input": [] })).await, 422, "invalid-input");
    nothing_ran(&scene);
    let reply = scene.command("a", "b.typed", json!({ "input": { "n": 1 } })).await;
    check(&reply, 201, record(json!({ "capability": "b.typed", "output": { "n": 1 } })));
}

async fn payload(scene: Scene) {
    let bad = [json!({}), json!({ "n": "1" }), json!([]), Value::Null];
    for payload in bad {
        let body = json!({ "type": "a.done", "payload": payload });
        refused(&scene.emit("a", body).await, 422, "invalid-payload");
    }
    refused(&scene.emit("a", json!({ "type": "a.done" })).await, 422, "invalid-payload");
}

async fn actor(mut scene: Scene) {
    let body = json!({ "actor": "keyholder" });
    refused(&scene.command("a", "b.run", body.clone()).await, 422, "invalid-actor");
    let event = json!({ "type": "a.done", "payload": { "n": 1 }, "actor": "keyholder" });
    refused(&scene.emit("a", event.clone()).await, 422, "invalid-actor");
    let reply = scene.person("keyholder", "commands/b.run", json!({})).await;
    refused(&reply, 422, "invalid-actor");
    nothing_ran(&scene);
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    let reply = scene.command("a", "b.run", body).await;
    check(&reply, 201, record(json!({ "actor": "keyholder" })));
    assert_eq!(scene.emit("a", event).await.status, 201);
}

async fn causation(scene: Scene) {
    let random = format!("inv_{}", "0".repeat(32));
    for id in [&*random, "evt_0", "", "inv_", "random"] {
        let reply = scene.command("a", "b.run", json!({ "causationId": id })).await;
        refused(&reply, 422, "invalid-causation");
        let body = json!({ "type": "a.done", "payload": { "n": 1 }, "causationId": id });
        refused(&scene.emit("a", body).await, 422, "invalid-causation");
    }
    nothing_ran(&scene);
}

/// A chain of calls between `a` and `b` of so many links; answers the id of the last.
pub(crate) async fn chain(scene: &Scene, links: usize) -> String {
    let mut last: Option<String> = None;
    for link in 0..links {
        // Each knows the call that it received.
        let (from, to) = if link % 2 == 0 { ("a", "b.run") } else { ("b", "a.run") };
        let body = last.map_or(json!({}), |id| json!({ "causationId": id }));
        let reply = scene.command(from, to, body).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        assert_eq!(reply.body["depth"], link + 1);
        last = Some(reply.body["id"].as_str().expect("a record has an id").to_owned());
    }
    last.expect("a chain has a link")
}

async fn depth(scene: Scene) {
    let last = chain(&scene, 8).await;
    assert_eq!(scene.partners.take().len(), 8);
    let reply = scene.command("a", "b.run", json!({ "causationId": last })).await;
    refused(&reply, 422, "depth-exceeded");
    nothing_ran(&scene);
}

async fn start(mut scene: Scene) {
    refused(&scene.command("a", "b.begin", json!({})).await, 422, "start-not-supported");
    nothing_ran(&scene);
    scene.register("own", Registered { platform_owned: true, ..Registered::USUAL }).await;
    scene.sync("own", &manifests::target("own")).await;
    scene.install("own", LOCK).await;
    let reply = scene.command("a", "own.begin", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "own.begin" })));
}

async fn not_dispatchable(mut scene: Scene) {
    let lacking = [
        ("no-url", Registered { has_url: false, ..Registered::USUAL }),
        ("no-credentials", Registered { has_credentials: false, ..Registered::USUAL }),
    ];
    for (slug, how) in lacking {
        scene.register(slug, how).await;
        scene.sync(slug, &manifests::target(slug)).await;
        scene.install(slug, LOCK).await;
        let reply = scene.command("a", &format!("{slug}.run"), json!({})).await;
        refused(&reply, 422, "not-dispatchable");
        let reply = scene.query("a", &format!("{slug}.get"), json!({})).await;
        refused(&reply, 422, "not-dispatchable");
    }
    nothing_ran(&scene);
}

async fn widened(scene: Scene) {
    let push = json!({ "commands": { "b.worn": {
        "available": true, "invocableBy": ["wearer", "extension"],
    } } });
    refused(&scene.ask("b", "PUT /availability", &push).await, 422, "invocable-by-widened");
    refused(&scene.command("a", "b.worn", json!({})).await, 403, "caller-not-allowed");
}

async fn rate(scene: Scene) {
    for _ in 0..120 {
        refused(&scene.command("a", "b.none", json!({})).await, 404, "unknown-command");
    }
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
    nothing_ran(&scene);
}

async fn options_unavailable(scene: Scene) {
    use super::partners::Answer;
    scene.partners.answer("b.colors", Answer::status(500));
    let body = json!({ "id": "b.choose", "field": "color" });
    refused(&scene.options("a", body).await, 502, "options-unavailable");
    let body = json!({ "id": "b.choose", "field": "broken" });
    refused(&scene.options("a", body).await, 502, "options-unavailable");
}

async fn busy(scene: Scene) {
    use super::partners::Answer;
    scene.partners.answer("b.run", Answer::Echo.held());
    let call = || scene.request("a", "POST /commands/b.run", &json!({}));
    let running: Vec<_> = (0..16).map(|_| scene.begin(call())).collect();
    scene.partners.held(16).await;
    let reply = scene.command("a", "b.run", json!({})).await;
    refused_with(&reply, 503, "partner-busy", json!({ "retryAfterSeconds": 1 }));
    // Another target has places of its own.
    check(
        &scene.command("b", "a.run", json!({})).await,
        201,
        record(json!({ "capability": "a.run", "caller": { "type": "extension", "slug": "b" } })),
    );
    scene.partners.let_go();
    for call in running {
        check(&call.await.expect("no call panics"), 201, record(json!({})));
    }
    assert_eq!(scene.partners.received("b.run").len(), 16);
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
}
