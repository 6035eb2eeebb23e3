//! A deployment beside the emulator: five warm processes over one account, on a clock that is set by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use annex_aws::tap::{Seen, Sent, Tap};
use annex_aws::testing::{ROOT_KEY, Sandbox};
use annex_core::call::Launcher;
use annex_core::limits::{QUEUE_BATCH_MAX, TELEMETRY_RETENTION};
use annex_core::ports::{Clock as _, Handler, Message, QueueName};
use annex_core::telemetry::Telemetry;
use annex_core::testkit::{Inline, ManualClock, SeededIds};
use annex_core::time::Timestamp;
use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use crate::process::{Invoke, Maker, Process};
use crate::receiver::Receiver;

/// Far ahead of the emulator's own clock, so that its TTL removes nothing; and no round number, which would be short.
const START: Timestamp = Timestamp::from_millis(4_102_531_512_347);

/// The organization that calls.
pub(crate) const OID: &str = "8cbe27f4-5b3a-4c1d-9e8f-138cd51389cd";

/// The extension that it calls.
pub(crate) const EXTENSION: &str = "scanner";

/// A message that waits.
#[derive(Debug, Clone)]
struct Waiting {
    due: Timestamp,
    queue: QueueName,
    body: String,
}

/// A message that a scenario sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caused {
    /// When it comes due, and in which queue.
    pub(crate) due: (Timestamp, &'static str),
    /// The bytes of its body.
    pub(crate) bytes: usize,
}

/// What was seen of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Requests to the services.
    pub(crate) seen: Vec<Seen>,
    /// Messages that they sent.
    pub(crate) caused: Vec<Caused>,
    /// Requests that came in by HTTP.
    pub(crate) http: u64,
    /// Invocations of dispatch by the HTTP entry, and of the schedule.
    pub(crate) invocations: u64,
}

/// A deployment.
pub(crate) struct Stack {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tap: Tap,
    pub(crate) sandbox: Sandbox,
    pub(crate) router: Router,
    pub(crate) resume: Arc<Process>,
    pub(crate) daily: Arc<Process>,
    api: Arc<Process>,
    dispatch: Arc<Process>,
    meter: Arc<Process>,
    waiting: Vec<Waiting>,
    observed: Observed,
    invocations: Arc<AtomicU64>,
    hangs: Arc<AtomicBool>,
    hanging: Arc<Semaphore>,
    token: String,
}

impl Stack {
    /// A deployment with one organization that is subscribed to one extension.
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let sandbox = Sandbox::new().await;
        let maker = Maker {
            clock: Arc::new(ManualClock::auto_advancing(START)),
            tap: Tap::new(),
            ids: Arc::new(SeededIds::new(11)),
            receiver: Arc::new(Receiver::default()),
            sandbox,
        };
        let (invocations, hangs) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let hanging = Arc::new(Semaphore::new(0));
        let none: Arc<dyn Launcher> = Arc::new(Inline);
        let dispatch = Arc::new(maker.process(none.clone()).await?);
        let invoke = Invoke {
            dispatch: dispatch.clone(),
            invocations: invocations.clone(),
            hangs: hangs.clone(),
            hanging: hanging.clone(),
        };
        let api = Arc::new(maker.process(Arc::new(invoke)).await?);
        let [resume, meter, daily] = [
            maker.process(none.clone()).await?,
            maker.process(none.clone()).await?,
            maker.process(none).await?,
        ]
        .map(Arc::new);
        let ports = api.calls.ports().clone();
        let router = api::router(api::App {
            telemetry: Telemetry::new(ports.clone(), api.calls.clone(), TELEMETRY_RETENTION),
            ports,
            calls: api.calls.clone(),
            settings: Arc::new(api::Settings { public_url: "https://api.example.com".to_owned() }),
        });
        let mut stack = Self {
            clock: maker.clock,
            tap: maker.tap,
            sandbox: maker.sandbox,
            router,
            resume,
            daily,
            api,
            dispatch,
            meter,
            waiting: Vec::new(),
            observed: Observed::default(),
            invocations,
            hangs,
            hanging,
            token: String::new(),
        };
        stack.set_up().await?;
        Ok(stack)
    }

    async fn set_up(&mut self) -> anyhow::Result<()> {
        let root = [("secret", ROOT_KEY)];
        self.token = self.sign_in(&[("oid", "-"), root[0]]).await?;
        let definition = serde_json::json!({
            "name": EXTENSION, "url": "https://scanner.example.com/hook",
            "secret": "scanner-shared-secret-0123456789abcdef", "permissions": ["sensor.get"],
        });
        self.done("/v1/extension/definition", definition.to_string(), "application/json").await?;
        self.done("/v1/orgs/new", form(&[("name", "acme"), ("oid", OID)]), FORM).await?;
        self.token = self.sign_in(&[("oid", OID), ("uid", "user@example.com"), root[0]]).await?;
        let path = format!("/v1/orgs/{OID}/subscription/extension/{EXTENSION}");
        self.done(&path, String::new(), FORM).await?;
        self.settle().await?;
        // Every process has seen the extension a moment ago, and the organization's install.
        self.call("scan", None).await?;
        self.settle().await?;
        self.observe();
        Ok(())
    }

    async fn sign_in(&mut self, fields: &[(&str, &str)]) -> anyhow::Result<String> {
        let (status, body) = self.post("/jwt", form(fields), FORM, &[]).await?;
        let token = body["jwt"].as_str().map(str::to_owned);
        token.with_context(|| format!("signing in answers {status}: {body}"))
    }

    /// A token of the operator.
    pub(crate) async fn operator(&mut self) -> anyhow::Result<String> {
        self.sign_in(&[("oid", "-"), ("secret", ROOT_KEY)]).await
    }

    /// The token of somebody in the organization.
    pub(crate) fn user(&self) -> String {
        self.token.clone()
    }

    /// A request of JSON, whatever comes of it.
    pub(crate) async fn send_json(
        &mut self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<(StatusCode, Value)> {
        self.observed.http += 1;
        self.api.fresh().await;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        send(&self.router, request.body(Body::from(body.to_string()))?).await
    }

    /// A request of JSON that must succeed.
    pub(crate) async fn json(
        &mut self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let (status, answer) = self.send_json(token, method, path, body).await?;
        if !status.is_success() {
            bail!("{path} answers {status}: {answer}");
        }
        Ok(answer)
    }

    async fn done(&mut self, path: &str, body: String, kind: &str) -> anyhow::Result<()> {
        let (status, answer) = self.post(path, body, kind, &[]).await?;
        if !status.is_success() {
            bail!("{path} answers {status}: {answer}");
        }
        Ok(())
    }

    async fn post(
        &mut self,
        path: &str,
        body: String,
        kind: &str,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<(StatusCode, Value)> {
        self.observed.http += 1;
        self.api.fresh().await;
        let mut request = Request::post(path).header("content-type", kind);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&self.router, request.body(Body::from(body))?).await
    }

    /// Calls an action of the extension, and answers what the caller gets.
    pub(crate) async fn call(
        &mut self,
        action: &str,
        key: Option<&str>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let data = r#"{"url":"https://example.com/a/page"}"#;
        self.call_with(action, data, key).await
    }

    /// The same with other data.
    pub(crate) async fn call_with(
        &mut self,
        action: &str,
        data: &str,
        key: Option<&str>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let headers: Vec<(&str, &str)> =
            key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let body = form(&[("oid", OID), ("action", action), ("data", data)]);
        self.post(&format!("/v1/extension/request/{EXTENSION}"), body, FORM, &headers).await
    }

    /// Requests like those of [`Self::call`] that go on by themselves and never end.
    pub(crate) fn hang(&self, count: usize) -> Vec<tokio::task::JoinHandle<()>> {
        self.hangs.store(true, Ordering::Relaxed);
        let one = |_| {
            let data = r#"{"url":"https://example.com/a/page"}"#;
            let body = form(&[("oid", OID), ("action", "scan"), ("data", data)]);
            let request = Request::post(format!("/v1/extension/request/{EXTENSION}"))
                .header("content-type", FORM)
                .header("authorization", format!("Bearer {}", self.token))
                .body(Body::from(body));
            let router = self.router.clone();
            tokio::spawn(async move {
                let request = request.expect("it is a request");
                let _never = send(&router, request).await;
            })
        };
        (0..count).map(one).collect()
    }

    /// Waits until so many of them are claimed, and goes on as before.
    pub(crate) async fn until_all_hang(&self, count: usize) {
        let count = u32::try_from(count).expect("there are few");
        let all = self.hanging.acquire_many(count).await.expect("nobody closes it");
        all.forget();
        self.hangs.store(false, Ordering::Relaxed);
    }

    /// Takes the requests that were made since the last look, and puts the messages in them in line.
    fn look(&mut self) {
        for seen in self.tap.take_seen() {
            for sent in &seen.sent {
                let waiting = self.waiting(sent);
                let due = (waiting.due, waiting.queue.name());
                self.observed.caused.push(Caused { due, bytes: sent.body.len() });
                self.waiting.push(waiting);
            }
            self.observed.seen.push(seen);
        }
    }

    fn waiting(&self, sent: &Sent) -> Waiting {
        let all = [QueueName::Dispatch, QueueName::Resume, QueueName::Meter];
        let is = |queue: &QueueName| {
            self.sandbox.queues.get(*queue).is_some_and(|known| known.url == sent.queue_url)
        };
        let queue = all.into_iter().find(is).expect("messages go to queues of the stack");
        let due = self.clock.steady().plus(Duration::from_secs(sent.delay_secs));
        Waiting { due, queue, body: sent.body.clone() }
    }

    /// What was observed since the last call.
    pub(crate) fn observe(&mut self) -> Observed {
        self.look();
        self.observed.invocations += self.invocations.swap(0, Ordering::Relaxed);
        std::mem::take(&mut self.observed)
    }

    /// Counts an invocation that no message and no HTTP request made.
    pub(crate) fn invoked(&mut self) {
        self.observed.invocations += 1;
    }

    /// Messages in the queues.
    pub(crate) fn messages(&mut self) -> usize {
        self.look();
        self.waiting.len()
    }

    /// Forgets the messages in the queues.
    pub(crate) fn purge(&mut self) {
        self.look();
        self.waiting.clear();
    }

    /// Works on the batch that comes due next, and moves the clock there. `false`: there is none.
    pub(crate) async fn step(&mut self) -> anyhow::Result<bool> {
        self.look();
        // In the order in which they were sent, as far as they come due together.
        self.waiting.sort_by_key(|message| message.due);
        let Some(first) = self.waiting.first().cloned() else { return Ok(false) };
        let is_of_it = |message: &Waiting| message.due == first.due && message.queue == first.queue;
        let mut batch = Vec::new();
        let mut rest = Vec::new();
        for message in std::mem::take(&mut self.waiting) {
            if is_of_it(&message) && batch.len() < QUEUE_BATCH_MAX {
                let id = batch.len().to_string();
                batch.push(Message { id, body: message.body, receives: 1 });
            } else {
                rest.push(message);
            }
        }
        self.waiting = rest;
        self.clock.advance(first.due.since(self.clock.steady()));
        let undone = match first.queue {
            QueueName::Dispatch => {
                self.dispatch.fresh().await;
                dispatch::Dispatch::new(self.dispatch.calls.clone()).handle(batch).await
            }
            QueueName::Resume => {
                self.resume.fresh().await;
                resume::Resume::new(self.resume.calls.clone()).handle(batch).await
            }
            QueueName::Meter => meter::Meter::new(self.meter.store.clone()).handle(batch).await,
        };
        match undone.is_empty() {
            true => Ok(true),
            false => bail!("messages of {} come back: {undone:?}", first.queue.name()),
        }
    }

    /// Works until there are no messages.
    pub(crate) async fn settle(&mut self) -> anyhow::Result<()> {
        while self.step().await? {}
        Ok(())
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

async fn send(router: &Router, request: Request<Body>) -> anyhow::Result<(StatusCode, Value)> {
    let response = match router.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}
