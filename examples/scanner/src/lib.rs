//! A sample webhook extension: it answers, continues later, meters what it did, and fails on purpose.
//!
//! It is meant to be copied. An extension is an HTTP service with one route, `POST /`, that does four things:
//!
//! 1. [`signature`]: decompresses the body, with a bound, and checks that Annex signed it.
//! 2. [`message`]: reads which of the six kinds of message it is.
//! 3. [`actions`], [`schema`], [`events`]: does what is asked.
//! 4. [`answer`]: says what came of it, and with its status whether a retry can help.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

pub mod actions;
pub mod answer;
pub mod events;
pub mod message;
pub mod schema;
pub mod signature;

use actions::Actions;
use answer::Answer;
use message::{Kind, Message};
use signature::Signature;

/// The extension: what it must know for a call.
struct Scanner {
    signature: Signature,
    actions: Actions,
}

/// The extension's one route, for this shared secret.
pub fn router(secret: &str) -> Router {
    let scanner =
        Scanner { signature: Signature::new(secret.as_bytes()), actions: Actions::default() };
    Router::new()
        .route("/", post(webhook))
        // Without a bound, anybody who can reach the port could fill the memory: the signature is
        // checked after the body was read.
        .layer(DefaultBodyLimit::max(signature::WIRE_BYTES_MAX))
        .with_state(Arc::new(scanner))
}

/// Serves the extension on `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, secret: &str) -> io::Result<()> {
    let listener = listener.tap_io(|tcp| {
        // Answers are small: waiting to fill a packet only adds latency.
        let _ = tcp.set_nodelay(true);
    });
    axum::serve(listener, router(secret)).await
}

/// Receives one message.
async fn webhook(State(scanner): State<Arc<Scanner>>, headers: HeaderMap, body: Bytes) -> Answer {
    let json = match scanner.signature.open(&headers, &body) {
        Ok(json) => json,
        Err(refused) => return refused,
    };
    let mut message: Message<'_> = match serde_json::from_slice(&json) {
        Ok(message) => message,
        Err(error) => return Answer::bad_request(format!("invalid json body: {error}")),
    };
    match message.kind() {
        Some(Kind::Heartbeat) => Answer::ok(),
        Some(Kind::Schema) => Answer::data(schema::schema()),
        Some(Kind::Event(event)) => events::handle(&event),
        Some(Kind::Request(request)) => scanner.actions.run(&message.idempotency_key, &request),
        Some(Kind::Config(config)) => schema::validate(&config.conf),
        Some(Kind::Error(report)) => {
            // What Annex could not do for us, such as a continuation past a limit: for our own log.
            eprintln!("error report for {}: {}", report.oid, report.error);
            Answer::ok()
        }
        None => Answer::bad_request("no data in request"),
    }
}

#[cfg(test)]
mod tests;
