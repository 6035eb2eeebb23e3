//! Telemetry over HTTP: the whole way from provisioning an adapter to the call that a rule makes.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::io::Write as _;
use std::sync::Arc;

use annex_core::auth::extension_token;
use annex_core::call::{CallSettings, Calls};
use annex_core::extensions;
use annex_core::ids::{ExtensionName, Oid};
use annex_core::limits::TELEMETRY_RETENTION;
use annex_core::ports::{Outbound, Ports, SendFault, WebhookAnswer, WebhookRequest};
use annex_core::telemetry::Telemetry;
use annex_core::testkit::{FixedKeyring, Inline, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use annex_core::time::Timestamp;
use api::{App, Settings, router};
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const NAME: &str = "ext-demo";
const SECRET: &str = "test-secret-0123456789abcdef0123";

struct NoWay;

#[async_trait]
impl Outbound for NoWay {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, _: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        Err(SendFault::NotSent("there is no network here".to_owned()))
    }
}

struct World {
    router: Router,
    ports: Ports,
    store: Arc<MemoryStore>,
    oid: String,
    token: String,
}

impl World {
    /// A platform with an organization that is subscribed to an extension.
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let ports = Ports {
            store: store.clone(),
            dead_letters: store.clone(),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock,
            ids: Arc::new(SeededIds::new(1)),
            outbound: Arc::new(NoWay),
        };
        let calls = Calls::new(ports.clone(), Arc::new(Inline), CallSettings::default());
        let app = App {
            telemetry: Telemetry::new(ports.clone(), calls.clone(), TELEMETRY_RETENTION),
            ports: ports.clone(),
            calls,
            settings: Arc::new(Settings { public_url: "http://127.0.0.1:8080".to_owned() }),
        };
        let mut world =
            Self { router: router(app), ports, store, oid: "-".to_owned(), token: String::new() };
        world.sign_in().await;
        let org = world.ok("POST", "/v1/orgs/new", "name=demo").await;
        world.oid = org["data"]["oid"].as_str().unwrap().to_owned();
        let definition =
            json!({"name": NAME, "url": "https://e.example", "secret": SECRET}).to_string();
        world.ok("POST", "/v1/extension/definition", &definition).await;
        world.sign_in().await;
        let path = format!("/v1/orgs/{}/subscription/extension/{NAME}", world.oid);
        world.ok("POST", &path, "").await;
        world.store.take_sent();
        world
    }

    async fn sign_in(&mut self) {
        let form = format!("secret={}&oid={}", FixedKeyring::OPERATOR, self.oid);
        let answer = self.ok("POST", "/jwt", &form).await;
        self.token = answer["jwt"].as_str().unwrap().to_owned();
    }

    /// Takes the operator's token, which is one of no organization.
    async fn as_operator(&mut self) {
        let form = format!("secret={}&oid=-", FixedKeyring::OPERATOR);
        let answer = self.ok("POST", "/jwt", &form).await;
        self.token = answer["jwt"].as_str().unwrap().to_owned();
    }

    /// The token of the extension itself.
    async fn extension(&self) -> String {
        let name = ExtensionName::parse(NAME).unwrap();
        let oid = Oid::parse(&self.oid).unwrap();
        let definition = extensions::require_definition(&self.ports, &name).await.unwrap();
        let install = extensions::require_subscription(&self.ports, oid, &name).await.unwrap();
        extension_token(&self.ports, oid, &definition, &install, 1)
    }

    async fn send(&self, request: Request<Body>) -> (u16, Value) {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let kind = match body.starts_with('{') {
            true => "application/json",
            false => "application/x-www-form-urlencoded",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("bearer {}", self.token))
            .header("content-type", kind)
            .body(Body::from(body.to_owned()))
            .unwrap();
        self.send(request).await
    }

    async fn ok(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// Posts to a hook, without a token.
    async fn hook(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
        let mut request = Request::builder().method("POST").uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_vec())).unwrap()).await
    }

    fn adapter(&self) -> String {
        format!("/v1/orgs/{}/adapters/{NAME}", self.oid)
    }

    async fn events(&self, query: &str) -> Vec<Value> {
        let page = self.ok("GET", &format!("/v1/orgs/{}/events?{query}", self.oid), "").await;
        page["events"].as_array().unwrap().iter().map(|event| event["event"].clone()).collect()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

// LC-115 to LC-121.
#[tokio::test]
async fn an_extension_provisions_its_adapter_and_posts_events() {
    let mut world = World::new().await;
    let own = world.extension().await;
    let user = std::mem::replace(&mut world.token, own);
    let made = world.ok("POST", &world.adapter(), "").await;
    assert_eq!(made["tags"], json!(["lc:system", "ext:ext-demo"]));
    assert_eq!(world.ok("POST", &world.adapter(), "").await, made);
    world.token = user;

    let keys = world.ok("GET", &format!("/v1/installationkeys/{}", world.oid), "").await;
    let key = &keys[&world.oid][made["installation_key"].as_str().unwrap()];
    assert_eq!(key["tags"], "lc:system,ext:ext-demo");
    assert_eq!(keys[&world.oid].as_object().unwrap().len(), 1);

    let url = made["url"].as_str().unwrap();
    let hook = url.strip_prefix("http://127.0.0.1:8080").unwrap();
    let secret = hook.rsplit('/').next().unwrap();
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let stored = (200, json!({"success": true, "events": 1}));
    assert_eq!(world.hook(hook, &headers, &gzip(b"{\"n\":1}")).await, stored);
    let bare = hook.strip_suffix(&format!("/{secret}")).unwrap();
    assert_eq!(world.hook(bare, &[("lc-secret", secret)], b"{\"n\":2}").await, stored);
    let refused = (404, json!({"error": "there is no such adapter", "code": "not-found"}));
    assert_eq!(world.hook(bare, &[], b"{}").await, refused);
    assert_eq!(world.hook(&format!("{bare}/wrong"), &[], b"{}").await, refused);
    assert_eq!(world.events("order=asc").await.len(), 2);

    world.token = world.extension().await;
    world.ok("DELETE", &world.adapter(), "").await;
    assert_eq!(world.hook(hook, &[], b"{}").await, refused);
}

#[tokio::test]
async fn another_extension_and_a_caller_without_permission_provision_nothing() {
    let mut world = World::new().await;
    let other = json!({"name": "other", "url": "https://e.example", "secret": SECRET}).to_string();
    world.as_operator().await;
    world.ok("POST", "/v1/extension/definition", &other).await;
    world.token = world.extension().await;
    let path = format!("/v1/orgs/{}/adapters/other", world.oid);
    assert_eq!(world.call("POST", &path, "").await.0, 403);
    assert_eq!(world.call("DELETE", &path, "").await.0, 403);
    world.token = "no token".to_owned();
    assert_eq!(world.call("POST", &world.adapter(), "").await.0, 401);
}

// What lcextension 1.1.10 does with its own token: an installation key, and a record of hive `cloud_sensor`.
#[tokio::test]
async fn an_adapter_that_the_sdk_makes_by_itself_takes_events() {
    let world = World::new().await;
    let oid = world.oid.clone();
    let form = "tags=lc:system&tags=ext:ext-demo&desc=ext+ext-demo+webhook+adapter&use_public_root_ca=false";
    let keys = format!("/v1/installationkeys/{oid}");
    let made = world.ok("POST", &keys, form).await;
    let iid = made["iid"].as_str().unwrap();
    let data = json!({"sensor_type": "webhook", "webhook": {"secret": "s3cret", "client_options": {
        "hostname": NAME, "identity": {"oid": oid, "installation_key": iid}, "platform": "json",
        "sensor_seed_key": NAME, "mapping": {}}}});
    let body = json!({"data": data, "usr_mtd": {"enabled": true, "tags": ["lc:system"]}});
    world.ok("POST", &format!("/v1/hive/cloud_sensor/{oid}/{NAME}/data"), &body.to_string()).await;
    let urls = world.ok("GET", &format!("/v1/orgs/{oid}/url"), "").await;
    let hooks = urls["url"]["hooks"].as_str().unwrap();
    let path = hooks.strip_prefix("127.0.0.1:8080").unwrap();
    let posted = world.hook(&format!("{path}/{oid}/{NAME}/s3cret"), &[], b"{\"n\":1}").await;
    assert_eq!(posted.0, 200);
    let page = world.ok("GET", &format!("/v1/orgs/{oid}/events"), "").await;
    assert_eq!(page["events"][0]["routing"]["tags"], json!(["lc:system", "ext:ext-demo"]));

    assert_eq!(world.ok("GET", &format!("{keys}/{iid}"), "").await["iid"], iid);
    world.ok("DELETE", &keys, &format!("iid={iid}")).await;
    let (status, gone) = world.call("DELETE", &keys, &format!("iid={iid}")).await;
    assert_eq!(status, 400);
    assert!(gone["error"].as_str().unwrap().contains("RECORD_NOT_FOUND"));
    assert_eq!(world.ok("GET", &keys, "").await, json!({&oid: {}}));
}

#[tokio::test]
async fn events_are_searched_by_type_and_time() {
    let world = World::new().await;
    let made = world.ok("POST", &world.adapter(), "").await;
    let hook = made["url"].as_str().unwrap().strip_prefix("http://127.0.0.1:8080").unwrap();
    let body = b"{\"event_type\":\"A\",\"n\":1}\n{\"event_type\":\"B\",\"n\":2}\n";
    assert_eq!(world.hook(hook, &[], body).await.1["events"], 2);
    let a = json!({"event_type": "A", "n": 1});
    let b = json!({"event_type": "B", "n": 2});
    assert_eq!(world.events("").await, [b.clone(), a.clone()]);
    assert_eq!(world.events("order=asc").await, [a.clone(), b.clone()]);
    assert_eq!(world.events("type=A").await, [a]);
    assert_eq!(world.events("limit=1").await, [b]);
    assert_eq!(world.events("from=1700000001").await, Vec::<Value>::new());
    assert_eq!(world.events("to=2023-11-14T22:13:20Z").await, Vec::<Value>::new());
    assert_eq!(world.events("from=1700000000&to=1700000001").await.len(), 2);
    for query in ["limit=0", "limit=1001", "limit=x", "from=x", "to=x", "order=x", "cursor=x"] {
        let path = format!("/v1/orgs/{}/events?{query}", world.oid);
        assert_eq!(world.call("GET", &path, "").await.0, 400, "{query}");
    }
}

// LC-127, LC-140.
#[tokio::test]
async fn a_rule_that_is_stored_calls_the_extension_for_a_matched_event() {
    let world = World::new().await;
    let made = world.ok("POST", &world.adapter(), "").await;
    let hook = made["url"].as_str().unwrap().strip_prefix("http://127.0.0.1:8080").unwrap();
    let rule = json!({"detect": {"event": "LOGIN", "op": "is", "path": "event/user", "value": "root"},
        "respond": [{"action": "extension request", "extension name": NAME,
            "extension action": "scan", "extension request": {"user": "event.user"}}]});
    let path = format!("/v1/hive/dr-general/{}/r/data", world.oid);
    let record = json!({"data": rule, "usr_mtd": {"enabled": true}}).to_string();
    world.ok("POST", &path, &record).await;
    let bad = record.replace("\"is\"", "\"resembles\"");
    let (status, refused) = world.call("POST", &path, &bad).await;
    assert_eq!(status, 400);
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains("detect.op: unknown operator resembles"), "{text}");

    world.hook(hook, &[], br#"{"event_type":"LOGIN","user":"guest"}"#).await;
    assert_eq!(world.store.take_sent().len(), 0);
    world.hook(hook, &[], br#"{"event_type":"LOGIN","user":"root"}"#).await;
    let sent = world.store.take_sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].body.contains(r#""DR:dr-general.r""#), "{}", sent[0].body);
    assert!(sent[0].body.contains(r#"{"user":"root"}"#), "{}", sent[0].body);
}
