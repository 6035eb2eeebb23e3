//! An extension that takes its time, with its schema and then with what was asked: an entry that must have answered by
//! then, as a Lambda function must, waits for both together no longer than for one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annex_core::auth::{Caller, CallerKind};
use annex_core::call::{CallSettings, Calls, Claimed, Launcher, ReplayRequest, Reply};
use annex_core::fault::Code;
use annex_core::ids::{ExtensionName, Oid};
use annex_core::limits::{WAIT_MAX, WAIT_MIN};
use annex_core::ports::{Outage, Outbound, Ports, SendFault, WebhookAnswer, WebhookRequest};
use annex_core::testkit::ManualClock;
use async_trait::async_trait;
use serde_json::Value;

use super::platform::{Extension, Platform, message};

/// How long a schema takes.
const SCHEMA: Duration = Duration::from_secs(6);

/// Answers schema requests, late, and nothing else.
struct Slow {
    clock: Arc<ManualClock>,
    usual: Arc<Extension>,
}

#[async_trait]
impl Outbound for Slow {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        if message(&request).get("schema_request").is_none() {
            std::future::pending::<()>().await;
        }
        self.clock.advance(SCHEMA);
        self.usual.send(request).await
    }
}

/// Notes how long calls are waited for.
#[derive(Default)]
struct Waits(Mutex<Vec<Duration>>);

#[async_trait]
impl Launcher for Waits {
    async fn launch(&self, _: &Calls, _: Claimed, wait: Duration) -> Option<Result<Reply, Outage>> {
        self.0.lock().unwrap().push(wait);
        None
    }
}

/// The calls of another process of the platform, to which its extension is slow.
fn slow(platform: &Platform) -> (Calls, Arc<Waits>) {
    let (clock, usual) = (platform.clock.clone(), platform.extension.clone());
    let ports = Ports { outbound: Arc::new(Slow { clock, usual }), ..platform.app.ports.clone() };
    let waits = Arc::new(Waits::default());
    let settings = CallSettings { check_within: Some(WAIT_MAX), ..CallSettings::default() };
    (Calls::new(ports, waits.clone(), settings), waits)
}

async fn subscribed(platform: &Platform) -> (Oid, String) {
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    (oid, owner)
}

#[tokio::test]
async fn a_configuration_is_checked_in_the_time_that_its_schema_left() {
    let platform = Platform::new();
    let (oid, _) = subscribed(&platform).await;
    let (calls, _) = slow(&platform);
    let ext = ExtensionName::parse("ext").unwrap();
    let began = platform.app.ports.clock.steady();
    let checked = calls.validate_config(oid, &ext, r#"{"api_key":"k"}"#, "i").await;
    assert_eq!(checked.unwrap_err().code, Code::ExtensionFailed);
    assert_eq!(platform.app.ports.clock.steady().since(began), WAIT_MAX);
}

#[tokio::test]
async fn a_replay_is_waited_for_in_the_time_that_its_schema_left() {
    let platform = Platform::new();
    let (oid, owner) = subscribed(&platform).await;
    let oid_text = oid.to_string();
    let form = [("oid", oid_text.as_str()), ("action", "fail")];
    let failed = platform.call(&owner, "POST", "/v1/extension/request/ext", &form).await;
    let id = failed.headers["annex-invocation-id"].to_str().unwrap().to_owned();
    for (asked, waited) in [
        (WAIT_MAX, WAIT_MAX - SCHEMA),
        (WAIT_MAX - SCHEMA, WAIT_MAX - SCHEMA),
        (WAIT_MIN, WAIT_MIN),
    ] {
        let (calls, waits) = slow(&platform);
        let request = ReplayRequest {
            oid,
            id: id.clone(),
            caller: Caller {
                kind: CallerKind::User,
                oid: Some(oid),
                ident: "i".into(),
                permissions: vec!["*".into()],
            },
            impersonator: None,
            idempotency_key: None,
            wait: asked,
            trace: None,
        };
        let Reply::Accepted { body, .. } = calls.replay(request).await.unwrap() else { panic!() };
        let record: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(record["status"], "running");
        assert_eq!(*waits.0.lock().unwrap(), [waited]);
    }
}
