//! A scene: a world with an organization, partners on its locks, and requests as they send them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use annex_core::ports::Clock as _;
use serde_json::{Value, json};

use super::manifests;
use super::partners::{Partners, url};
use crate::harness::Backend;
use crate::harness::bindings::Bindings;
use crate::harness::door::{Call, Reply};
use crate::harness::process::{Process, Processes};
use crate::harness::world::World;

/// The id of the organization of a scene.
pub(crate) const ORG: &str = "000000a0-0000-4000-8000-000000000000";

/// The lock on which most happens.
pub(crate) const LOCK: &str = "l1";

/// A world with partners.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) partners: Arc<Partners>,
    /// Developer tokens by slug.
    pub(crate) tokens: HashMap<String, String>,
    /// Ids of sessions by slug and lock.
    pub(crate) sessions: HashMap<(String, String), String>,
}

/// How a partner is registered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered {
    pub(crate) has_url: bool,
    pub(crate) has_credentials: bool,
    pub(crate) platform_owned: bool,
}

impl Registered {
    /// With an endpoint and credentials, as a partner.
    pub(crate) const USUAL: Self =
        Self { has_url: true, has_credentials: true, platform_owned: false };
}

impl Scene {
    /// A world with an organization and nobody else.
    pub(crate) async fn empty(backend: Backend, processes: Processes) -> Self {
        let world = World::new(backend, processes).await;
        let partners = world.partners.clone();
        let (tokens, sessions) = (HashMap::new(), HashMap::new());
        let mut scene = Self { world, partners, tokens, sessions };
        scene.found("A", ORG).await;
        scene
    }

    /// Makes an organization.
    pub(crate) async fn found(&mut self, name: &str, oid: &str) {
        self.world.bindings.set(name, oid);
        let token = self.world.token("operator", name).await.expect("the operator signs in");
        let call = Call::new("POST", "/v1/orgs/new").token(token);
        let call = call.form([("name", name), ("oid", oid)]);
        self.world.done(call).await.expect("an organization is made");
    }

    /// The extensions `a` and `b`, with the manifests of [`manifests`], both on [`LOCK`]; what they were told of that is
    /// forgotten.
    pub(crate) async fn new(backend: Backend) -> Self {
        Self::on(backend, Processes::One).await
    }

    /// The same on these processes.
    pub(crate) async fn on(backend: Backend, processes: Processes) -> Self {
        let mut scene = Self::empty(backend, processes).await;
        scene.join("a", &manifests::caller("a")).await;
        scene.join("b", &manifests::target("b")).await;
        scene.install("a", LOCK).await;
        scene.install("b", LOCK).await;
        scene.calm().await;
        scene
    }

    /// Registers a partner and sends its manifest.
    pub(crate) async fn join(&mut self, slug: &str, manifest: &Value) {
        self.register(slug, Registered::USUAL).await;
        self.sync(slug, manifest).await;
    }

    /// Registers a partner.
    pub(crate) async fn register(&mut self, slug: &str, how: Registered) {
        let mut body = json!({ "contract": "chaster", "name": slug });
        if how.has_url {
            body["url"] = json!(url(slug));
        }
        if how.has_credentials {
            body["webhook"] = json!({ "username": slug, "password": password(slug) });
        }
        if how.platform_owned {
            body["platform_owned"] = json!(true);
        }
        let reply = self.operator("POST", "/v1/extension/definition", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let token = reply.body["developer_token"].as_str().expect("a token is shown once");
        self.tokens.insert(slug.to_owned(), token.to_owned());
        let password = password(slug);
        self.partners.move_in(slug, how.has_credentials.then_some((slug, &password)));
    }

    /// Sends a manifest, which is accepted.
    pub(crate) async fn sync(&mut self, slug: &str, manifest: &Value) {
        let mut body = manifest.clone();
        body["slug"] = json!(slug);
        let reply = self.send_manifest(slug, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Sends a manifest.
    pub(crate) async fn send_manifest(&self, slug: &str, manifest: &Value) -> Reply {
        let call = Call::new("PUT", "/api/extensions/manifest").token(&self.tokens[slug]);
        self.world.send(call.json(manifest)).await
    }

    /// Installs a partner on a lock.
    pub(crate) async fn install(&mut self, slug: &str, lock: &str) -> String {
        self.install_as(lock, json!({ "extension": slug })).await
    }

    /// Installs a partner with this body.
    pub(crate) async fn install_as(&mut self, lock: &str, body: Value) -> String {
        let reply = self.org("POST", &format!("{lock}/sessions"), Some(&body)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        let id = reply.body["sessionId"].as_str().expect("a session has an id").to_owned();
        assert_eq!(reply.body, json!({ "sessionId": id, "lockId": lock }));
        let slug = body["extension"].as_str().expect("an extension is named").to_owned();
        self.sessions.insert((slug, lock.to_owned()), id.clone());
        id
    }

    /// Everything that is on its way arrives; what arrived is forgotten, and the next minute begins.
    pub(crate) async fn calm(&mut self) {
        self.settle().await;
        self.partners.take();
        self.next_minute();
    }

    /// Everything that is on its way arrives.
    pub(crate) async fn settle(&mut self) {
        self.world.settle().await.expect("the queues run empty");
    }

    /// Everything that comes due within so many seconds happens.
    pub(crate) async fn wait(&mut self, secs: u64) {
        let until = self.world.clock.steady().plus(Duration::from_secs(secs));
        self.world.run_until(until).await.expect("the queues are worked on");
    }

    /// So many milliseconds pass, and nothing is delivered meanwhile.
    pub(crate) fn pass_millis(&self, millis: u64) {
        self.world.clock.advance(Duration::from_millis(millis));
    }

    /// So many seconds pass, and nothing is delivered meanwhile.
    pub(crate) fn pass(&self, secs: u64) {
        self.pass_millis(secs * 1000);
    }

    /// The next whole minute begins.
    pub(crate) fn next_minute(&self) {
        let into = self.world.clock.now().millis().rem_euclid(60_000);
        self.pass_millis(60_000 - into.unsigned_abs());
    }

    /// Another process over the same backend.
    pub(crate) fn another(&self) -> Process {
        self.world.site.start()
    }

    /// The path below a session of a partner.
    pub(crate) fn path(&self, slug: &str, lock: &str, rest: &str) -> String {
        let session = &self.sessions[&(slug.to_owned(), lock.to_owned())];
        format!("/api/extensions/sessions/{session}{rest}")
    }

    /// A request of a partner about its session on [`LOCK`].
    pub(crate) fn request(&self, slug: &str, what: &str, body: &Value) -> Call {
        self.request_on(LOCK, slug, what, body)
    }

    /// The same on another lock. `what` is `METHOD /rest of the path`.
    pub(crate) fn request_on(&self, lock: &str, slug: &str, what: &str, body: &Value) -> Call {
        let (method, rest) = what.split_once(' ').expect("a request is METHOD /path");
        let call = Call::new(method, &self.path(slug, lock, rest)).token(&self.tokens[slug]);
        if method == "GET" { call } else { call.json(body) }
    }

    /// Sends a request of a partner about its session on [`LOCK`].
    pub(crate) async fn ask(&self, slug: &str, what: &str, body: &Value) -> Reply {
        self.world.send(self.request(slug, what, body)).await
    }

    /// The same on another lock.
    pub(crate) async fn ask_on(&self, lock: &str, slug: &str, what: &str, body: &Value) -> Reply {
        self.world.send(self.request_on(lock, slug, what, body)).await
    }

    /// A partner calls a command on [`LOCK`].
    pub(crate) async fn command(&self, slug: &str, id: &str, body: Value) -> Reply {
        self.ask(slug, &format!("POST /commands/{id}"), &body).await
    }

    /// A partner calls a query on [`LOCK`].
    pub(crate) async fn query(&self, slug: &str, id: &str, body: Value) -> Reply {
        self.ask(slug, &format!("POST /queries/{id}"), &body).await
    }

    /// A partner emits an event on [`LOCK`].
    pub(crate) async fn emit(&self, slug: &str, body: Value) -> Reply {
        self.ask(slug, "POST /events", &body).await
    }

    /// A partner asks for choices on [`LOCK`].
    pub(crate) async fn options(&self, slug: &str, body: Value) -> Reply {
        self.ask(slug, "POST /options", &body).await
    }

    /// The wearer or the keyholder of [`LOCK`] calls.
    pub(crate) async fn person(&mut self, who: &str, what: &str, body: Value) -> Reply {
        self.org("POST", &format!("{LOCK}/{who}/{what}"), Some(&body)).await
    }

    /// A request of the organization about a lock.
    pub(crate) async fn org(&mut self, method: &str, rest: &str, body: Option<&Value>) -> Reply {
        self.org_as(("A", ORG), method, rest, body).await
    }

    /// A request of an organization about a lock.
    pub(crate) async fn org_as(
        &mut self,
        (name, oid): (&str, &str),
        method: &str,
        rest: &str,
        body: Option<&Value>,
    ) -> Reply {
        let token = self.world.token("user", name).await.expect("a user signs in");
        let path = format!("/v1/orgs/{oid}/scopes/lock/{rest}");
        let call = Call::new(method, &path).token(token);
        let call = if let Some(body) = body { call.json(body) } else { call };
        self.world.send(call).await
    }

    /// A request of the operator.
    pub(crate) async fn operator(&mut self, method: &str, path: &str, body: &Value) -> Reply {
        let token = self.world.token("operator", "A").await.expect("the operator signs in");
        self.world.send(Call::new(method, path).token(token).json(body)).await
    }

    /// The visible lines of [`LOCK`] of a type, newest first.
    pub(crate) async fn lines(&self, slug: &str, kind: &str) -> Vec<Value> {
        let reply = self.ask(slug, "POST /logs/search", &json!({ "limit": 100 })).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let lines = reply.body["results"].as_array().cloned().unwrap_or_default();
        lines.into_iter().filter(|line| line["type"] == kind).collect()
    }

    /// Begins a request that another waits beside.
    pub(crate) fn begin(&self, call: Call) -> tokio::task::JoinHandle<Reply> {
        let router = self.world.process.router().clone();
        tokio::spawn(async move { call.send(&router).await })
    }
}

/// The password of a partner.
pub(crate) fn password(slug: &str) -> String {
    format!("{slug}-password-0123456789")
}

/// Compares a whole answer, `Retry-After` included: it stands there where the body says how long to wait. Answers what
/// the names in the expected body stand for.
#[track_caller]
pub(crate) fn check(reply: &Reply, status: u16, body: Value) -> Bindings {
    assert_eq!(reply.status, status, "{}", reply.body);
    let mut bindings = Bindings::default();
    if let Err(error) = bindings.check(&body, &reply.body, "answer") {
        panic!("{error}\n  in {}", reply.body);
    }
    let found = reply.headers.get("retry-after").and_then(|value| value.to_str().ok());
    let seconds = body["details"]["retryAfterSeconds"].as_u64().map(|secs| secs.to_string());
    assert_eq!(found, seconds.as_deref(), "Retry-After");
    bindings
}

/// Compares a whole refusal without details.
#[track_caller]
pub(crate) fn refused(reply: &Reply, status: u16, code: &str) {
    check(reply, status, json!({ "statusCode": status, "code": code, "message": code }));
}

/// Compares a whole refusal with details.
#[track_caller]
pub(crate) fn refused_with(reply: &Reply, status: u16, code: &str, details: Value) {
    let body = json!({ "statusCode": status, "code": code, "message": code, "details": details });
    check(reply, status, body);
}

/// Compares a whole refusal for a rate.
#[track_caller]
pub(crate) fn limited(reply: &Reply, bucket: &str, seconds: u64) {
    let details = json!({ "bucket": bucket, "retryAfterSeconds": seconds });
    refused_with(reply, 429, "rate-limited", details);
}

/// The record of a call of `b.run` by `a`, that succeeded at once, with these members changed, and those that are null
/// taken away.
pub(crate) fn record(changes: Value) -> Value {
    let usual = json!({
        "id": "${id}", "sessionId": "${session}", "lockId": LOCK, "capability": "b.run",
        "caller": { "type": "extension", "slug": "a" }, "actor": "extension",
        "status": "succeeded", "output": {}, "correlationId": "${id}", "depth": 1,
        "createdAt": "${time}", "finishedAt": "${time}", "durationMs": 0,
    });
    changed(usual, changes)
}

/// The record of a call of `b.run` by `a` that failed.
pub(crate) fn failed(code: &str, message: &str) -> Value {
    let error = json!({ "code": code, "message": message });
    record(json!({ "status": "failed", "output": null, "error": error }))
}

/// An object with some members changed, and those that are null taken away.
pub(crate) fn changed(mut usual: Value, changes: Value) -> Value {
    let members = usual.as_object_mut().expect("a record is an object");
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(&name);
        } else {
            members.insert(name, value);
        }
    }
    usual
}
