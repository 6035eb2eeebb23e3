//! No byte of a secret leaves or lies in the open: not in an answer, an error, a record, a log or a file, in no
//! encoding, and not when the extension echoes it.

use std::path::Path;

use annex_tests::client::Answer;
use annex_tests::extension::{Extension, Message, Reply, SECRET};
use annex_tests::platform::Tenant;
use annex_tests::process::{Annex, serve};
use annex_tests::wait::until;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::PROGRAM;

/// What a call uses: with characters that every encoding treats in its own way.
const VALUE: &str = "s3cr3t/\"vendor\"+k\u{e9}y?0123456789";

/// What a configuration uses.
const CONFIGURED: &str = "configured-key-9876543210";

/// A value in the forms that are looked for; `inside` a longer text of base64, only what is of the value alone.
fn forms(value: &str, inside: std::ops::RangeInclusive<usize>) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let quoted = json!(value).to_string();
    let twice = json!(quoted[1..quoted.len() - 1]).to_string();
    let mut forms = vec![
        value.to_owned(),
        quoted[1..quoted.len() - 1].to_owned(),
        twice[1..twice.len() - 1].to_owned(),
        hex::encode(bytes),
        hex::encode_upper(bytes),
        STANDARD.encode(bytes).trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(bytes),
        annex_tests::client::encode(value),
        annex_tests::client::encode(value).replace('+', "%20"),
    ];
    // Inside a longer text that is base64, at each of the three places that a byte can have.
    for shift in 1..3 {
        let moved = [&b"xx"[..shift], bytes, b"x"].concat();
        let text = STANDARD.encode(&moved);
        forms.push(text[*inside.start()..text.len() - *inside.end()].to_owned());
    }
    forms.into_iter().map(String::into_bytes).collect()
}

/// Fails where one of the values, in any form, is in the bytes.
#[track_caller]
pub(crate) fn check_clean(place: &str, bytes: &[u8], values: &[&str]) {
    for value in values {
        for form in forms(value, 4..=4) {
            if let Some(at) = bytes.windows(form.len()).position(|window| window == form) {
                let around = &bytes[at.saturating_sub(300)..bytes.len().min(at + 300)];
                let form = String::from_utf8_lossy(&form).into_owned();
                panic!("{form} is in {place}: {}", String::from_utf8_lossy(around));
            }
        }
    }
}

/// Every file below a folder but the root key's.
fn check_files(folder: &Path, values: &[&str]) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_files(&path, values);
        } else if path.file_name().unwrap() != "root-key" {
            check_clean(path.to_str().unwrap(), &std::fs::read(&path).unwrap(), values);
        }
    }
}

/// Says everything that it got, in every form.
fn everything(message: &Message) -> Vec<String> {
    let request = &message.value["request"];
    let mut said = vec![request["data"].to_string(), request["config"].to_string()];
    for part in ["data", "config"] {
        let values = request[part].as_object().into_iter().flat_map(|object| object.values());
        for text in values.filter_map(Value::as_str).filter(|text| text.len() > 8) {
            let forms = forms(text, 0..=0).into_iter().map(|form| String::from_utf8(form).unwrap());
            said.extend(forms);
        }
    }
    said
}

/// An extension that echoes wherever an answer has room for it.
async fn echoing() -> Extension {
    Extension::start(|message| async move {
        let said = everything(&message);
        let all = said.join(" ");
        if let Some(validation) = message.value.get("conf_validation") {
            return match validation["conf"]["note"].as_str() {
                Some(_) => Reply::status(503, &json!({"error": message.json}).to_string()),
                None => Reply::data("{}"),
            };
        }
        match message.value["request"]["data"]["text"].as_str() {
            _ if message.action().is_empty() => {
                Reply::status(400, &json!({"error": message.json, "retriable": false}).to_string())
            }
            Some("fail") => Reply::status(400, &json!({"error": all, "retriable": false}).to_string()),
            Some("flaky") => Reply::status(500, &json!({"error": all}).to_string()),
            Some("shed") => Reply::status(429, &json!({"error": all}).to_string()),
            Some("garbage") => Reply::status(200, &all),
            Some("continue") => {
                let data = &message.value["request"]["data"];
                let secret = data["key"].as_str().unwrap_or_default();
                Reply::ok(&format!(
                    r#""data":{{}},"continuations":{},"metrics":{}"#,
                    json!([
                        {"in_delay_sec": 0, "action": "more", "state": {"text": "resumed", "said": said}},
                        {"in_delay_sec": 0, "action": secret, "state": {}},
                        {"in_delay_sec": all, "action": "", "state": {}},
                    ]),
                    json!({"idempotent_key": secret, "metrics": [
                        {"sku": secret, "value": 1}, {"sku": format!("x{secret}"), "value": -1},
                    ]}),
                ))
            }
            Some("resumed") => {
                let said = message.value["request"]["data"]["said"].clone();
                Reply::status(400, &json!({"error": said.to_string(), "retriable": false}).to_string())
            }
            _ => Reply::data(&json!({"said": said, all.as_str(): 1}).to_string()),
        }
    })
    .await
}

/// Everything that the organization can read.
async fn readable(tenant: &Tenant) -> Vec<(String, Answer)> {
    let oid = &tenant.oid;
    let mut read = Vec::new();
    for path in [
        format!("/v1/errors/{oid}"),
        format!("/v1/orgs/{oid}/usage"),
        format!("/v1/usage/{oid}"),
        format!("/v1/orgs/{oid}/keys"),
        format!("/v1/orgs/{oid}/subscriptions"),
        format!("/v1/orgs/{oid}/events"),
        "/v1/extension/definition".to_owned(),
        "/v1/extension/definition/ext".to_owned(),
        "/v1/extension/schema/ext".to_owned(),
        "/v1/extension/diagnose/ext".to_owned(),
    ] {
        let answer = tenant.get(&path).await;
        read.push((path, answer));
    }
    read
}

#[tokio::test]
async fn no_byte_of_a_secret_leaves_or_lies_in_the_open() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let extension = echoing().await;
    let mut command = serve(PROGRAM, &data);
    // All that can be logged.
    command.env("RUST_LOG", "trace");
    let annex = Annex::start_as(command, &data);
    let operator = annex.operator(&data).await;
    operator.register("ext", &extension).await;
    let tenant = operator.tenant("demo").await;
    tenant.set_secret("vendor", VALUE).await;
    tenant.set_secret("configured", CONFIGURED).await;
    tenant.subscribe("ext").await;
    let made =
        tenant.form("POST", &format!("/v1/orgs/{}/keys", tenant.oid), &[("perms", "*")]).await;
    let api_key = made.ok()["api_key"].as_str().unwrap().to_owned();
    let user = tenant.sign_in(&api_key, &tenant.oid).await;
    let made =
        tenant.form("POST", &format!("/v1/orgs/{}/adapters/ext", tenant.oid), &[]).await.ok();
    let hook = made["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let path = format!("/v1/hive/extension_config/{}/ext/data", tenant.oid);
    let config = [("data", r#"{"api_key":"hive://secret/configured"}"#)];
    tenant.form("POST", &path, &config).await.ok();
    let refused = [("data", r#"{"api_key":"hive://secret/configured","note":"no"}"#)];
    let refused = tenant.form("POST", &path, &refused).await;
    assert_eq!(refused.fault().1, "config-refused");
    let mut answers = vec![("a refused configuration".to_owned(), refused)];

    for text in ["fine", "fail", "flaky", "garbage", "continue", "shed"] {
        let data = json!({"key": "hive://secret/vendor", "text": text}).to_string();
        let prefer = if text == "shed" { "wait=1" } else { "wait=25" };
        let answer = tenant.call_with("ext", "echo", &data, &[("prefer", prefer)]).await;
        let id = answer.header("annex-invocation-id").unwrap().to_owned();
        answers.push((format!("the answer to {text}"), answer));
        let record = tenant.get(&format!("/v1/invocations/{id}")).await;
        answers.push((format!("the record of {text}"), record));
    }
    until("the continuation's end", || async {
        tenant.errors().await.iter().any(|(component, _)| component == "ext.more").then_some(())
    })
    .await;
    answers.extend(readable(&tenant).await);

    // It did get them, and was not hindered by any of this.
    let requests = extension.requests("echo");
    assert_eq!(requests[0].value["request"]["data"]["key"], VALUE);
    assert_eq!(requests[0].value["request"]["config"]["api_key"], CONFIGURED);
    let first = answers[1].1.json();
    assert!(first.to_string().contains("[secret:vendor]"), "{first}");
    let values = [VALUE, CONFIGURED, SECRET];
    for (place, answer) in &answers {
        check_clean(place, &answer.body, &values);
        check_clean(place, format!("{:?}", answer.headers).as_bytes(), &values);
    }
    let root_key = std::fs::read_to_string(data.join("root-key")).unwrap();
    let tokens: Vec<String> = requests
        .iter()
        .map(|request| request.value["request"]["org"]["jwt"].as_str().unwrap())
        .chain([user.token.as_str(), tenant.token.as_str()])
        .map(|token| token.rsplit_once('.').unwrap().1.to_owned())
        .collect();
    let mut values = vec![VALUE, CONFIGURED, SECRET, &api_key, root_key.trim(), &hook];
    values.extend(tokens.iter().map(String::as_str));
    check_clean("the log", annex.log().as_bytes(), &values);
    check_files(&data, &values);
    assert!(annex.stop("TERM").await.success());
    check_files(&data, &values);
}

#[tokio::test]
async fn a_secret_is_read_by_whoever_may_and_filled_in_only_where_the_schema_says() {
    let extension = Extension::echo().await;
    let (_world, tenant) = annex_tests::platform::World::with(&extension).await;
    tenant.set_secret("vendor", VALUE).await;
    let reference = "hive://secret/vendor";
    let data = json!({"text": reference, "any": {"key": reference}, "json": [reference]});
    let answer = tenant.call("ext", "echo", &data.to_string()).await.ok();
    assert_eq!(answer["data"], data, "a reference in a field of another type is text");
    let keys = format!("/v1/orgs/{}/keys", tenant.oid);
    let made = tenant.form("POST", &keys, &[("perms", "ext.request")]).await.ok();
    let weak = tenant.sign_in(made["api_key"].as_str().unwrap(), &tenant.oid).await;
    let path = format!("/v1/hive/secret/{}/vendor/data", tenant.oid);
    assert_eq!(weak.get(&path).await.fault().0, 403);
    let read: Value = tenant.get(&path).await.ok();
    assert!(read["data"].to_string().contains("s3cr3t"), "{read}");
}
