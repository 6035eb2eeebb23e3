//! The extension as Annex sees it: signed messages in, statuses and bodies out.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use flate2::Compression;
use flate2::write::GzEncoder;
use tower::ServiceExt;

use super::*;

const SECRET: &str = "test-secret-0123456789abcdef0123";
const OK: &str = r#"{"version":20221218}"#;
const REFUSED: &str = r#"{"version":20221218,"error":"invalid signature"}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn message(member: &str) -> String {
    format!(r#"{{"version":20221218,"idempotency_key":"k",{member}}}"#)
}

fn request(action: &str, data: &str) -> String {
    message(&format!(
        r#""request":{{"org":{{"oid":"o","jwt":"j","ident":"i"}},"action":"{action}","data":{data},"config":{{}},"resource_state":{{}},"inv_id":""}}"#
    ))
}

async fn send(
    router: &Router,
    sig: Option<&str>,
    encoding: Option<&str>,
    body: Vec<u8>,
) -> (u16, String) {
    let mut request = Request::post("/");
    for (name, value) in [("lc-ext-sig", sig), ("content-encoding", encoding)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let response = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.into()).unwrap())
}

/// Sends a message as Annex does: signed, then compressed.
async fn deliver(router: &Router, json: &str) -> (u16, String) {
    let sig = Signature::new(SECRET.as_bytes()).sign(json.as_bytes());
    send(router, Some(&sig), Some("gzip"), gzip(json.as_bytes())).await
}

async fn check(json: &str, status: u16, body: &str) {
    assert_eq!(deliver(&router(SECRET), json).await, (status, body.to_owned()), "{json}");
}

#[tokio::test]
async fn signature_over_the_json_is_accepted_compressed_or_not() {
    let json = message(r#""heartbeat":{}"#);
    let sig = Signature::new(SECRET.as_bytes()).sign(json.as_bytes());
    let router = router(SECRET);
    let plain = send(&router, Some(&sig), None, json.clone().into_bytes()).await;
    assert_eq!(plain, (200, OK.to_owned()));
    assert_eq!(deliver(&router, &json).await, (200, OK.to_owned()));
}

#[tokio::test]
async fn anything_but_the_right_signature_is_refused() {
    let json = message(r#""heartbeat":{}"#);
    let body = gzip(json.as_bytes());
    let right = Signature::new(SECRET.as_bytes()).sign(json.as_bytes());
    let over_gzip = Signature::new(SECRET.as_bytes()).sign(&body);
    let other_secret = Signature::new(b"another").sign(json.as_bytes());
    let upper = right.to_uppercase();
    let router = router(SECRET);
    for sig in [None, Some(""), Some("00"), Some(&*over_gzip), Some(&*other_secret), Some(&*upper)]
    {
        let found = send(&router, sig, Some("gzip"), body.clone()).await;
        assert_eq!(found, (401, REFUSED.to_owned()), "{sig:?}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_on_the_wire_and_decompressed() {
    let router = router(SECRET);
    let over_wire = vec![b' '; signature::WIRE_BYTES_MAX + 1];
    assert_eq!(send(&router, Some("00"), None, over_wire).await.0, 413);
    let bomb = gzip(&vec![b' '; signature::JSON_BYTES_MAX + 1]);
    assert_eq!(send(&router, Some("00"), Some("gzip"), bomb).await.0, 413);
    let at_limit = gzip(&vec![b' '; signature::JSON_BYTES_MAX]);
    assert_eq!(send(&router, Some("00"), Some("gzip"), at_limit).await.0, 401);
    assert_eq!(send(&router, Some("00"), Some("gzip"), b"not gzip".to_vec()).await.0, 400);
}

#[tokio::test]
async fn every_kind_of_message_is_answered() {
    check(&message(r#""heartbeat":{}"#), 200, OK).await;
    check(&message(r#""error_report":{"error":"e","oid":"o"}"#), 200, OK).await;
    check(
        &message(r#""heartbeat":null"#),
        400,
        r#"{"version":20221218,"error":"no data in request"}"#,
    )
    .await;
    let (status, schema) = deliver(&router(SECRET), &message(r#""schema_request":{}"#)).await;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(status, 200);
    assert_eq!(schema["data"], schema::schema());
}

#[tokio::test]
async fn events_are_answered_and_unknown_ones_refused() {
    let event = |name| {
        message(&format!(
            r#""event":{{"org":{{"oid":"o","jwt":"j","ident":"i"}},"event_name":"{name}","data":{{}},"config":{{}}}}"#
        ))
    };
    let ready = r#"{"version":20221218,"data":{"oid":"o","status":"ready"}}"#;
    check(&event("subscribe"), 200, ready).await;
    check(&event("unsubscribe"), 200, &ready.replace("ready", "removed")).await;
    check(&event("update"), 200, &ready.replace("ready", "up to date")).await;
    check(&event("nope"), 400, r#"{"version":20221218,"error":"unknown event: nope"}"#).await;
}

#[tokio::test]
async fn configurations_are_checked() {
    let config =
        |conf| message(&format!(r#""conf_validation":{{"org":{{"oid":"o"}},"conf":{conf}}}"#));
    let refused = r#"{"version":20221218,"error":"depth must be from 1 to 10","retriable":false}"#;
    check(&config("{}"), 200, OK).await;
    check(&config(r#"{"depth":1}"#), 200, OK).await;
    check(&config(r#"{"depth":10}"#), 200, OK).await;
    check(&config(r#"{"depth":0}"#), 400, refused).await;
    check(&config(r#"{"depth":11}"#), 400, refused).await;
    check(&config(r#"{"depth":"1"}"#), 400, refused).await;
}

#[tokio::test]
async fn scan_continues_twice_and_meters_two_skus() {
    check(
        &request("scan", r#"{"target":"t"}"#),
        200,
        concat!(
            r#"{"version":20221218,"data":{"target":"t","findings":1,"pages_left":2},"#,
            r#""continuations":[{"in_delay_sec":1,"action":"scan_page","state":{"target":"t","page":1}}],"#,
            r#""metrics":{"idempotent_key":"k","metrics":[{"sku":"scans","value":1},{"sku":"bytes_scanned","value":4096}]}}"#
        ),
    )
    .await;
    check(
        &request("scan_page", r#"{"target":"t","page":1}"#),
        200,
        concat!(
            r#"{"version":20221218,"data":{"target":"t","page":1,"findings":1,"pages_left":1},"#,
            r#""continuations":[{"in_delay_sec":1,"action":"scan_page","state":{"target":"t","page":2}}],"#,
            r#""metrics":{"idempotent_key":"k","metrics":[{"sku":"bytes_scanned","value":4096}]}}"#
        ),
    )
    .await;
    check(
        &request("scan_page", r#"{"target":"t","page":2}"#),
        200,
        concat!(
            r#"{"version":20221218,"data":{"target":"t","page":2,"findings":1,"pages_left":0},"#,
            r#""metrics":{"idempotent_key":"k","metrics":[{"sku":"bytes_scanned","value":4096}]}}"#
        ),
    )
    .await;
}

#[tokio::test]
async fn echo_keeps_every_byte_of_its_data() {
    let data = r#"{"b":1e400,"a":"\u00e9<&>", "n":123456789012345678901234567890}"#;
    check(&request("echo", data), 200, &format!(r#"{{"version":20221218,"data":{data}}}"#)).await;
}

#[tokio::test]
async fn failures_say_by_their_status_whether_a_retry_can_help() {
    let permanent = r#"{"version":20221218,"error":"target is not valid","retriable":false}"#;
    // LC-051, LC-053, LC-055
    check(&request("fail", "{}"), 400, permanent).await;
    check(&request("scan", r#"{"target":" "}"#), 400, permanent).await;
    check(
        &request("nope", "{}"),
        400,
        r#"{"version":20221218,"error":"unknown request action: nope"}"#,
    )
    .await;
    assert_eq!(deliver(&router(SECRET), &request("scan", r#"{"target":1}"#)).await.0, 400);
    assert_eq!(deliver(&router(SECRET), "[").await.0, 400);
}

#[tokio::test]
async fn flaky_fails_the_first_attempt_of_a_call_and_answers_the_second() {
    let router = router(SECRET);
    let json = request("flaky", "{}");
    // LC-049
    let failed = (500, r#"{"version":20221218,"error":"not ready yet"}"#.to_owned());
    assert_eq!(deliver(&router, &json).await, failed);
    let done = (200, r#"{"version":20221218,"data":{"attempts":2}}"#.to_owned());
    assert_eq!(deliver(&router, &json).await, done);
    assert_eq!(deliver(&router, &json).await, failed);
}
