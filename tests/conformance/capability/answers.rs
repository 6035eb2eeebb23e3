//! What a called extension is told, how its answer is read, and how deep an input may be.

use annex_core::ports::SendFault;
use serde_json::{Value, json};

use super::partners::Answer;
use super::scene::{LOCK, Scene, changed, check, failed, record, refused};
use super::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-060", "an answer after 9.5 s is one, after 10.5 s there is none", in_time),
        case("CH-061", "an answer of 65,536 bytes is read, one of 65,537 is not", in_size),
        case("CH-065", "an input of 64 levels is taken, one of 65 is not", deep_input),
        case("CH-065", "an input of a hundred thousand levels is refused as well", very_deep_input),
        case("CH-022", "an input of null is null, and one that is not given an object", null),
        case("CH-022", "an input of 64 KiB is taken, a larger one is not", large_input),
        case("CH-022", "an input is checked against its schema, whatever that asks", schemas),
        case("", "a target's credentials in its answer are hidden", hidden_credentials),
        case("CH-061", "an output that hiding makes too large is a failed call", hidden_too_large),
        case("", "a call carries what its target must know", told),
        case("", "a query is delivered as one", told_query),
        case("", "a person's call is delivered as theirs", told_person),
        case("CH-002", "what goes wrong after the dispatch is a failed record", failures),
        case("CH-002", "a partner's own error is in the record", own_error),
        case("", "a target has one attempt", one_attempt),
        case("", "numbers arrive as they were spelled", spelled),
    ]
}

async fn run(scene: &Scene) -> crate::harness::door::Reply {
    scene.command("a", "b.run", json!({})).await
}

async fn in_time(scene: Scene) {
    let late = failed("timeout", "no answer within 10 s");
    for (millis, expected) in [
        (9_500, record(json!({ "durationMs": 9_500 }))),
        (10_000, record(json!({ "durationMs": 10_000 }))),
        (10_001, changed(late.clone(), json!({ "durationMs": 10_000 }))),
        (10_500, changed(late, json!({ "durationMs": 10_000 }))),
    ] {
        scene.partners.answer("b.run", Answer::Echo.after_millis(millis));
        check(&run(&scene).await, 201, expected);
    }
    let found = scene.partners.take();
    assert_eq!(found[0].timeout.as_secs(), 10);
}

async fn in_size(scene: Scene) {
    scene.partners.answer("b.run", Answer::of_bytes(65_536));
    let output = "x".repeat(65_536 - json!({ "output": "" }).to_string().len());
    check(&run(&scene).await, 201, record(json!({ "output": output })));
    scene.partners.answer("b.run", Answer::of_bytes(65_537));
    let text = "response body size 65537 exceeds limit";
    check(&run(&scene).await, 201, failed("response-too-large", text));
    assert_eq!(scene.partners.take()[0].bytes_max, 65_536);
}

/// Arrays in arrays, so many levels.
pub(crate) fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

async fn send(scene: &Scene, input: &str) -> crate::harness::door::Reply {
    let mut call = scene.request("a", "POST /commands/b.run", &json!({}));
    call.body = format!(r#"{{"input":{input}}}"#).into_bytes();
    scene.world.send(call).await
}

async fn deep_input(scene: Scene) {
    let output = json!({ "output": 1 }).to_string().into_bytes();
    scene.partners.answer("b.run", Answer::Is(200, output));
    check(&send(&scene, &nested(64)).await, 201, record(json!({ "output": 1 })));
    assert_eq!(scene.partners.take().len(), 1);
    refused(&send(&scene, &nested(65)).await, 422, "invalid-input");
    let object = |levels: usize| {
        let open = r#"{"a":"#.repeat(levels - 1);
        format!("{open}{{}}{}", "}".repeat(levels - 1))
    };
    check(&send(&scene, &object(64)).await, 201, record(json!({ "output": 1 })));
    refused(&send(&scene, &object(65)).await, 422, "invalid-input");
    // Brackets in a text are no levels.
    let text = format!("\"{}\"", "[".repeat(100));
    check(&send(&scene, &text).await, 201, record(json!({ "output": 1 })));
}

async fn very_deep_input(scene: Scene) {
    refused(&send(&scene, &nested(100_000)).await, 422, "invalid-input");
    let open = "[".repeat(100_000);
    let reply = send(&scene, &open).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert_eq!(scene.partners.count(), 0);
}

async fn null(scene: Scene) {
    let mut expected = record(json!({}));
    expected["output"] = Value::Null;
    check(&scene.command("a", "b.run", json!({ "input": null })).await, 201, expected);
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
    let inputs: Vec<Value> =
        scene.partners.take().iter().map(|told| told.data["input"].clone()).collect();
    assert_eq!(inputs, [Value::Null, json!({})]);
    let reply = scene.command("a", "b.typed", json!({ "input": null })).await;
    refused(&reply, 422, "invalid-input");
}

async fn large_input(scene: Scene) {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    scene.partners.answer("b.run", Answer::output(&json!(1)));
    check(&send(&scene, &text(64 << 10)).await, 201, record(json!({ "output": 1 })));
    refused(&send(&scene, &text((64 << 10) + 1)).await, 422, "invalid-input");
}

async fn schemas(mut scene: Scene) {
    let schema = json!({
        "$defs": { "small": { "type": "integer", "maximum": 9 } },
        "type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {
            "n": { "$ref": "#/$defs/small" },
            "kind": { "enum": ["one", "two"] },
            "list": { "type": "array", "items": { "pattern": "^[a-z]+$" }, "uniqueItems": true },
        },
        "if": { "properties": { "kind": { "const": "two" } }, "required": ["kind"] },
        "then": { "required": ["list"] },
    });
    scene.sync("b", &json!({ "commands": [super::manifests::taking("b.typed", schema)] })).await;
    scene.world.restart();
    for (input, fits) in [
        (json!({ "n": 9 }), true),
        (json!({ "n": 10 }), false),
        (json!({ "n": 1.5 }), false),
        (json!({ "n": 1.0 }), true),
        (json!({ "n": 1, "x": 1 }), false),
        (json!({ "n": 1, "kind": "one" }), true),
        (json!({ "n": 1, "kind": "three" }), false),
        (json!({ "n": 1, "kind": "two" }), false),
        (json!({ "n": 1, "kind": "two", "list": ["a", "b"] }), true),
        (json!({ "n": 1, "kind": "two", "list": ["a", "a"] }), false),
        (json!({ "n": 1, "list": ["A"] }), false),
    ] {
        let reply = scene.command("a", "b.typed", json!({ "input": input })).await;
        if fits {
            assert_eq!(reply.status, 201, "{input}: {}", reply.body);
        } else {
            refused(&reply, 422, "invalid-input");
        }
    }
}

async fn hidden_credentials(scene: Scene) {
    let password = super::scene::password("b");
    scene.partners.answer("b.run", Answer::output(&json!({ "text": format!("it is {password}") })));
    let found = run(&scene).await.body;
    assert_eq!(found["status"], "succeeded");
    assert!(!found.to_string().contains(&password), "{found}");
    let error = json!({ "code": "x", "message": format!("it is {password}") });
    scene.partners.answer("b.run", Answer::error(&error));
    let found = run(&scene).await.body;
    assert_eq!(found["status"], "failed");
    assert!(!found.to_string().contains(&password), "{found}");
}

/// What a target is told of a call of `b.run` by `a`.
fn invoked(scene: &Scene, changes: Value) -> Value {
    let usual = json!({
        "sessionId": scene.sessions[&("b".to_owned(), LOCK.to_owned())], "lockId": LOCK,
        "extension": { "slug": "b" }, "invocationId": "${id}", "capability": "b.run",
        "input": {}, "actor": "extension", "caller": { "type": "extension", "slug": "a" },
        "correlationId": "${id}", "depth": 1,
    });
    changed(usual, changes)
}

/// Compares the last message that arrived, given what its call was answered.
#[track_caller]
fn check_told(scene: &Scene, event: &str, reply: &Value, expected: &Value) {
    let found = scene.partners.take();
    let last = found.last().expect("something arrived");
    let mut bindings = crate::harness::bindings::Bindings::default();
    bindings.set("id", reply["id"].as_str().expect("a record has an id"));
    assert_eq!(last.event, event);
    bindings.check(expected, &last.data, "data").expect("the data are as they should be");
}

async fn told(scene: Scene) {
    let first = run(&scene).await;
    check_told(&scene, "command.invoked", &first.body, &invoked(&scene, json!({})));
    let body = json!({
        "input": { "n": [1, "two"] }, "actor": "wearer", "idempotencyKey": "k",
        "causationId": first.body["id"],
    });
    let second = scene.command("a", "b.run", body).await;
    let expected = json!({
        "input": { "n": [1, "two"] }, "actor": "wearer", "idempotencyKey": "k",
        "causationId": first.body["id"], "correlationId": first.body["id"], "depth": 2,
    });
    check_told(&scene, "command.invoked", &second.body, &invoked(&scene, expected.clone()));
    let expected = changed(expected, json!({ "input": null, "output": { "n": [1, "two"] } }));
    check(&second, 201, record(expected));
    // The other name of the wearer.
    let third = scene.command("a", "b.run", json!({ "actor": "user" })).await;
    check(&third, 201, record(json!({ "actor": "wearer" })));
}

async fn told_query(scene: Scene) {
    let reply = scene.query("a", "b.get", json!({ "input": 5 })).await;
    check(&reply, 201, record(json!({ "capability": "b.get", "output": 5 })));
    let expected = invoked(&scene, json!({ "capability": "b.get", "input": 5 }));
    check_told(&scene, "query.invoked", &reply.body, &expected);
}

async fn told_person(mut scene: Scene) {
    let reply = scene.person("wearer", "commands/b.run", json!({ "input": 1 })).await;
    let person = json!({ "caller": { "type": "wearer" }, "actor": "wearer" });
    check(&reply, 201, changed(record(json!({ "output": 1 })), person.clone()));
    let expected = changed(invoked(&scene, json!({ "input": 1 })), person);
    check_told(&scene, "command.invoked", &reply.body, &expected);
}

async fn failures(scene: Scene) {
    let shape = "the answer has an output or an error that is not as it should be";
    let unreachable = "the extension cannot be reached";
    let raw = |text: &str| Answer::Is(200, text.as_bytes().to_vec());
    let answers = [
        (Answer::status(500), "http-status", "the extension answered 500"),
        (Answer::status(404), "http-status", "the extension answered 404"),
        (Answer::status(302), "http-status", "the extension answered 302"),
        (raw("<html>"), "invalid-response", "the answer is not valid JSON at byte 0"),
        (raw("[1]"), "invalid-response", "the answer is no JSON object"),
        (raw(r#"{"error":1}"#), "invalid-response", shape),
        (Answer::Fails(SendFault::NotSent("no".into())), "unreachable", unreachable),
        (Answer::Fails(SendFault::Refused("no".into())), "unreachable", unreachable),
        (Answer::Fails(SendFault::Broken("no".into())), "unreachable", "the connection broke"),
    ];
    for (answer, code, text) in answers {
        scene.partners.answer("b.run", answer);
        check(&run(&scene).await, 201, failed(code, text));
    }
    scene.partners.answer("b.run", Answer::status(204));
    let mut expected = record(json!({}));
    expected["output"] = Value::Null;
    check(&run(&scene).await, 201, expected);
    scene.partners.answer("b.checked", Answer::output(&json!({ "no": 1 })));
    let reply = scene.command("a", "b.checked", json!({})).await;
    let text = "the output does not match the outputSchema";
    let expected = failed("invalid-output", text);
    check(&reply, 201, changed(expected, json!({ "capability": "b.checked" })));
    scene.partners.answer("b.checked", Answer::output(&json!({ "ok": 1 })));
    let reply = scene.command("a", "b.checked", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.checked", "output": { "ok": 1 } })));
}

async fn own_error(scene: Scene) {
    let error = json!({ "code": "sold-out", "message": "none left", "retryable": true });
    scene.partners.answer("b.run", Answer::error(&error));
    let expected = changed(failed("", ""), json!({ "error": error }));
    check(&run(&scene).await, 201, expected);
}

async fn one_attempt(scene: Scene) {
    scene.partners.answers("b.run", [Answer::status(503), Answer::Echo]);
    let expected = failed("http-status", "the extension answered 503");
    check(&run(&scene).await, 201, expected);
    assert_eq!(scene.partners.count(), 1);
}

async fn spelled(scene: Scene) {
    let text = r#"{"output":{"n": 1.50e+400, "big":123456789012345678901234567890}}"#;
    scene.partners.answer("b.run", Answer::Is(200, text.as_bytes().to_vec()));
    let call = scene.request("a", "POST /commands/b.run", &json!({}));
    let found = raw(&scene, call).await;
    assert!(found.contains(r#""output":{"n": 1.50e+400, "big":123456789012345678901234567890}"#));
}

/// The text of an answer.
async fn raw(scene: &Scene, call: crate::harness::door::Call) -> String {
    let reply = scene.world.send(call).await;
    // What serde_json cannot hold stays text.
    reply.body.as_str().map_or_else(|| reply.body.to_string(), str::to_owned)
}

async fn hidden_too_large(scene: Scene) {
    let password = super::scene::password("b");
    let count = (65_536 - 20) / password.len();
    scene.partners.answer("b.run", Answer::output(&password.repeat(count).into()));
    let body = json!({ "idempotencyKey": "k" });
    let text = "the output is too large with the credentials in it hidden";
    let expected = changed(failed("response-too-large", text), json!({ "idempotencyKey": "k" }));
    check(&scene.command("a", "b.run", body.clone()).await, 201, expected.clone());
    check(&scene.command("a", "b.run", body).await, 201, expected);
    assert_eq!(scene.partners.count(), 1);
}
