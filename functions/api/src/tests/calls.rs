//! Calls to extensions.

use std::io::Write as _;

use annex_core::ids::Oid;
use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::platform::{Answer, Platform, encode};

const REQUEST: &str = "/v1/extension/request/ext";

async fn ready(platform: &Platform) -> (Oid, String) {
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    (oid, owner)
}

async fn request(
    platform: &Platform,
    token: &str,
    form: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = Request::post(REQUEST).header("authorization", format!("Bearer {token}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    platform.send(request.body(Body::from(encode(form))).unwrap()).await
}

fn packed(json: &str) -> String {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(json.as_bytes()).unwrap();
    STANDARD.encode(encoder.finish().unwrap())
}

#[tokio::test]
async fn a_request_is_answered_by_the_extension_whichever_way_its_data_comes() {
    // LC-123
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let oid = oid.to_string();
    let base = [("oid", oid.as_str()), ("action", "echo")];
    let data = r#"{"msg":"é<&>"}"#;
    let packed = packed(data);
    for more in [("data", data), ("gzdata", packed.as_str())] {
        let answer = request(&platform, &owner, &[base[0], base[1], more], &[]).await;
        assert_eq!(answer.ok()["data"], json!({"msg": "é<&>"}));
        let id = answer.headers["annex-invocation-id"].to_str().unwrap();
        let record = platform.get(&owner, &format!("/v1/invocations/{id}")).await.ok();
        assert_eq!((&record["id"], &record["status"]), (&json!(id), &json!("succeeded")));
        let operator = platform.operator().await;
        let named = platform.get(&operator, &format!("/v1/invocations/{id}?oid={oid}")).await.ok();
        assert_eq!(named, record);
    }
    let answer = request(&platform, &owner, &base, &[]).await;
    assert_eq!(answer.ok()["data"], json!({}));
    let body = json!({"oid": oid, "action": "echo", "data": {"msg": "x"}}).to_string();
    let answer = platform.json(&owner, "POST", REQUEST, &body).await;
    assert_eq!(answer.ok()["data"], json!({"msg": "x"}));
}

#[tokio::test]
async fn a_request_that_is_not_well_formed_or_not_allowed_is_refused() {
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let (other, _) = platform.org().await;
    let (oid_text, other) = (oid.to_string(), other.to_string());
    let mine = ("oid", oid_text.as_str());
    let echo = ("action", "echo");
    for (form, code) in [
        (vec![], "bad-request"),
        (vec![mine], "bad-request"),
        (vec![("oid", "nope"), echo], "bad-request"),
        (vec![("oid", other.as_str()), echo], "forbidden"),
        (vec![mine, ("action", "nope")], "schema-refused"),
        (vec![mine, echo, ("data", r#"{"x":1}"#)], "schema-refused"),
        (vec![mine, echo, ("gzdata", "!")], "bad-request"),
        (vec![mine, echo, ("data", "{}"), ("gzdata", "x")], "bad-request"),
    ] {
        assert_eq!(request(&platform, &owner, &form, &[]).await.code(), code, "{form:?}");
    }
    for bad in ["[1,2]", "NaN", "{", r#"{"msg":"\ud800"}"#] {
        let answer = request(&platform, &owner, &[mine, echo, ("data", bad)], &[]).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    let user = platform.user(oid, &owner, "org.get").await;
    assert_eq!(request(&platform, &user, &[mine, echo], &[]).await.code(), "forbidden");
    // LC-103: nobody sends an event by this road.
    let seen = platform.extension.seen.lock().unwrap();
    assert!(
        seen.iter()
            .all(|message| message.get("event").is_none() && message.get("request").is_none())
    );
}

#[tokio::test]
async fn an_organization_that_is_not_subscribed_does_not_reach_the_extension() {
    // LC-124
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    let form = [("oid", &*oid.to_string()), ("action", "echo")];
    assert_eq!(request(&platform, &owner, &form, &[]).await.code(), "not-subscribed");
    assert!(platform.extension.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failed_call_is_a_fault_with_the_extensions_text() {
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let form = [("oid", &*oid.to_string()), ("action", "fail")];
    let answer = request(&platform, &owner, &form, &[]).await;
    assert!(answer.status.is_client_error() || answer.status.is_server_error());
    assert_ne!(answer.status, 504);
    assert_eq!(answer.json()["error"], "no such vendor");
    // LC-061
    let errors = platform.get(&owner, &format!("/v1/errors/{oid}")).await.ok();
    assert_eq!(errors["errors"].as_array().unwrap().len(), 1, "{errors}");
    let component = errors["errors"][0]["component"].as_str().unwrap();
    platform.call(&owner, "DELETE", &format!("/v1/errors/{oid}/{component}"), &[]).await.ok();
}

#[tokio::test]
async fn a_repeat_under_one_key_is_answered_as_the_first_and_another_request_is_a_conflict() {
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let oid = oid.to_string();
    let key = [("Idempotency-Key", "k1")];
    let form = |msg: &'static str| {
        [("oid", oid.clone()), ("action", "echo".into()), ("data", format!(r#"{{"msg":"{msg}"}}"#))]
    };
    let send = |msg: &'static str| {
        let (platform, owner) = (&platform, &owner);
        let form = form(msg);
        async move {
            let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
            request(platform, owner, &form, &key).await
        }
    };
    let first = send("a").await;
    let second = send("a").await;
    assert_eq!((first.status, &first.text), (second.status, &second.text));
    assert_eq!(first.headers["annex-invocation-id"], second.headers["annex-invocation-id"]);
    assert_eq!(send("b").await.code(), "idempotency-key-conflict");
    let calls = platform
        .extension
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter(|message| message.get("request").is_some())
        .count();
    assert_eq!(calls, 1);
    let header = axum::http::HeaderValue::from_bytes(b"\xff").unwrap();
    let bad = Request::post(REQUEST)
        .header("authorization", format!("Bearer {owner}"))
        .header("idempotency-key", header);
    let bad = bad.body(Body::from(encode(&[("oid", &oid), ("action", "echo")]))).unwrap();
    assert_eq!(platform.send(bad).await.code(), "bad-request");
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_a_receipt() {
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let form = [("oid", &*oid.to_string()), ("action", "echo")];
    let answer = request(&platform, &owner, &form, &[("Prefer", "respond-async")]).await;
    assert_eq!(answer.status, 202);
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let record = platform.get(&owner, &location).await.ok();
    assert_eq!(record["id"], answer.json()["id"]);
    assert!(["queued", "running"].contains(&record["status"].as_str().unwrap()), "{record}");
    let user = platform.user(oid, &owner, "org.get").await;
    assert_eq!(platform.get(&user, &location).await.code(), "forbidden");
    let (_, stranger) = platform.org().await;
    assert_eq!(platform.get(&stranger, &location).await.code(), "not-found");
    assert_eq!(platform.get(&owner, "/v1/invocations/nope").await.code(), "not-found");
}

#[tokio::test]
async fn the_schema_of_an_extension_is_read_by_name() {
    // LC-151
    let platform = Platform::new();
    let (oid, owner) = ready(&platform).await;
    let path = format!("/v1/extension/schema/ext?oid={oid}");
    let schema = platform.get(&owner, &path).await.ok();
    assert_eq!(schema["required_events"], json!(["subscribe", "unsubscribe"]));
    assert_eq!(platform.get(&owner, "/v1/extension/schema/nope").await.code(), "not-found");
    let user = platform.user(oid, &owner, "org.get").await;
    assert_eq!(platform.get(&user, &path).await.code(), "forbidden");
    platform.clock.advance(annex_core::limits::SCHEMA_TTL);
    *platform.extension.is_down.lock().unwrap() = true;
    let (code, error) = platform.get(&owner, &path).await.fault();
    assert_eq!(code, "extension-unreachable");
    assert!(error.starts_with("schema request failed: "), "{error}");
}

#[tokio::test]
async fn a_diagnosis_names_the_first_of_four_checks_that_fails() {
    // LC-150
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    let diagnose = |query: &'static str| {
        let (platform, owner) = (&platform, &owner);
        async move {
            let path = format!("/v1/extension/diagnose/ext?oid={oid}&{query}");
            let found: Value = platform.get(owner, &path).await.ok();
            let names: Vec<_> = found["checks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|check| check["check"].clone())
                .collect();
            assert_eq!(names, ["schema request", "subscribed", "action name", "parameters"]);
            found["first_failure"].clone()
        }
    };
    *platform.extension.is_down.lock().unwrap() = true;
    assert_eq!(diagnose("action=nope&data=%7B%22x%22%3A1%7D").await, "schema request");
    *platform.extension.is_down.lock().unwrap() = false;
    assert_eq!(diagnose("action=nope&data=%7B%22x%22%3A1%7D").await, "subscribed");
    platform.subscribe(&owner, oid, "ext").await.ok();
    assert_eq!(diagnose("action=nope&data=%7B%22x%22%3A1%7D").await, "action name");
    assert_eq!(diagnose("action=echo&data=%7B%22x%22%3A1%7D").await, "parameters");
    assert_eq!(diagnose("action=echo&data=%7B%22msg%22%3A%22m%22%7D").await, Value::Null);
    assert_eq!(
        platform.get(&owner, "/v1/extension/diagnose/nope").await.ok()["first_failure"],
        "schema request"
    );
}
