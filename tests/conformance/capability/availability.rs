//! What an extension says of its own capabilities on one lock, and what a lock that has ended takes away.

use serde_json::{Value, json};

use super::manifests;
use super::scene::{LOCK, Scene, check, record, refused, refused_with};
use super::{Case, case};
use crate::harness::door::Reply;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-031", "a push that widens is refused whole", widened),
        case("CH-032", "a push that narrows is taken", narrowed),
        case("CH-020 CH-021", "what is pushed away says why", reasons),
        case("CH-020", "a push is of one lock, and replaces the one before", replaced),
        case("CH-021", "nothing runs on a lock that has ended, until it is locked again", ended),
        case("CH-021", "lock actions need an active lock too", actions),
        case("CH-020 CH-032", "the listing shows what can be called now", listing),
        case("CH-013", "a push names capabilities of its own that are declared", declared),
        case("", "a push and a session's objects of the largest size fit together", largest),
        case("CH-024", "an operation by a keyholder needs one", keyholder),
    ]
}

async fn push(scene: &Scene, commands: Value) -> Reply {
    scene.ask("b", "PUT /availability", &json!({ "commands": commands })).await
}

#[track_caller]
fn pushed(reply: &Reply) {
    assert_eq!(reply.status, 200, "{}", reply.body);
}

async fn widened(scene: Scene) {
    let before = json!({ "b.run": { "available": false, "reason": "first" } });
    pushed(&push(&scene, before).await);
    for (id, callers) in [
        ("b.worn", json!(["wearer", "extension"])),
        ("b.worn", json!(["keyholder"])),
        ("b.own", json!(["wearer", "keyholder", "extension"])),
    ] {
        let commands = json!({
            "b.run": { "available": true }, id: { "available": true, "invocableBy": callers },
        });
        refused(&push(&scene, commands).await, 422, "invocable-by-widened");
        refused(&scene.command("a", "b.worn", json!({})).await, 403, "caller-not-allowed");
        let reply = scene.command("a", "b.run", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", json!({ "reason": "first" }));
    }
}

async fn narrowed(mut scene: Scene) {
    let only = |callers: Value| json!({ "b.run": { "available": true, "invocableBy": callers } });
    pushed(&push(&scene, only(json!(["wearer"]))).await);
    refused(&scene.command("a", "b.run", json!({})).await, 403, "caller-not-allowed");
    assert_eq!(scene.person("wearer", "commands/b.run", json!({})).await.status, 201);
    pushed(&push(&scene, only(json!([]))).await);
    let reply = scene.person("wearer", "commands/b.run", json!({})).await;
    refused(&reply, 403, "caller-not-allowed");
    // Back to what the manifest says is no widening.
    pushed(&push(&scene, only(json!(["wearer", "keyholder", "extension"]))).await);
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
    // Queries as well.
    let query = json!({ "b.get": { "available": true, "invocableBy": ["wearer"] } });
    pushed(&push(&scene, query).await);
    refused(&scene.query("a", "b.get", json!({})).await, 403, "caller-not-allowed");
}

async fn reasons(scene: Scene) {
    let unavailable = json!({ "available": false });
    let said = json!({ "available": false, "reason": "out of stock" });
    pushed(&push(&scene, json!({ "b.run": said, "b.get": unavailable })).await);
    let reply = scene.command("a", "b.run", json!({})).await;
    refused_with(&reply, 422, "command-unavailable", json!({ "reason": "out of stock" }));
    let reply = scene.query("a", "b.get", json!({})).await;
    refused_with(&reply, 422, "command-unavailable", json!({ "reason": "unavailable" }));
    assert_eq!(scene.partners.count(), 0);
}

async fn replaced(mut scene: Scene) {
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.calm().await;
    pushed(&push(&scene, json!({ "b.run": { "available": false } })).await);
    let reply = scene.ask_on("l2", "a", "POST /commands/b.run", &json!({})).await;
    check(&reply, 201, record(json!({ "lockId": "l2" })));
    pushed(&push(&scene, json!({ "b.other": { "available": false } })).await);
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
    let reply = scene.command("a", "b.other", json!({})).await;
    refused_with(&reply, 422, "command-unavailable", json!({ "reason": "unavailable" }));
    pushed(&push(&scene, json!({})).await);
    let reply = scene.command("a", "b.other", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.other" })));
}

async fn ended(mut scene: Scene) {
    let not_active = json!({ "reason": "lock-not-active" });
    for status in ["unlocked", "deserted"] {
        scene.org("PATCH", LOCK, Some(&json!({ "status": status }))).await;
        let reply = scene.command("a", "b.run", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", not_active.clone());
        let reply = scene.query("a", "b.get", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", not_active.clone());
        let reply = scene.person("wearer", "commands/b.run", json!({})).await;
        refused_with(&reply, 422, "command-unavailable", not_active.clone());
    }
    assert_eq!(scene.partners.count(), 0);
    scene.org("PATCH", LOCK, Some(&json!({ "status": "locked" }))).await;
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
}

async fn actions(mut scene: Scene) {
    scene.org("PATCH", LOCK, Some(&json!({ "status": "unlocked" }))).await;
    let freeze = json!({ "action": { "name": "freeze" } });
    let reply = scene.ask("a", "POST /action", &freeze).await;
    refused_with(&reply, 422, "command-unavailable", json!({ "reason": "lock-not-active" }));
    scene.org("PATCH", LOCK, Some(&json!({ "status": "locked" }))).await;
    let reply = scene.ask("a", "POST /action", &freeze).await;
    check(&reply, 201, json!(""));
    let lock = scene.org("GET", LOCK, None).await;
    assert_eq!(lock.body["isFrozen"], true);
}

async fn listing(mut scene: Scene) {
    let commands = json!({
        "b.run": { "available": false, "reason": "later" },
        "b.other": { "available": true, "invocableBy": ["wearer"] },
    });
    pushed(&push(&scene, commands).await);
    let shown = async |scene: &Scene, id: &str| -> Value {
        let reply = scene.ask("a", "GET /capabilities", &json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let all = ["commands", "queries"].map(|list| reply.body[list].as_array().cloned());
        let mut all = all.into_iter().flatten().flatten();
        all.find(|one| one["id"] == id).expect("it is listed")
    };
    let usual = |id: &str| {
        json!({
            "id": id, "extension": { "slug": "b" }, "title": id, "inputSchema": {},
            "invocableBy": ["wearer", "keyholder", "extension"], "kind": "call",
            "available": true,
        })
    };
    let changed = |id: &str, changes: Value| super::scene::changed(usual(id), changes);
    assert_eq!(shown(&scene, "b.get").await, usual("b.get"));
    let expected = changed("b.run", json!({ "available": false, "reason": "later" }));
    assert_eq!(shown(&scene, "b.run").await, expected);
    let expected = changed("b.other", json!({ "invocableBy": ["wearer"] }));
    assert_eq!(shown(&scene, "b.other").await, expected);
    scene.org("PATCH", LOCK, Some(&json!({ "status": "unlocked" }))).await;
    let expected = changed("b.get", json!({ "available": false, "reason": "lock-not-active" }));
    assert_eq!(shown(&scene, "b.get").await, expected);
    let reply = scene.ask("a", "GET /capabilities", &json!({})).await;
    let events: Vec<&Value> =
        reply.body["events"].as_array().expect("a list").iter().map(|one| &one["type"]).collect();
    assert_eq!(events, ["a.done", "b.done"], "hidden ones are not listed");
}

async fn declared(scene: Scene) {
    let one = |id: &str| json!({ id: { "available": true } });
    refused(&push(&scene, one("b.none")).await, 404, "unknown-command");
    refused(&push(&scene, one("a.run")).await, 404, "unknown-command");
    refused(&push(&scene, one("no id")).await, 400, "invalid-command-id");
}

async fn keyholder(mut scene: Scene) {
    let body = json!({ "actor": "keyholder" });
    let paths = ["POST /temporary-opening/open", "POST /verification-picture/request"];
    for path in paths {
        refused(&scene.ask("a", path, &body).await, 422, "invalid-actor");
    }
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    for path in paths {
        check(&scene.ask("a", path, &body).await, 201, json!(""));
    }
}

async fn largest(mut scene: Scene) {
    let ids = |kind: &str| (0..100).map(move |n| format!("b.{kind}{n}")).collect::<Vec<_>>();
    let all = [ids("c"), ids("q")];
    let declared =
        |ids: &[String]| ids.iter().map(|id| manifests::capability(id)).collect::<Value>();
    let manifest = json!({ "commands": declared(&all[0]), "queries": declared(&all[1]) });
    scene.sync("b", &manifest).await;
    scene.world.restart();
    let said = |reason: &str| {
        let one = json!({ "available": false, "reason": reason.repeat(200) });
        all.concat().into_iter().map(|id| (id, one.clone())).collect::<Value>()
    };
    // Kept in six bytes each.
    let reply = push(&scene, said("\u{1}")).await;
    check(&reply, 413, json!({ "statusCode": 413, "code": "too-large", "message": "${any}" }));
    pushed(&push(&scene, said("\"")).await);
    let object = json!({ "x": "x".repeat((64 << 10) - r#"{"x":""}"#.len()) });
    let patch = json!({ "config": object, "data": object, "metadata": object });
    let reply = scene.ask("b", "PATCH ", &patch).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    pushed(&push(&scene, said("\"")).await);
}
