//! Idempotency keys: of one caller on one lock, for one command with one input.

use serde_json::{Value, json};

use super::codes::chain;
use super::manifests;
use super::partners::Answer;
use super::scene::{LOCK, Scene, check, record, refused, refused_with};
use super::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("CH-018", "the same key and command run once, and answer the same", once),
        case("CH-018", "a repeat while the first runs shows that it runs", running),
        case("CH-018", "a repeat gets its first answer whatever has changed", whatever),
        case("CH-018", "a failed call is a result too", failure),
        case("CH-017", "another input under a key is a conflict", another_input),
        case("CH-018", "white space and the order of members make no other input", spelled),
        case("CH-017", "a query is not the command of its key", a_query),
        case("CH-019", "a key on another lock is another key", on_locks),
        case("CH-019", "a key of another caller is another key", of_callers),
        case("CH-018 CH-067", "a key is remembered for 30 days", for_30_days),
        case("CH-018", "a key has 1 to 200 bytes", sizes),
        case("CH-018", "a repeat over another process runs nothing", processes),
        case("CH-018 CH-037", "a repeat counts for its rate, and its depth was checked", counted),
        case("CH-018", "a call whose process died has failed after its lease", interrupted),
    ]
}

fn keyed(input: &Value) -> Value {
    json!({ "idempotencyKey": "k", "input": input })
}

fn keyed_record(changes: Value) -> Value {
    super::scene::changed(record(json!({ "idempotencyKey": "k", "output": 1 })), changes)
}

async fn once(scene: Scene) {
    let first = scene.command("a", "b.run", keyed(&json!(1))).await;
    check(&first, 201, keyed_record(json!({})));
    scene.pass(7);
    for _ in 0..3 {
        let again = scene.command("a", "b.run", keyed(&json!(1))).await;
        assert_eq!((again.status, again.body), (first.status, first.body.clone()));
    }
    assert_eq!(scene.partners.count(), 1);
    assert_eq!(scene.partners.take()[0].data["idempotencyKey"], "k");
}

async fn running(scene: Scene) {
    scene.partners.answer("b.run", Answer::Echo.held());
    let first = scene.begin(scene.request("a", "POST /commands/b.run", &keyed(&json!(1))));
    scene.partners.held(1).await;
    let running = json!({
        "status": "running", "output": null, "finishedAt": null, "durationMs": null,
    });
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    check(&again, 202, keyed_record(running.clone()));
    let id = again.body["id"].as_str().expect("a record has an id").to_owned();
    let read = scene.ask("a", &format!("GET /invocations/{id}"), &json!({})).await;
    check(&read, 200, keyed_record(running));
    refused(
        &scene.command("a", "b.other", keyed(&json!(1))).await,
        409,
        "idempotency-key-conflict",
    );
    scene.partners.let_go();
    let first = first.await.expect("no call panics");
    check(&first, 201, keyed_record(json!({})));
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(scene.partners.count(), 1);
}

async fn whatever(mut scene: Scene) {
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    let body = json!({ "idempotencyKey": "k", "actor": "keyholder" });
    let first = scene.command("a", "b.run", body.clone()).await;
    check(&first, 201, record(json!({ "idempotencyKey": "k", "actor": "keyholder" })));
    let again = async |scene: &Scene| {
        let again = scene.command("a", "b.run", body.clone()).await;
        assert_eq!((again.status, again.body), (first.status, first.body.clone()));
    };
    let push = json!({ "commands": { "b.run": { "available": false, "invocableBy": [] } } });
    assert_eq!(scene.ask("b", "PUT /availability", &push).await.status, 200);
    again(&scene).await;
    let ended = json!({ "status": "unlocked", "hasKeyholder": false });
    scene.org("PATCH", LOCK, Some(&ended)).await;
    again(&scene).await;
    // Nothing declares it any more.
    scene.sync("b", &json!({ "commands": [] })).await;
    scene.world.restart();
    again(&scene).await;
    let session = scene.sessions[&("b".to_owned(), LOCK.to_owned())].clone();
    let gone = scene.org("DELETE", &format!("{LOCK}/sessions/{session}"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    again(&scene).await;
    refused(&scene.command("a", "b.run", json!({})).await, 404, "not-installed");
}

async fn failure(scene: Scene) {
    scene.partners.answers("b.run", [Answer::status(500), Answer::Echo]);
    let first = scene.command("a", "b.run", keyed(&json!(1))).await;
    let error = json!({ "code": "http-status", "message": "the extension answered 500" });
    let failed = json!({ "status": "failed", "output": null, "error": error });
    check(&first, 201, keyed_record(failed));
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(scene.partners.count(), 1);
}

async fn another_input(scene: Scene) {
    check(&scene.command("a", "b.run", keyed(&json!(1))).await, 201, keyed_record(json!({})));
    for input in [json!(2), json!("1"), json!({}), json!([1]), Value::Null] {
        let reply = scene.command("a", "b.run", keyed(&input)).await;
        refused(&reply, 409, "idempotency-key-conflict");
    }
    assert_eq!(scene.partners.count(), 1);
}

async fn spelled(scene: Scene) {
    let call = |body: &str| {
        let mut call = scene.request("a", "POST /commands/b.run", &json!({}));
        call.body = body.as_bytes().to_vec();
        call
    };
    let first = call(r#"{"idempotencyKey":"k","input":{"a":1,"b":[1,2]}}"#);
    let first = scene.world.send(first).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let second = call("{ \"input\" : { \"b\":[1, 2],\n\"a\":1 }, \"idempotencyKey\":\"k\" }");
    let second = scene.world.send(second).await;
    assert_eq!((second.status, second.body), (first.status, first.body));
    assert_eq!(scene.partners.count(), 1);
}

async fn a_query(scene: Scene) {
    check(&scene.command("a", "b.run", keyed(&json!(1))).await, 201, keyed_record(json!({})));
    let reply = scene.query("a", "b.get", keyed(&json!(1))).await;
    refused(&reply, 409, "idempotency-key-conflict");
    // Not one that is none either.
    let reply = scene.query("a", "b.run", keyed(&json!(1))).await;
    refused(&reply, 409, "idempotency-key-conflict");
    let body = json!({ "idempotencyKey": "q", "input": 1 });
    let first = scene.query("a", "b.get", body.clone()).await;
    check(&first, 201, keyed_record(json!({ "capability": "b.get", "idempotencyKey": "q" })));
    let again = scene.query("a", "b.get", body).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(scene.partners.count(), 2);
}

async fn on_locks(mut scene: Scene) {
    scene.install("a", "l2").await;
    scene.install("b", "l2").await;
    scene.calm().await;
    check(&scene.command("a", "b.run", keyed(&json!(1))).await, 201, keyed_record(json!({})));
    let reply = scene.ask_on("l2", "a", "POST /commands/b.other", &keyed(&json!(1))).await;
    let expected = json!({ "lockId": "l2", "capability": "b.other" });
    check(&reply, 201, keyed_record(expected));
    assert_eq!(scene.partners.count(), 2);
}

async fn of_callers(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    scene.install("c", LOCK).await;
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    scene.calm().await;
    let a = scene.command("a", "b.run", keyed(&json!(1))).await;
    check(&a, 201, keyed_record(json!({})));
    let c = scene.command("c", "b.other", keyed(&json!(1))).await;
    let caller = json!({ "type": "extension", "slug": "c" });
    check(&c, 201, keyed_record(json!({ "capability": "b.other", "caller": caller })));
    for who in ["wearer", "keyholder"] {
        let reply = scene.person(who, "commands/b.other", keyed(&json!(1))).await;
        let expected = json!({ "capability": "b.other", "caller": { "type": who }, "actor": who });
        check(&reply, 201, keyed_record(expected));
    }
    assert_eq!(scene.partners.count(), 4);
}

async fn for_30_days(scene: Scene) {
    const DAYS_30_MS: u64 = 30 * 86_400_000;
    let first = scene.command("a", "b.run", keyed(&json!(1))).await;
    scene.pass_millis(DAYS_30_MS - 1);
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    assert_eq!((again.status, again.body), (first.status, first.body.clone()));
    refused(
        &scene.command("a", "b.other", keyed(&json!(1))).await,
        409,
        "idempotency-key-conflict",
    );
    scene.pass_millis(1);
    let anew = scene.command("a", "b.other", keyed(&json!(1))).await;
    check(&anew, 201, keyed_record(json!({ "capability": "b.other" })));
    assert_eq!(scene.partners.count(), 2);
}

async fn sizes(scene: Scene) {
    let max = annex_core::limits::IDEMPOTENCY_KEY_BYTES_MAX;
    let longest = "k".repeat(max);
    let reply = scene.command("a", "b.run", json!({ "idempotencyKey": longest })).await;
    check(&reply, 201, record(json!({ "idempotencyKey": longest })));
    for key in ["", &"k".repeat(max + 1)] {
        let reply = scene.command("a", "b.run", json!({ "idempotencyKey": key })).await;
        let text = format!("idempotencyKey has 1 to {max} bytes");
        check(&reply, 400, json!({ "statusCode": 400, "code": "bad-request", "message": text }));
    }
    assert_eq!(scene.partners.count(), 1);
}

async fn processes(scene: Scene) {
    let first = scene.command("a", "b.run", keyed(&json!(1))).await;
    let another = scene.another();
    let again = scene.request("a", "POST /commands/b.run", &keyed(&json!(1)));
    let again = again.send(another.router()).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(scene.partners.count(), 1);
}

async fn counted(scene: Scene) {
    let last = chain(&scene, 7).await;
    let body = json!({ "idempotencyKey": "k", "causationId": last });
    // Of `a`: 4 of the chain, and these.
    for _ in 0..116 {
        let reply = scene.command("b", "a.run", body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.body["depth"]), (201, &json!(8)));
    }
    assert_eq!(scene.partners.count(), 8);
    let reply = scene.command("b", "a.run", body.clone()).await;
    assert_eq!(reply.status, 201, "3 of the chain and 117 are 120: {}", reply.body);
    super::scene::limited(&scene.command("b", "a.run", body).await, "extension", 300);
}

async fn interrupted(mut scene: Scene) {
    scene.partners.answers("b.run", [Answer::Echo.held(), Answer::Echo]);
    let first = scene.begin(scene.request("a", "POST /commands/b.run", &keyed(&json!(1))));
    scene.partners.held(1).await;
    first.abort();
    scene.world.restart();
    let text = "the platform stopped while the call ran; it may have been carried out";
    let error = json!({ "code": "interrupted", "message": text });
    let failed = json!({ "status": "failed", "output": null, "error": error });
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    check(&again, 201, keyed_record(failed.clone()));
    // The other one comes back after all, and changes nothing.
    scene.partners.let_go();
    tokio::task::yield_now().await;
    let again = scene.command("a", "b.run", keyed(&json!(1))).await;
    check(&again, 201, keyed_record(failed));
    assert_eq!(scene.partners.count(), 1);
    let push = json!({ "commands": { "b.other": { "available": false } } });
    assert_eq!(scene.ask("b", "PUT /availability", &push).await.status, 200);
    let reason = json!({ "reason": "unavailable" });
    let reply = scene.command("a", "b.other", json!({})).await;
    refused_with(&reply, 422, "command-unavailable", reason);
}
