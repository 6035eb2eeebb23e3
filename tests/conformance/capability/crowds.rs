//! Many sessions on a lock, large payloads, slow receivers, and more than one organization.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::events::{event, numbers, subscribed};
use super::manifests;
use super::partners::Answer;
use super::scene::{LOCK, ORG, Scene, changed, check, limited, record, refused};
use super::{Case, case};
use crate::harness::door::{Call, Reply};

/// The other organization.
const OTHER: (&str, &str) = ("B", "000000b0-0000-4000-8000-000000000000");

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-066", "20 sessions with both subscriptions are told of 64 KiB", twenty),
        case("", "the 21st session of a lock is refused", twenty_first),
        case("", "two processes install an extension once", once).on_dynamo(),
        case("", "an extension hears of an event once by each way", each_way),
        case("CH-060", "a slow receiver gets everything once, in order", slow).on_dynamo(),
        case("CH-019 CH-043", "a lock of another organization is another lock", organizations)
            .on_dynamo(),
        case("CH-012", "an organization that is gone has no sessions", gone),
        case("CH-003", "a body that is no object of these members, each once, is refused", bodies),
        case("CH-065", "deep and large inputs of choices are refused", deep_options),
    ]
}

/// Not on an emulator: the commit has less than 4 MB, but more in the base64 of the request, which that one counts.
async fn twenty(mut scene: Scene) {
    let any = json!({ "type": "a.any", "title": "any", "payloadSchema": true });
    scene.sync("a", &json!({ "events": [any] })).await;
    for n in 0..18 {
        let slug = format!("x{n}");
        let command = format!("{slug}.run");
        let wants = json!([{ "type": "a.any" }, { "type": "a.any", "command": command }]);
        scene
            .join(&slug, &changed(manifests::caller(&slug), json!({ "subscriptions": wants })))
            .await;
        scene.install(&slug, LOCK).await;
    }
    for slug in ["a", "b"] {
        let command = format!("{slug}.run");
        let wants = json!([{ "type": "a.any" }, { "type": "a.any", "command": command }]);
        scene.sync(slug, &json!({ "subscriptions": wants })).await;
    }
    scene.calm().await;
    scene.world.restart();
    let payload = |bytes: usize| Value::from("x".repeat(bytes - 2));
    for slug in (0..18).map(|n| format!("x{n}")).chain(["a", "b"].map(str::to_owned)) {
        // The payload alone is what an answer may have.
        scene.partners.answer(&format!("{slug}.run"), Answer::status(204));
    }
    let large = json!({ "type": "a.any", "payload": payload((64 << 10) + 1) });
    refused(&scene.emit("a", large).await, 422, "invalid-payload");
    let large = json!({ "type": "a.any", "payload": payload(64 << 10) });
    let reply = scene.emit("a", large).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    scene.settle().await;
    let mut words: Vec<String> = scene.partners.take().iter().map(|told| told.word()).collect();
    words.sort();
    let slugs = (0..18).map(|n| format!("x{n}")).chain(["a", "b"].map(str::to_owned));
    let mut expected: Vec<String> = slugs
        .flat_map(|slug| {
            let line = (slug != "a").then(|| format!("{slug}:action_log.created"));
            [format!("{slug}.run"), format!("{slug}:event.emitted")].into_iter().chain(line)
        })
        .collect();
    expected.sort();
    assert_eq!(words, expected);
}

async fn twenty_first(mut scene: Scene) {
    for n in 0..19 {
        let slug = format!("x{n}");
        scene.join(&slug, &json!({})).await;
        if n < 18 {
            scene.install(&slug, LOCK).await;
        }
    }
    let path = format!("{LOCK}/sessions");
    let reply = scene.org("POST", &path, Some(&json!({ "extension": "x18" }))).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    // Another lock has room.
    scene.install("x18", "l2").await;
}

async fn once(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let path = format!("/v1/orgs/{ORG}/scopes/lock/{LOCK}/sessions");
    let call = Call::new("POST", &path).token(token).json(&json!({ "extension": "c" }));
    scene.world.site.gate.shuffle(3);
    let other = scene.another();
    let routers = [scene.world.process.router(), other.router()];
    let sent = (0..8).map(|n| call.clone().send(routers[n % 2]));
    let replies: Vec<Reply> = futures_util::future::join_all(sent).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    scene.settle().await;
    assert_eq!(scene.partners.received("c:extension_session.created").len(), 1);
}

async fn each_way(scene: Scene) {
    let wants = |commands: &[&str]| -> Value {
        commands.iter().map(|command| json!({ "type": "b.done", "command": command })).collect()
    };
    let reply = scene.send_manifest("a", &json!({ "subscriptions": wants(&["a.run"]) })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let two = json!({ "subscriptions": wants(&["a.run", "a.other"]) });
    let reply = scene.send_manifest("a", &two).await;
    let text = "subscriptions[1]: stands there twice";
    check(&reply, 400, json!({ "statusCode": 400, "code": "bad-request", "message": text }));
}

async fn slow(mut scene: Scene) {
    subscribed(&mut scene).await;
    scene.partners.answer("b:event.emitted", Answer::status(200).after_millis(9_900));
    scene.partners.answer("c.run", Answer::Echo.after_millis(9_900));
    for n in 0..12 {
        assert_eq!(scene.emit("a", event("a.done", n)).await.status, 201);
    }
    scene.settle().await;
    let all: Vec<i64> = (0..12).collect();
    assert_eq!(numbers(&scene, "b:event.emitted"), all);
    assert_eq!(numbers(&scene, "c.run"), all);
}

async fn organizations(mut scene: Scene) {
    scene.found(OTHER.0, OTHER.1).await;
    let mut sessions = Vec::new();
    for slug in ["a", "b"] {
        let body = json!({ "extension": slug });
        let reply = scene.org_as(OTHER, "POST", &format!("{LOCK}/sessions"), Some(&body)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        sessions.push(reply.body["sessionId"].as_str().expect("an id").to_owned());
    }
    scene.calm().await;
    let call = |rest: &str, body: &Value| {
        let path = format!("/api/extensions/sessions/{}{rest}", sessions[0]);
        Call::new("POST", &path).token(&scene.tokens["a"]).json(body)
    };
    let keyed = json!({ "idempotencyKey": "k" });
    let here = scene.command("a", "b.run", keyed.clone()).await;
    check(&here, 201, record(json!({ "idempotencyKey": "k" })));
    let there = scene.world.send(call("/commands/b.other", &keyed)).await;
    let expected = json!({ "idempotencyKey": "k", "capability": "b.other" });
    check(&there, 201, record(expected));
    let cause = json!({ "causationId": here.body["id"] });
    let reply = scene.world.send(call("/commands/b.run", &cause)).await;
    refused(&reply, 422, "invalid-causation");
    let told = scene.partners.take();
    assert_eq!(told[1].data["sessionId"], json!(sessions[1]));
    for _ in 0..119 {
        assert_eq!(scene.command("a", "b.none", json!({})).await.status, 404);
    }
    limited(&scene.command("a", "b.run", json!({})).await, "extension", 300);
    assert_eq!(scene.world.send(call("/commands/b.run", &json!({}))).await.status, 201);
    // What one says of its lock is nothing of the other's.
    let ended = json!({ "status": "unlocked" });
    scene.org_as(OTHER, "PATCH", LOCK, Some(&ended)).await;
    assert_eq!(scene.org("GET", LOCK, None).await.body["status"], "locked");
    // Nobody reaches into another organization.
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let path = format!("/v1/orgs/{}/scopes/lock/{LOCK}", OTHER.1);
    assert_eq!(scene.world.send(Call::new("GET", &path).token(token)).await.status, 403);
}

async fn gone(mut scene: Scene) {
    // A line that `b` has not been told of yet.
    let line = scene.ask("a", "POST /logs/custom", &json!({ "title": "x" })).await;
    assert_eq!(line.status, 201, "{}", line.body);
    let token = scene.world.token("operator", "A").await.expect("the operator signs in");
    let path = format!("/v1/orgs/{ORG}");
    let call = Call::new("DELETE", &path).token(token).form([("confirm", "A")]);
    let reply = scene.world.send(call).await;
    assert!(reply.status.is_success(), "{}", reply.body);
    scene.world.restart();
    for what in ["POST /commands/b.run", "POST /events", "GET ", "POST /options"] {
        let reply = scene.ask("a", what, &json!({})).await;
        let fault = json!({ "statusCode": 404, "code": "not-found", "message": "${any}" });
        check(&reply, 404, fault);
    }
    scene.settle().await;
    assert_eq!(scene.partners.count(), 0, "nothing is told of what is gone");
}

async fn bodies(scene: Scene) {
    let bad = [
        r#"{"input":1,"input":2}"#,
        r#"{"idempotencyKey":"k","idempotencyKey":"k"}"#,
        r#"{"input":1} x"#,
        r#"{"input":1"#,
        r#"{"input":01}"#,
        r#"{"idempotencyKey":1}"#,
        r#"{"causationId":[]}"#,
        r#"{"caller":"b"}"#,
        "null",
        "\u{feff}{}",
    ];
    for body in bad {
        for path in ["/commands/b.run", "/queries/b.get", "/events", "/options"] {
            let mut call = scene.request("a", &format!("POST {path}"), &json!({}));
            call.body = body.as_bytes().to_vec();
            let reply = scene.world.send(call).await;
            assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
            let keys: BTreeSet<&str> =
                reply.body.as_object().expect("an object").keys().map(String::as_str).collect();
            assert_eq!(keys, BTreeSet::from(["statusCode", "code", "message"]));
        }
        scene.next_minute();
    }
    assert_eq!(scene.partners.count(), 0);
    // No body at all is an empty one.
    let mut call = scene.request("a", "POST /commands/b.run", &json!({}));
    call.body.clear();
    check(&scene.world.send(call).await, 201, record(json!({})));
}

async fn deep_options(scene: Scene) {
    scene.partners.answer("b.colors", Answer::output(&json!({ "options": [] })));
    // With the object around it, which is a level and some bytes.
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let around = json!({ "input": "" }).to_string().len() - 2;
    let nested = super::answers::nested;
    for (input, fits) in [
        (nested(63), true),
        (nested(64), false),
        (nested(100_000), false),
        (text((64 << 10) - around), true),
        (text((64 << 10) - around + 1), false),
        (text(100 << 10), false),
    ] {
        let mut call = scene.request("a", "POST /options", &json!({}));
        call.body = format!(r#"{{"id":"b.choose","field":"color","input":{input}}}"#).into_bytes();
        let reply = scene.world.send(call).await;
        if fits {
            check(&reply, 200, json!({ "options": [] }));
        } else {
            refused(&reply, 422, "invalid-input");
        }
    }
    assert_eq!(scene.partners.count(), 2);
}
