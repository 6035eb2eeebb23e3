//! Calls that are meant to do harm: each ends, as a record, and costs a bounded amount.

use annex_core::ids::Oid;
use annex_core::limits::{
    ERRORS_LISTED_MAX, FAULT_TEXT_BYTES_MAX, INLINE_BYTES_MAX, MESSAGE_SECRETS_BYTES_MAX,
    NAME_BYTES_MAX, TEXT_BYTES_MAX,
};
use annex_core::org_errors;
use annex_core::ports::{Commit, Store as _};
use annex_core::time::Timestamp;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::platform::{Answer, NOW, Platform, encode};

struct Ready {
    platform: Platform,
    oid: String,
    owner: String,
}

impl Ready {
    async fn new() -> Self {
        let platform = Platform::new();
        let (oid, owner) = platform.org().await;
        platform.register("ext", &[]).await;
        platform.subscribe(&owner, oid, "ext").await.ok();
        Self { platform, oid: oid.to_string(), owner }
    }

    async fn request(&self, form: &[(&str, &str)], key: &str) -> Answer {
        let form: Vec<_> = [("oid", self.oid.as_str())].iter().chain(form).copied().collect();
        let mut request = Request::post("/v1/extension/request/ext")
            .header("authorization", format!("Bearer {}", self.owner));
        if !key.is_empty() {
            request = request.header("idempotency-key", key);
        }
        self.platform.send(request.body(Body::from(encode(&form))).unwrap()).await
    }

    /// The status and the error of the record of a call that the extension answered like this.
    async fn ends(&self, status: u16, body: &Value) -> (String, String) {
        *self.platform.extension.says.lock().unwrap() = Some((status, body.to_string()));
        let answer = self.request(&[("action", "echo")], "").await;
        let id = answer
            .headers
            .get("annex-invocation-id")
            .unwrap_or_else(|| panic!("not recorded: {} {:.300}", answer.status, answer.text));
        let path = format!("/v1/invocations/{}", id.to_str().unwrap());
        let record = self.platform.get(&self.owner, &path).await.ok();
        let error = record["error"].as_str().unwrap_or_default();
        (record["status"].as_str().unwrap().to_owned(), error.to_owned())
    }
}

#[tokio::test]
async fn a_call_ends_whatever_the_size_of_what_its_extension_says() {
    let ready = Ready::new().await;
    let long = "e".repeat(2 << 20);
    for status in [200, 400, 500, 418] {
        let (state, error) =
            ready.ends(status, &json!({"version": 1, "error": long, "retriable": false})).await;
        assert_eq!((state.as_str(), error.len()), ("failed", FAULT_TEXT_BYTES_MAX), "{status}");
    }
    let digits: Value = serde_json::from_str(&"9".repeat(300)).unwrap_or(Value::Null);
    for part in [
        json!({"continuations": [{"action": long, "state": {}}]}),
        json!({"continuations": [{"action": "echo", "in_delay_sec": digits}]}),
        json!({"metrics": {"idempotent_key": long, "metrics": [{"sku": "s", "value": 1}]}}),
        json!({"metrics": {"metrics": [{"sku": long, "value": 1}]}}),
        json!({"data": {"long": long}}),
    ] {
        let mut body = json!({"version": 1});
        body.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        assert_eq!(ready.ends(200, &body).await.0, "succeeded", "{part:.80}");
    }
}

#[tokio::test]
async fn what_a_caller_names_is_bounded_before_anything_is_recorded() {
    let ready = Ready::new().await;
    let ask = async |action: &str, investigation: &str| {
        let form = [("action", action), ("investigation_id", investigation)];
        ready.request(&form, "").await
    };
    ask("echo", &"i".repeat(TEXT_BYTES_MAX)).await.ok();
    assert_eq!(ask("echo", &"i".repeat(TEXT_BYTES_MAX + 1)).await.code(), "bad-request");
    let (code, text) = ask(&"a".repeat(1 << 20), "").await.fault();
    assert_eq!(code, "schema-refused");
    assert!(text.len() < 2_000, "{}", text.len());
    assert_eq!(ask(&"a".repeat(NAME_BYTES_MAX + 1), "").await.code(), "schema-refused");
}

#[tokio::test]
async fn references_to_a_secret_cannot_make_a_message_of_any_size() {
    let ready = Ready::new().await;
    let secret = json!({"secret": "s".repeat(1_024)}).to_string();
    let path = format!("/v1/hive/secret/{}/k/data", ready.oid);
    let form = [("data", secret.as_str())];
    ready.platform.call(&ready.owner, "POST", &path, &form).await.ok();
    let sign = async |references: usize| {
        let data = json!({"keys": vec!["hive://secret/k"; references]}).to_string();
        ready.request(&[("action", "sign"), ("data", &data)], "").await
    };
    let most = MESSAGE_SECRETS_BYTES_MAX / 1_024;
    sign(most).await.ok();
    let seen = ready.platform.extension.seen.lock().unwrap().len();
    assert_eq!(sign(most + 1).await.code(), "too-large");
    assert_eq!(ready.platform.extension.seen.lock().unwrap().len(), seen, "nothing was sent");
}

#[tokio::test]
async fn a_list_of_errors_is_bounded_however_many_an_extension_makes() {
    let ready = Ready::new().await;
    let (oid, now) = (Oid::parse(&ready.oid).unwrap(), Timestamp::parse(NOW).unwrap());
    for first in (0..ERRORS_LISTED_MAX + 100).step_by(100) {
        let writes = (first..first + 100)
            .map(|n| org_errors::write(oid, "ext.echo", &n.to_string(), now))
            .collect();
        let commit = Commit { writes, ..Commit::default() };
        ready.platform.store.commit(commit).await.unwrap();
    }
    let path = format!("/v1/errors/{}", ready.oid);
    let listed = ready.platform.get(&ready.owner, &path).await.ok();
    assert_eq!(listed["errors"].as_array().map(Vec::len), Some(ERRORS_LISTED_MAX));
}

#[tokio::test]
async fn a_repeat_leaves_no_second_copy_of_its_data() {
    let ready = Ready::new().await;
    let data = json!({"msg": "x".repeat(INLINE_BYTES_MAX)}).to_string();
    let form = [("action", "echo"), ("data", data.as_str())];
    ready.request(&form, "k").await.ok();
    let kept = ready.platform.blobs.count();
    for _ in 0..3 {
        ready.request(&form, "k").await.ok();
    }
    assert_eq!((kept, ready.platform.blobs.count()), (2, 2), "the data, and the answer");
}
