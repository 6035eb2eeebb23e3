//! Choices for a field: the query behind them, its limits, and how long they are kept.

use annex_core::ports::SendFault;
use serde_json::{Value, json};

use super::manifests;
use super::partners::Answer;
use super::scene::{LOCK, Scene, check, refused};
use super::{Case, case};
use crate::harness::door::Reply;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-016", "a field without x-chaster-options has no choices", undeclared),
        case("CH-034", "whatever goes wrong with the query is 502", unavailable),
        case("CH-034", "a failure is not kept", not_kept),
        case("CH-062", "200 choices are delivered, 201 are not", count),
        case("CH-063", "choices of 32,768 bytes are delivered, of 32,769 are not", bytes),
        case("CH-064", "two requests within 20 s make one query, a third makes another", kept),
        case("CH-064", "choices are kept for one caller, lock, query and input", separately),
        case("CH-064", "choices are kept over processes", over_processes),
        case("CH-062", "the query is asked with the parameters and what is filled in", asked),
        case("CH-009 CH-034", "another's query is asked only where its caller may", foreign),
        case("CH-021 CH-034", "a query that is not available has no choices", off),
        case("CH-022 CH-003", "what no query takes is the caller's doing", untaken),
        case("CH-009", "who may not call the command gets no choices for it", not_allowed),
    ]
}

fn colors() -> Value {
    json!({ "id": "b.choose", "field": "color" })
}

async fn ask(scene: &Scene) -> Reply {
    scene.options("a", colors()).await
}

fn choices(labels: &[&str]) -> Value {
    let choice = |label: &&str| json!({ "value": label, "label": label });
    json!({ "options": labels.iter().map(choice).collect::<Vec<_>>() })
}

fn answer(scene: &Scene, output: &Value) {
    scene.partners.answer("b.colors", Answer::output(output));
}

async fn undeclared(scene: Scene) {
    for (id, field) in [("b.choose", "size"), ("b.run", "color"), ("b.get", "x")] {
        let reply = scene.options("a", json!({ "id": id, "field": field })).await;
        refused(&reply, 404, "options-not-declared");
    }
    let reply = scene.options("a", json!({ "id": "b.none", "field": "color" })).await;
    refused(&reply, 404, "unknown-command");
    let reply = scene.options("a", json!({ "id": "c.choose", "field": "color" })).await;
    refused(&reply, 404, "not-installed");
    assert_eq!(scene.partners.count(), 0);
}

async fn unavailable(scene: Scene) {
    let error = json!({ "code": "closed", "message": "no" });
    let bad = [
        Answer::status(500),
        Answer::status(204),
        Answer::error(&error),
        Answer::output(&json!([])),
        Answer::output(&json!({ "options": [{ "value": 1 }] })),
        Answer::output(&json!([[]])),
        Answer::output(&json!([[{ "value": 1, "label": "x" }]])),
        Answer::output(&json!({ "options": [[1, "x"]] })),
        Answer::output(&json!({ "options": [{ "value": {}, "label": "x" }] })),
        Answer::Echo.after_millis(10_001),
        Answer::Fails(SendFault::Broken("no".into())),
        Answer::of_bytes(65_537),
    ];
    for answer in bad {
        scene.partners.answer("b.colors", answer);
        refused(&ask(&scene).await, 502, "options-unavailable");
    }
    assert_eq!(scene.partners.take().len(), 12);
    let reply = scene.options("a", json!({ "id": "b.choose", "field": "broken" })).await;
    refused(&reply, 502, "options-unavailable");
}

async fn not_kept(scene: Scene) {
    scene.partners.answer("b.colors", Answer::status(500));
    refused(&ask(&scene).await, 502, "options-unavailable");
    answer(&scene, &choices(&["red"]));
    check(&ask(&scene).await, 200, choices(&["red"]));
}

async fn count(scene: Scene) {
    let many = |count| choices(&vec!["x"; count]);
    answer(&scene, &many(200));
    check(&ask(&scene).await, 200, many(200));
    scene.pass(20);
    answer(&scene, &many(201));
    refused(&ask(&scene).await, 502, "options-unavailable");
}

async fn bytes(scene: Scene) {
    let long = |bytes: usize| {
        let label = "x"
            .repeat(bytes - json!({ "options": [{ "value": 1, "label": "" }] }).to_string().len());
        json!({ "options": [{ "value": 1, "label": label }] })
    };
    assert_eq!(long(32_768).to_string().len(), 32_768);
    answer(&scene, &long(32_768));
    check(&ask(&scene).await, 200, long(32_768));
    scene.pass(20);
    answer(&scene, &long(32_769));
    refused(&ask(&scene).await, 502, "options-unavailable");
}

async fn kept(scene: Scene) {
    scene.partners.answers(
        "b.colors",
        [Answer::output(&choices(&["red"])), Answer::output(&choices(&["blue"]))],
    );
    check(&ask(&scene).await, 200, choices(&["red"]));
    scene.pass_millis(19_999);
    check(&ask(&scene).await, 200, choices(&["red"]));
    assert_eq!(scene.partners.count(), 1);
    scene.pass_millis(1);
    check(&ask(&scene).await, 200, choices(&["blue"]));
    assert_eq!(scene.partners.count(), 2);
}

async fn separately(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    scene.install("c", LOCK).await;
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.calm().await;
    answer(&scene, &choices(&["red"]));
    let mut searched = colors();
    searched["search"] = json!("re");
    let mut filled = colors();
    filled["input"] = json!({ "size": 1 });
    let all = choices(&["red"]);
    for _ in 0..2 {
        check(&ask(&scene).await, 200, all.clone());
        check(&scene.options("c", colors()).await, 200, all.clone());
        check(&scene.ask_on("l2", "a", "POST /options", &colors()).await, 200, all.clone());
        check(&scene.options("a", searched.clone()).await, 200, all.clone());
        check(&scene.options("a", filled.clone()).await, 200, all.clone());
    }
    assert_eq!(scene.partners.count(), 5);
}

async fn over_processes(mut scene: Scene) {
    answer(&scene, &choices(&["red"]));
    check(&ask(&scene).await, 200, choices(&["red"]));
    scene.pass_millis(19_999);
    let another = scene.another();
    let reply = scene.request("a", "POST /options", &colors()).send(another.router()).await;
    check(&reply, 200, choices(&["red"]));
    scene.world.restart();
    check(&ask(&scene).await, 200, choices(&["red"]));
    assert_eq!(scene.partners.count(), 1);
    scene.pass_millis(1);
    answer(&scene, &choices(&["blue"]));
    let reply = scene.request("a", "POST /options", &colors()).send(another.router()).await;
    check(&reply, 200, choices(&["blue"]));
}

async fn asked(mut scene: Scene) {
    let options = json!({ "query": "b.colors", "params": { "kind": "warm" } });
    let schema = json!({ "properties": { "color": { "x-chaster-options": options } } });
    scene.sync("b", &json!({ "commands": [manifests::taking("b.choose", schema)] })).await;
    scene.world.restart();
    answer(&scene, &choices(&[]));
    let body = json!({
        "id": "b.choose", "field": "color", "input": { "size": 1 }, "search": "re",
    });
    check(&scene.options("a", body).await, 200, choices(&[]));
    let told = scene.partners.take();
    let [query] = &told[..] else { panic!("one query, not {told:?}") };
    assert_eq!(query.event, "query.invoked");
    let input = json!({ "kind": "warm", "input": { "size": 1 }, "search": "re" });
    assert_eq!(query.data["input"], input);
    assert_eq!(query.data["caller"], json!({ "type": "extension", "slug": "a" }));
}

async fn not_allowed(scene: Scene) {
    let push =
        json!({ "commands": { "b.choose": { "available": true, "invocableBy": ["wearer"] } } });
    assert_eq!(scene.ask("b", "PUT /availability", &push).await.status, 200);
    refused(&ask(&scene).await, 403, "caller-not-allowed");
    assert_eq!(scene.partners.count(), 0);
}

/// A command of an extension with a field that has choices of this query.
fn picking(id: &str, query: &str) -> Value {
    let field = json!({ "x-chaster-options": { "query": query } });
    manifests::taking(id, json!({ "properties": { "f": field } }))
}

async fn foreign(mut scene: Scene) {
    let for_wearers = manifests::for_callers("b.worn", &["wearer"]);
    let queries = json!([for_wearers, manifests::capability("b.open")]);
    let commands = json!([picking("b.pick", "b.worn")]);
    scene.sync("b", &json!({ "commands": commands, "queries": queries })).await;
    let commands = json!([picking("a.worn", "b.worn"), picking("a.open", "b.open")]);
    scene.sync("a", &json!({ "commands": commands })).await;
    scene.world.restart();
    for query in ["b.worn", "b.open"] {
        scene.partners.answer(query, Answer::output(&choices(&["red"])));
    }
    let field = |id: &str| json!({ "id": id, "field": "f" });
    refused(&scene.options("a", field("a.worn")).await, 502, "options-unavailable");
    assert_eq!(scene.partners.count(), 0);
    check(&scene.options("a", field("a.open")).await, 200, choices(&["red"]));
    // What an extension asks itself for its own fields is its own affair, and stays so.
    check(&scene.options("a", field("b.pick")).await, 200, choices(&["red"]));
    refused(&scene.options("a", field("a.worn")).await, 502, "options-unavailable");
    let narrow = json!({ "commands": { "b.open": { "available": true, "invocableBy": [] } } });
    assert_eq!(scene.ask("b", "PUT /availability", &narrow).await.status, 200);
    scene.pass(20);
    refused(&scene.options("a", field("a.open")).await, 502, "options-unavailable");
    assert_eq!(scene.partners.count(), 2);
}

async fn off(mut scene: Scene) {
    answer(&scene, &choices(&["red"]));
    let push = |available: bool| json!({ "commands": { "b.colors": { "available": available } } });
    assert_eq!(scene.ask("b", "PUT /availability", &push(false)).await.status, 200);
    refused(&ask(&scene).await, 502, "options-unavailable");
    assert_eq!(scene.ask("b", "PUT /availability", &push(true)).await.status, 200);
    check(&ask(&scene).await, 200, choices(&["red"]));
    scene.pass(20);
    scene.org("PATCH", LOCK, Some(&json!({ "status": "unlocked" }))).await;
    refused(&ask(&scene).await, 502, "options-unavailable");
    assert_eq!(scene.partners.received("b.colors").len(), 1);
}

async fn untaken(scene: Scene) {
    let send = async |body: &str| {
        let mut call = scene.request("a", "POST /options", &json!({}));
        call.body = body.as_bytes().to_vec();
        scene.world.send(call).await
    };
    for input in ["1e999", r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":1}}"#] {
        let reply = send(&format!(r#"{{"id":"b.choose","field":"color","input":{input}}}"#)).await;
        refused(&reply, 422, "invalid-input");
    }
    let long = "s".repeat(2_049);
    let reply = send(&format!(r#"{{"id":"x","field":"f","search":"{long}"}}"#)).await;
    let text = json!({ "statusCode": 400, "code": "bad-request", "message": "${any}" });
    check(&reply, 400, text);
    assert_eq!(scene.partners.count(), 0);
    // An input of null is one that was given.
    answer(&scene, &choices(&[]));
    let body = r#"{"id":"b.choose","field":"color","input":null}"#;
    check(&send(body).await, 200, choices(&[]));
    assert_eq!(scene.partners.take()[0].data["input"], json!({ "input": null }));
}
