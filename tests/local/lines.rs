//! The log: one line for each run of a call, whatever came of it, and nothing in any line that is not for a log.

use annex_tests::extension::{Extension, Message, Reply, SECRET};
use annex_tests::platform::Tenant;
use annex_tests::process::{Annex, serve};
use annex_tests::wait::until;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::secrets::check_clean;

/// A secret of the organization.
const VALUE: &str = "s3cr3t/\"vendor\"+k\u{e9}y?0123456789";
/// What a caller sends.
const PAYLOAD: &str = "payload-of-a-caller-4711";
/// What an extension says.
const SAID: &str = "words-of-the-extension-0815";
/// What stands in the URL of an extension.
const IN_URL: &str = "token-in-the-url-of-an-extension";
/// The shared secret that takes over.
const NEW: &str = "another-shared-secret-of-the-extension";

/// Fails in every way there is, and says what it has in all of them.
async fn failing() -> Extension {
    Extension::start(|message: Message| async move {
        let said = format!("{SAID} {}", message.json);
        let error = json!({"error": said, "retriable": false}).to_string();
        match message.value["request"]["data"]["text"].as_str().map(|text| &text[PAYLOAD.len()..]) {
            _ if message.action() == "more" => Reply::status(400, &error),
            _ if message.action().is_empty() => Reply::data("{}"),
            Some("permanent") => Reply::status(400, &error),
            Some("again") => Reply::status(503, &json!({"error": said}).to_string()),
            Some("forbidden") => Reply::status(403, &said),
            Some("moved") => Reply::Bytes(
                format!("HTTP/1.1 302 {SAID}\r\nlocation: http://127.0.0.1/{SAID}\r\ncontent-length: 0\r\n\r\n").into(),
            ),
            Some("garbage") => Reply::status(200, &said),
            Some("not json") => Reply::status(200, &format!("{{\"version\":\"{SAID}")),
            Some("not http") => Reply::Bytes(said.into_bytes()),
            Some("cut") => Reply::Bytes(
                format!("HTTP/1.1 200 OK\r\nx-a: {SAID}\r\ncontent-length: 10000000\r\n\r\n{said}").into(),
            ),
            Some("large") => Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100000001\r\n\r\n".to_vec()),
            Some("dropped") => Reply::dropped(),
            Some("reset") => Reply::reset(),
            Some("shed") => Reply::status(429, &said),
            Some("asks") => Reply::ok(&format!(
                r#""data":{},"continuations":{},"metrics":{}"#,
                json!(said),
                json!([
                    {"in_delay_sec": 0, "action": "more", "state": {"text": said}},
                    {"in_delay_sec": 0, "action": format!("unknown-{SAID}"), "state": {"text": said}},
                    {"in_delay_sec": said, "action": "", "state": {}},
                ]),
                json!({"idempotent_key": SAID, "metrics": [{"sku": SAID, "value": -1}]}),
            )),
            _ => Reply::data(&json!({"said": said}).to_string()),
        }
    })
    .await
}

const WAYS: &[(&str, &str)] = &[
    ("fine", ""),
    ("permanent", "extension-error"),
    ("again", "extension-failed"),
    ("forbidden", "extension-failed"),
    ("moved", "extension-failed"),
    ("garbage", "bad-answer"),
    ("not json", "bad-answer"),
    ("not http", "extension-unreachable"),
    ("cut", "extension-unreachable"),
    ("large", "bad-answer"),
    ("dropped", "extension-unreachable"),
    ("reset", "extension-unreachable"),
    ("asks", ""),
];

/// The lines of the runs of calls.
fn runs(annex: &Annex) -> Vec<Value> {
    let log = annex.log();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["target"] == "annex::call").collect()
}

async fn call(tenant: &Tenant, extension: &str, way: &str, prefer: &str) -> String {
    let data =
        json!({"key": "hive://secret/vendor", "text": format!("{PAYLOAD}{way}")}).to_string();
    let answer = tenant.call_with(extension, "echo", &data, &[("prefer", prefer)]).await;
    answer.header("annex-invocation-id").unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_run_has_its_line_and_no_line_has_a_secret_a_payload_or_a_word_of_an_extension() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = failing().await;
    let mut command = serve(PROGRAM, &data);
    command.args(["--log", "json"]).env("RUST_LOG", "trace");
    let annex = Annex::start_as(command, &data);
    let operator = annex.operator(&data).await;
    let url = format!("{}/{IN_URL}?key={IN_URL}", extension.url());
    operator.register_at("ext", &url).await;
    let closed = Extension::echo().await.address;
    operator.register_at("gone", &format!("http://{closed}/{IN_URL}")).await;
    let tenant = operator.tenant("demo").await;
    tenant.set_secret("vendor", VALUE).await;
    tenant.subscribe("ext").await;
    tenant.subscribe("gone").await;
    let rotate = "/v1/extension/definition/ext/rotate-secret";
    operator.form("POST", rotate, &[("secret", NEW)]).await.ok();

    let calls = WAYS.iter().map(|(way, _)| call(&tenant, "ext", way, "wait=25"));
    let ids = futures_util::future::join_all(calls).await;
    // One that waits for its slow retry, one whose extension is not there, and those that are refused.
    let shed = call(&tenant, "ext", "shed", "wait=2").await;
    call(&tenant, "gone", "fine", "wait=25").await;
    let unknown = [("oid", tenant.oid.as_str()), ("action", PAYLOAD), ("data", VALUE)];
    tenant.form("POST", "/v1/extension/request/ext", &unknown).await.fault();
    let failed = ids[1].as_str();
    tenant.form("POST", &format!("/v1/invocations/{failed}/replay"), &[]).await.fault();
    let config = format!("/v1/hive/extension_config/{}/ext/data", tenant.oid);
    tenant.form("POST", &config, &[("data", &json!([VALUE]).to_string())]).await.fault();

    // The calls, their replay, the subscribe event, the continuation, the one that was refused, the reports.
    let found = |wanted: &'static str| {
        let annex = &annex;
        move || async move {
            let found = runs(annex).iter().any(|run| run["fields"]["origin"] == wanted);
            found.then_some(())
        }
    };
    until("the runs of continuations", found("continuation")).await;
    until("the refused continuation", || async {
        let runs = runs(&annex);
        let refused = |run: &&Value| {
            run["fields"]["origin"] == "continuation" && run["fields"].get("action").is_none()
        };
        (runs.iter().filter(refused).count() == 1).then_some(())
    })
    .await;
    until("the event", found("platform")).await;

    let runs = runs(&annex);
    for ((way, code), id) in WAYS.iter().zip(&ids) {
        let lines: Vec<_> = runs.iter().filter(|run| run["fields"]["id"] == *id).collect();
        assert_eq!(lines.len(), 1, "{way}: {lines:?}");
        let outcome = if code.is_empty() { "succeeded" } else { "failed" };
        assert_eq!(lines[0]["fields"]["outcome"], outcome, "{way}");
        assert_eq!(lines[0]["fields"]["code"].as_str().unwrap_or_default(), *code, "{way}");
    }
    let waiting = runs.iter().find(|run| run["fields"]["id"] == shed).unwrap();
    assert_eq!(waiting["fields"]["outcome"], "waiting");
    let again = runs.iter().find(|run| run["fields"]["id"] == ids[2]).unwrap();
    check_line(again, &tenant, &ids[2]);

    let log = annex.log();
    check_clean("the log", log.as_bytes(), &[VALUE, SECRET, NEW, IN_URL, PAYLOAD, SAID]);
    // Every line about a call says whose it is.
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failed: Vec<_> = lines
        .filter(|line| line["fields"]["message"] == "attempt failed")
        .filter(|line| line["span"]["id"] == ids[2])
        .collect();
    assert_eq!(failed.len(), 2);
    for line in failed {
        assert_eq!(
            (&line["span"]["oid"], &line["span"]["extension"]),
            (&json!(tenant.oid), &json!("ext"))
        );
    }
}

/// The whole line of a call that was tried three times.
fn check_line(line: &Value, tenant: &Tenant, id: &str) {
    let mut fields = line["fields"].as_object().unwrap().clone();
    let latency = fields.remove("latency_ms").unwrap().as_u64().unwrap();
    // Two delays, each with its jitter.
    assert!((2_300..25_000).contains(&latency), "{latency}");
    assert!(fields.remove("queue_age_ms").unwrap().is_u64());
    let expected = json!({
        "message": "call", "id": id, "oid": tenant.oid, "extension": "ext", "action": "echo",
        "origin": "api", "outcome": "failed", "code": "extension-failed", "attempts": 3,
        "trace_id": id.replace('-', ""),
    });
    assert_eq!(Value::Object(fields), expected);
    assert_eq!(line["level"], "INFO");
    let members: Vec<_> = line.as_object().unwrap().keys().collect();
    assert_eq!(members, ["timestamp", "level", "fields", "target", "span"]);
}
