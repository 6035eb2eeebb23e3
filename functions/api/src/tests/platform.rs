//! A platform in memory with one extension behind it, and a client that talks to its router.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use annex_core::call::{CallSettings, Calls};
use annex_core::ids::Oid;
use annex_core::limits::TELEMETRY_RETENTION;
use annex_core::ports::{Outbound, Ports, SendFault, WebhookAnswer, WebhookRequest};
use annex_core::telemetry::Telemetry;
use annex_core::testkit::{FixedKeyring, Inline, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use annex_core::time::Timestamp;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{App, Settings, router};

/// When the tests take place.
pub(super) const NOW: &str = "2026-03-04T05:06:07Z";

/// An extension that takes a configuration with an `api_key`, and echoes the data of its one action.
#[derive(Default)]
pub(super) struct Extension {
    /// The messages that it got, but for schema requests.
    pub(super) seen: Mutex<Vec<Value>>,
    /// Whether it answers at all.
    pub(super) is_down: Mutex<bool>,
    /// Its status and body for every call instead, where it is set.
    pub(super) says: Mutex<Option<(u16, String)>>,
    /// The same for schema requests.
    pub(super) schema_says: Mutex<Option<(u16, String)>>,
}

impl Extension {
    fn answer(&self, message: &Value) -> (u16, String) {
        let is_schema = message.get("schema_request").is_some();
        if !is_schema {
            self.seen.lock().unwrap().push(message.clone());
        }
        let says = if is_schema { &self.schema_says } else { &self.says };
        if let Some(says) = &*says.lock().unwrap() {
            return says.clone();
        }
        let (status, body) = Self::usual(message);
        (status, body.to_string())
    }

    fn usual(message: &Value) -> (u16, Value) {
        if message.get("schema_request").is_some() {
            let data = json!({
                "config_schema": {"fields": {"api_key": {"data_type": "string"}}},
                "request_schema": {
                    "echo": {"parameters": {"fields": {"msg": {"data_type": "string"}}}},
                    "fail": {"parameters": {"fields": {}}},
                    "sign": {"parameters": {"fields": {"keys": {"data_type": "secret", "is_list": true}}}},
                },
                "required_events": ["subscribe", "unsubscribe"],
            });
            return (200, json!({"version": 20_221_218, "data": data}));
        }
        if message["conf_validation"]["conf"].as_object().is_some_and(|conf| conf.is_empty()) {
            return (400, json!({"version": 20_221_218, "error": "api_key is required"}));
        }
        if message["request"]["action"] == "fail" {
            return (400, json!({"error": "no such vendor", "retriable": false}));
        }
        (200, json!({"version": 20_221_218, "data": message["request"]["data"]}))
    }
}

#[async_trait]
impl Outbound for Extension {
    fn check_url(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("it is not https".into()) }
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        if *self.is_down.lock().unwrap() {
            return Err(SendFault::NotSent("refused".into()));
        }
        let (status, body) = self.answer(&message(&request));
        let body = Bytes::from(body);
        Ok(WebhookAnswer { status, retry_after: None, body })
    }
}

/// The message that a request to an extension carries.
pub(super) fn message(request: &WebhookRequest) -> Value {
    let mut json = String::new();
    flate2::read::GzDecoder::new(&request.body[..]).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// The platform, and who signs in to it.
pub(super) struct Platform {
    pub(super) app: App,
    pub(super) router: Router,
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) blobs: Arc<MemoryBlobs>,
    pub(super) extension: Arc<Extension>,
    pub(super) keyring: Arc<FixedKeyring>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body of an answer that is a success.
    #[track_caller]
    pub(super) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// The code and the text of a fault, whose status is that of its code.
    #[track_caller]
    pub(super) fn fault(&self) -> (String, String) {
        let body = self.json();
        let code = body["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}"));
        let known = annex_core::fault::Code::parse(code).unwrap();
        assert_eq!(self.status, known.status());
        assert_eq!(self.headers["content-type"], "application/json");
        (code.to_owned(), body["error"].as_str().unwrap().to_owned())
    }

    /// The code of a fault.
    #[track_caller]
    pub(super) fn code(&self) -> String {
        self.fault().0
    }
}

impl Platform {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::auto_advancing(Timestamp::parse(NOW).unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let blobs = Arc::new(MemoryBlobs::new(clock.clone()));
        let ports = (clock, store, blobs);
        Self::process(ports, Arc::default(), Arc::new(FixedKeyring::new()), 7)
    }

    /// Another process over the same store, with a key ring of its own.
    pub(super) fn beside(&self, keyring: FixedKeyring) -> Self {
        let ports = (self.clock.clone(), self.store.clone(), self.blobs.clone());
        Self::process(ports, self.extension.clone(), Arc::new(keyring), 8)
    }

    fn process(
        (clock, store, blobs): (Arc<ManualClock>, Arc<MemoryStore>, Arc<MemoryBlobs>),
        extension: Arc<Extension>,
        keyring: Arc<FixedKeyring>,
        seed: u64,
    ) -> Self {
        let ports = Ports {
            store: store.clone(),
            dead_letters: store.clone(),
            blobs: blobs.clone(),
            keyring: keyring.clone(),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(seed)),
            outbound: extension.clone(),
        };
        let calls = Calls::new(ports.clone(), Arc::new(Inline), CallSettings::default());
        let settings = Arc::new(Settings { public_url: "http://127.0.0.1:8080".into() });
        let telemetry = Telemetry::new(ports.clone(), calls.clone(), TELEMETRY_RETENTION);
        let app = App { ports, calls, telemetry, settings };
        Self { router: router(app.clone()), app, clock, store, blobs, extension, keyring }
    }

    /// Sends a request as it is.
    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// Sends a form, as real clients do on every method: with a content type, also where it is empty.
    pub(super) async fn call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        form: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/x-www-form-urlencoded");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.send(request.body(Body::from(encode(form))).unwrap()).await
    }

    pub(super) async fn get(&self, token: &str, path: &str) -> Answer {
        self.call(token, "GET", path, &[]).await
    }

    /// Sends JSON.
    pub(super) async fn json(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Signs in.
    pub(super) async fn sign_in(&self, secret: &str, oid: &str) -> String {
        let form = [("secret", secret), ("oid", oid)];
        let answer = self.call("", "POST", "/jwt", &form).await.ok();
        answer["jwt"].as_str().unwrap().to_owned()
    }

    /// The operator's token, without an organization.
    pub(super) async fn operator(&self) -> String {
        self.sign_in(FixedKeyring::OPERATOR, "-").await
    }

    /// Makes an organization; its id, and a token with every permission on it.
    pub(super) async fn org(&self) -> (Oid, String) {
        let operator = self.operator().await;
        let made = self.call(&operator, "POST", "/v1/orgs/new", &[("name", "demo")]).await.ok();
        let oid = made["data"]["oid"].as_str().unwrap();
        (Oid::parse(oid).unwrap(), self.sign_in(FixedKeyring::OPERATOR, oid).await)
    }

    /// A token with these permissions.
    pub(super) async fn user(&self, oid: Oid, owner: &str, perms: &str) -> String {
        let path = format!("/v1/orgs/{oid}/keys");
        let form = [("key_name", "k"), ("perms", perms)];
        let made = self.call(owner, "POST", &path, &form).await.ok();
        self.sign_in(made["api_key"].as_str().unwrap(), &oid.to_string()).await
    }

    /// Registers an extension.
    pub(super) async fn register(&self, name: &str, required: &[&str]) {
        let body = json!({
            "name": name, "url": "https://e.example", "secret": "s".repeat(32),
            "permissions": ["org.get"], "required_extensions": required,
        });
        let operator = self.operator().await;
        let path = "/v1/extension/definition";
        self.json(&operator, "POST", path, &body.to_string()).await.ok();
    }

    /// Subscribes an organization to an extension.
    pub(super) async fn subscribe(&self, token: &str, oid: Oid, name: &str) -> Answer {
        let path = format!("/v1/orgs/{oid}/subscription/extension/{name}");
        self.call(token, "POST", &path, &[]).await
    }
}

/// A form as `urlencode` writes it.
pub(super) fn encode(form: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in form {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                    out.push(char::from(byte));
                }
                b' ' => out.push('+'),
                other => out.push_str(&format!("%{other:02X}")),
            }
        }
    }
    out
}
