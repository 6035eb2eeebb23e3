//! Dead letters, as the operator sees them.

use std::io::Write;
use std::sync::{Arc, Mutex};

use annex_core::daily;
use annex_core::ports::{DeadLetter, QueueName};
use annex_core::time::Timestamp;
use serde_json::json;

use super::platform::{NOW, Platform};

fn letter(id: &str, body: &str) -> DeadLetter {
    DeadLetter { id: id.to_owned(), body: body.to_owned(), receives: Some(8) }
}

#[tokio::test]
async fn dead_letters_are_told_by_what_they_are_about_and_put_back_as_they_were() {
    let platform = Platform::new();
    let (oid, _) = platform.org().await;
    let operator = platform.operator().await;
    let usage = format!(r#"{{"oid":"{oid}","extension":"demo","key":"hunter2","at":0,"skus":[]}}"#);
    platform.store.bury(QueueName::Meter, letter("a", &usage));
    platform.store.bury(QueueName::Meter, letter("b", "no message"));
    let path = "/v1/dead-letters/meter";
    let listed = platform.get(&operator, path).await;
    assert!(!listed.text.contains("hunter2"));
    assert_eq!(
        listed.ok(),
        json!({"dead_letters": [
            {"id": "a", "receives": 8, "about": {"kind": "usage", "oid": oid, "extension": "demo"}},
            {"id": "b", "receives": 8, "about": {"kind": "unknown"}},
        ]})
    );
    let one = platform.get(&operator, &format!("{path}?limit=1")).await.ok();
    assert_eq!(one["dead_letters"].as_array().unwrap().len(), 1);
    let other = platform.get(&operator, "/v1/dead-letters/resume").await.ok();
    assert_eq!(other, json!({"dead_letters": []}));

    platform.store.take_sent();
    let redrive = format!("{path}/redrive");
    let form = [("limit", "1")];
    assert_eq!(
        platform.call(&operator, "POST", &redrive, &form).await.ok(),
        json!({"redriven": 1})
    );
    assert_eq!(platform.call(&operator, "POST", &redrive, &[]).await.ok(), json!({"redriven": 1}));
    assert_eq!(platform.call(&operator, "POST", &redrive, &[]).await.ok(), json!({"redriven": 0}));
    let sent: Vec<String> = platform.store.take_sent().into_iter().map(|sent| sent.body).collect();
    assert_eq!(sent, [usage.as_str(), "no message"]);
}

#[tokio::test]
async fn only_the_operator_sees_dead_letters_reseals_and_deletes() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let org = format!("/v1/orgs/{oid}");
    for (method, path) in [
        ("GET", "/v1/dead-letters/meter"),
        ("POST", "/v1/dead-letters/meter/redrive"),
        ("POST", "/v1/keyring/reseal"),
        ("DELETE", org.as_str()),
    ] {
        assert_eq!(platform.call(&owner, method, path, &[]).await.code(), "forbidden", "{path}");
        assert_eq!(platform.call("", method, path, &[]).await.code(), "unauthenticated", "{path}");
    }
}

#[tokio::test]
async fn queues_limits_and_cursors_that_are_none_are_refused() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    for (method, path, code) in [
        ("GET", "/v1/dead-letters/nope", "not-found"),
        ("POST", "/v1/dead-letters/nope/redrive", "not-found"),
        ("GET", "/v1/dead-letters/meter?limit=x", "bad-request"),
        ("POST", "/v1/keyring/reseal?cursor=x", "bad-request"),
        // One of the form that a walk over the store has, which nobody sealed.
        ("POST", "/v1/keyring/reseal?cursor=WyJpbnZvY2F0aW9ucyIsIngiXQ", "bad-request"),
    ] {
        assert_eq!(platform.call(&operator, method, path, &[]).await.code(), code, "{path}");
    }
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_words_of_an_extension_that_cannot_be_asked_are_in_no_log() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let says = r#"{"error":"hunter2 was wrong","retriable":false}"#;
    *platform.extension.schema_says.lock().unwrap() = Some((400, says.to_owned()));
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(lines);
    let day = Timestamp::parse(NOW).unwrap();
    daily::run_day(&platform.app.calls, day).await.unwrap();
    daily::run(&platform.app.calls).await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("events could not be asked for").count(), 2, "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
