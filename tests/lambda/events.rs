//! What each function does with the sample events of its trigger.

use std::sync::Arc;

use annex_aws::testing::{Sandbox, is_available};
use annex_aws::{DynamoStore, SystemClock};
use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::ports::{Commit, Committed, Store as _, When, Write};
use annex_tests::repository::root;
use serde_json::{Value, json};

use crate::function::{Function, command};
use crate::runtime::Outcome;

fn event(path: &str) -> String {
    std::fs::read_to_string(root().join("events").join(path)).unwrap()
}

/// Feeds a function the events of its folder, and compares what it does with each.
async fn check(function: &str, expected: &[(&str, Outcome)]) {
    if !is_available() {
        return;
    }
    check_in(&Sandbox::new().await, function, expected).await;
}

async fn check_in(sandbox: &Sandbox, function: &str, expected: &[(&str, Outcome)]) {
    let mut process = Function::start(function, sandbox).await;
    for (name, expected) in expected {
        let outcome = process.invoke(event(&format!("{function}/{name}.json"))).await;
        assert_eq!(outcome, *expected, "{function}/{name}");
    }
    let fed: Vec<String> = expected.iter().map(|(name, _)| format!("{name}.json")).collect();
    let folder = std::fs::read_dir(root().join("events").join(function)).unwrap();
    for file in folder {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(fed.contains(&name), "{function}/{name} is fed to nobody");
    }
}

/// An answer of JSON.
fn http(status: u16, headers: &Value, body: &Value) -> Outcome {
    let body = body.to_string();
    // The router counts; the gateway does it for the rest.
    let mut all = json!({"content-type": "application/json"});
    if status != 400 {
        all["content-length"] = body.len().to_string().into();
    }
    for (name, value) in headers.as_object().unwrap() {
        all[name] = value.clone();
    }
    Outcome::Answered(json!({
        "statusCode": status, "headers": all, "cookies": [],
        "body": body, "isBase64Encoded": false,
    }))
}

/// A batch of which these messages come back.
fn undone(ids: &[&str]) -> Outcome {
    let failures: Vec<Value> = ids.iter().map(|id| json!({ "itemIdentifier": id })).collect();
    Outcome::Answered(json!({ "batchItemFailures": failures }))
}

/// The second and the third message of the sample batches.
const SECOND: &str = "00000002-1111-4111-8111-111111111111";
const THIRD: &str = "00000003-1111-4111-8111-111111111111";

#[tokio::test]
async fn the_entry_answers_requests_of_every_form() {
    let bearer = json!({"www-authenticate": "Bearer"});
    let damaged = "the compressed body was damaged on its way, because its Content-Type says that it is text; send it as \
                   application/octet-stream, or uncompressed";
    check(
        "api",
        &[
            ("http-get", http(200, &json!({}), &json!({"status": "ok"}))),
            (
                "http-post",
                http(
                    401,
                    &bearer,
                    &json!({"error": "the secret is not valid", "code": "unauthenticated"}),
                ),
            ),
            (
                "http-base64-gzip",
                http(
                    404,
                    &json!({}),
                    &json!({"error": "there is no such adapter", "code": "not-found"}),
                ),
            ),
            (
                "http-text-gzip",
                http(400, &json!({}), &json!({"error": damaged, "code": "body-damaged"})),
            ),
            (
                "function-url",
                http(
                    401,
                    &bearer,
                    &json!({"error": "a token is needed", "code": "unauthenticated"}),
                ),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn dispatch_takes_batches_message_by_message_and_calls() {
    if !is_available() {
        return;
    }
    let sandbox = Sandbox::new().await;
    // The record that the call in the event has claimed.
    let call: Value = serde_json::from_str(&event("dispatch/call.json")).unwrap();
    let record = &call["record"];
    let oid = Oid::parse(record["oid"].as_str().unwrap()).unwrap();
    let write = Write::Put {
        key: keys::invocation(oid, record["id"].as_str().unwrap()),
        data: record.to_string().into_bytes(),
        expires_at: None,
        when: When::Absent,
    };
    let (table, queues) = (sandbox.table.clone(), sandbox.queues.clone());
    let store = DynamoStore::new(&sandbox.clients, table, queues, Arc::new(SystemClock));
    let commit = Commit { writes: vec![write], ..Commit::default() };
    assert_eq!(store.commit(commit).await.unwrap(), Committed::Done);
    let body = json!({"error": "unknown extension: scanner", "code": "not-found"});
    let ended = Outcome::Answered(json!({"ended": {"status": 404, "body": body}}));
    check_in(&sandbox, "dispatch", &[("queue", undone(&[SECOND, THIRD])), ("call", ended)]).await;
}

#[tokio::test]
async fn resume_takes_batches_message_by_message() {
    check("resume", &[("queue", undone(&[SECOND, THIRD]))]).await;
}

#[tokio::test]
async fn meter_takes_batches_message_by_message() {
    check("meter", &[("queue", undone(&[SECOND]))]).await;
}

#[tokio::test]
async fn daily_takes_the_moment_of_the_schedule() {
    check("daily", &[("schedule", Outcome::Answered(json!({"sent": 0})))]).await;
}

#[tokio::test]
async fn an_event_that_is_none_fails_alone() {
    if !is_available() {
        return;
    }
    let sandbox = Sandbox::new().await;
    for (name, event, expected) in [
        ("meter", "{}", "the event is no batch of a queue: Data error at line 1 column 2"),
        ("api", "[]", "the event is no request: Data error at line 1 column 2"),
        ("daily", r#"{"time":"tomorrow"}"#, "the time of the event is none"),
    ] {
        let mut process = Function::start(name, &sandbox).await;
        for _ in 0..2 {
            let Outcome::Failed(error) = process.invoke(event).await else { panic!("{name}") };
            assert_eq!(error["errorMessage"], expected, "{name}");
        }
    }
}

#[tokio::test]
async fn a_function_without_a_setting_stops_at_its_start_and_names_it() {
    if !is_available() {
        return;
    }
    let sandbox = Sandbox::new().await;
    for name in ["api", "dispatch", "resume", "meter", "daily"] {
        let output =
            command(name, &sandbox).await.env_remove("ANNEX_TABLE").output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told, "Error: \"ANNEX_TABLE is not set\"\n", "{name}");
    }
}
