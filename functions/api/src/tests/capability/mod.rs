//! Capability extensions, from their registration to what they do on locks.

mod definitions;
mod operations;
mod sessions;
mod tenants;

use annex_core::ids::Oid;
use serde_json::{Value, json};

use super::platform::{Answer, Platform};

pub(super) const DEFINITIONS: &str = "/v1/extension/definition";

/// A platform with an organization and its owner.
pub(super) struct Scene {
    pub(super) platform: Platform,
    pub(super) oid: Oid,
    pub(super) owner: String,
}

/// An extension on a lock.
pub(super) struct Installed {
    pub(super) token: String,
    pub(super) session: String,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let platform = Platform::new();
        let (oid, owner) = platform.org().await;
        Self { platform, oid, owner }
    }

    /// Registers a capability extension; its developer token.
    pub(super) async fn register(&self, slug: &str) -> String {
        let body = json!({
            "contract": "chaster", "name": slug, "url": format!("https://{slug}.example/hook"),
            "webhook": {"username": "annex", "password": "p4ssw0rd"},
        });
        let operator = self.platform.operator().await;
        let made = self.platform.json(&operator, "POST", DEFINITIONS, &body.to_string()).await;
        made.ok()["developer_token"].as_str().unwrap().to_owned()
    }

    pub(super) fn lock_path(&self, lock: &str) -> String {
        format!("/v1/orgs/{}/scopes/lock/{lock}", self.oid)
    }

    /// Makes a session; the answer.
    pub(super) async fn session(&self, lock: &str, body: &Value) -> Answer {
        let path = format!("{}/sessions", self.lock_path(lock));
        self.platform.json(&self.owner, "POST", &path, &body.to_string()).await
    }

    /// Registers an extension, and installs it on a lock.
    pub(super) async fn install(&self, slug: &str, lock: &str) -> Installed {
        self.install_as(slug, lock, &json!({"extension": slug})).await
    }

    /// Registers an extension, and installs it with this body.
    pub(super) async fn install_as(&self, slug: &str, lock: &str, body: &Value) -> Installed {
        let token = self.register(slug).await;
        let made = self.session(lock, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let session = made.json()["sessionId"].as_str().unwrap().to_owned();
        Installed { token, session }
    }

    pub(super) async fn patch_lock(&self, lock: &str, body: &Value) -> Answer {
        let path = self.lock_path(lock);
        self.platform.json(&self.owner, "PATCH", &path, &body.to_string()).await
    }

    /// Asks an endpoint of a session of the extension's own.
    pub(super) async fn ask(&self, at: &Installed, method: &str, path: &str, body: &str) -> Answer {
        let path = format!("/api/extensions/sessions/{}{path}", at.session);
        self.platform.json(&at.token, method, &path, body).await
    }

    /// The history of a lock as its organization sees it: types and titles, newest first.
    pub(super) async fn history(&self, lock: &str) -> Vec<(String, String)> {
        let path = format!("{}/history", self.lock_path(lock));
        let found = self.platform.get(&self.owner, &path).await.ok();
        let lines = found["results"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        lines.map(|line| (text(&line["type"]), text(&line["title"]))).collect()
    }
}

/// The status and the code of a refusal, whose body is in the contract's shape (CH-002 to CH-006).
#[track_caller]
pub(super) fn refusal(answer: &Answer) -> (u16, String, Option<Value>) {
    let body = answer.json();
    assert_eq!(body["statusCode"], answer.status.as_u16(), "{answer:?}");
    assert!(body["message"].is_string() && body.get("error").is_none(), "{answer:?}");
    let code = body["code"].as_str().unwrap().to_owned();
    (answer.status.as_u16(), code, body.get("details").cloned())
}

/// The code of a refusal without details.
#[track_caller]
pub(super) fn code(answer: &Answer) -> String {
    let (_, code, details) = refusal(answer);
    assert_eq!(details, None);
    code
}
