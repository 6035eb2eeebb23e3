//! An endpoint of the Lambda runtime for one function: hands over one event at a time, and takes what comes of it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;

/// What a function did with an event, or at its start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It answered.
    Answered(Value),
    /// It reported an error.
    Failed(Value),
    /// It could not start.
    NotStarted(Value),
}

/// A running endpoint; ends when dropped.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    events: mpsc::UnboundedSender<String>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
    server: AbortHandle,
}

struct Shared {
    events: Mutex<mpsc::UnboundedReceiver<String>>,
    outcomes: mpsc::UnboundedSender<Outcome>,
}

impl Endpoint {
    /// Starts one on a free port.
    pub(crate) async fn start() -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        let (told, outcomes) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { events: Mutex::new(waiting), outcomes: told });
        let app = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{what}", post(ended))
            .route("/2018-06-01/runtime/init/error", post(not_started))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move { axum::serve(listener, app).await.unwrap() };
        let server = tokio::spawn(serve).abort_handle();
        Self { address, events, outcomes, server }
    }

    /// Hands over an event, and waits for what comes of it.
    pub(crate) async fn invoke(&mut self, event: String) -> Outcome {
        self.events.send(event).unwrap();
        self.outcomes.recv().await.unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> (HeaderMap, String) {
    let event = shared.events.lock().await.recv().await;
    let headers = [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd"),
        ("lambda-runtime-deadline-ms", "4102444800000"),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-west-1:123456789012:function:f"),
    ];
    let header = |(name, value): (&'static str, &'static str)| {
        (name.parse().unwrap(), value.parse().unwrap())
    };
    (headers.map(header).into_iter().collect(), event.unwrap_or_default())
}

async fn ended(
    State(shared): State<Arc<Shared>>,
    Path((_, what)): Path<(String, String)>,
    body: Bytes,
) -> StatusCode {
    let value = serde_json::from_slice(&body).unwrap();
    let outcome = if what == "response" { Outcome::Answered } else { Outcome::Failed };
    shared.outcomes.send(outcome(value)).unwrap();
    StatusCode::ACCEPTED
}

async fn not_started(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    let value = serde_json::from_slice(&body).unwrap();
    shared.outcomes.send(Outcome::NotStarted(value)).unwrap();
    StatusCode::ACCEPTED
}
