//! Commands between two capability extensions, and the same messages straight to the one that is called.

use anyhow::Context;
use axum::Router;
use axum::routing::post;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::load::{self, Target};
use crate::platform::Platform;
use crate::report::Report;
use crate::{IN_FLIGHT, WARM_UP, added, millis, progress};

/// Commands that are counted.
const CALLS: usize = 20_000;

/// Calls on one lock, warm-up included: fewer than an extension may make within a minute.
const CALLS_PER_LOCK: usize = 100;

/// What the called extension answers.
const ANSWER: &str = r#"{"output":{"message":"a message of some length"}}"#;

/// What the callers look for.
const EXPECTED: &str = "a message of some length";

/// An extension that answers every message.
struct Partner {
    /// `host:port`.
    address: String,
    server: JoinHandle<std::io::Result<()>>,
}

impl Partner {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let answer = || async { ([("content-type", "application/json")], ANSWER) };
        let router = Router::new().route("/", post(answer));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, server })
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Measures.
pub(crate) async fn run(platform: &Platform, report: &mut Report) -> anyhow::Result<()> {
    let partner = Partner::start().await?;
    progress("the extension without Annex");
    let direct = Target {
        address: partner.address.clone(),
        paths: vec!["/".to_owned()],
        headers: vec![("content-type", "application/json".to_owned())],
        body: Bytes::from(r#"{"event":"b.run","data":{},"sentAt":"2026-01-01T00:00:00Z"}"#),
        expected: EXPECTED,
    };
    load::run(&direct, WARM_UP, IN_FLIGHT).await?;
    let (alone, _) = load::run(&direct, WARM_UP, 1).await?;
    let (_, took) = load::run(&direct, CALLS, IN_FLIGHT).await?;
    report.add("command_direct_per_second", CALLS as f64 / took.as_secs_f64(), None);
    let commands = set_up(platform, &partner).await?;
    progress(&format!("{CALLS} commands through Annex, {IN_FLIGHT} in flight"));
    load::run(&commands, WARM_UP, IN_FLIGHT).await?;
    let before = platform.cpu()?;
    let (latencies, took) = load::run(&commands, CALLS, IN_FLIGHT).await?;
    let cpu = platform.cpu()?.saturating_sub(before);
    report.add("commands_per_second", CALLS as f64 / took.as_secs_f64(), None);
    report.add("cpu_ms_per_command", millis(cpu) / CALLS as f64, None);
    added(&latencies, alone.quantile(0.5), "command_added", report);
    Ok(())
}

/// Two extensions on as many locks as the calls need: what `a` sends to have `b` run its command, lock by lock.
async fn set_up(platform: &Platform, partner: &Partner) -> anyhow::Result<Target> {
    let locks = (CALLS + WARM_UP).div_ceil(CALLS_PER_LOCK);
    progress(&format!("two extensions on {locks} locks"));
    let mut token = String::new();
    for slug in ["b", "a"] {
        let definition = json!({
            "contract": "chaster", "name": slug, "url": format!("http://{}/", partner.address),
            "webhook": { "username": slug, "password": "benchmark-password-0123456789" },
        });
        let path = "/v1/extension/definition";
        let made = platform.send_json("POST", path, &platform.operator, &definition).await?;
        token = made["developer_token"].as_str().context("no developer token")?.to_owned();
        let run = json!({
            "id": format!("{slug}.run"), "title": "Run", "invocableBy": ["extension"],
            "inputSchema": { "type": "object", "properties": { "number": { "type": "integer" } } },
        });
        let manifest = json!({ "slug": slug, "commands": [run] });
        platform.send_json("PUT", "/api/extensions/manifest", &token, &manifest).await?;
    }
    let mut paths = Vec::with_capacity(locks);
    for lock in 0..locks {
        let mut session = Value::Null;
        for slug in ["b", "a"] {
            let path = format!("/v1/orgs/{}/scopes/lock/l{lock}/sessions", platform.oid());
            session = platform.post_json(&path, &json!({ "extension": slug })).await?;
        }
        let session = session["sessionId"].as_str().context("no session")?;
        paths.push(format!("/api/extensions/sessions/{session}/commands/b.run"));
    }
    Ok(Target {
        address: platform.address().to_owned(),
        paths,
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("authorization", format!("Bearer {token}")),
        ],
        body: Bytes::from(r#"{"input":{"number":1}}"#),
        expected: EXPECTED,
    })
}
