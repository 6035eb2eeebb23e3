//! Two sample capability extensions in one program: `dice` rolls, `ledger` adds up what was rolled.
//!
//! It is meant to be copied. A capability extension is an HTTP service with one route, and a client of the platform:
//!
//! 1. [`message`]: checks the Basic credentials of a message, and reads what it is.
//! 2. [`annex`]: declares the manifest, calls others, emits events.
//! 3. [`dice`], [`ledger`]: what the two extensions declare and do.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;

pub mod annex;
pub mod cli;
pub mod dice;
pub mod ledger;
pub mod message;

use annex::Annex;
use dice::Dice;
use ledger::Ledger;
use message::{Answer, Credentials, Envelope, Extension};

/// Largest message that is read, in bytes: inputs and payloads have 64 KiB at most, the objects of a session as much each.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The two extensions.
pub struct Pair {
    credentials: Credentials,
    /// The one that rolls.
    pub dice: Dice,
    /// The one that adds up.
    pub ledger: Ledger,
}

impl Pair {
    /// The two extensions, each with the client of its own developer token, and the credentials that both are called with.
    pub fn new(credentials: Credentials, dice: Annex, ledger: Annex) -> Self {
        Self { credentials, dice: Dice::new(dice), ledger: Ledger::new(ledger) }
    }

    /// Tells the platform what the two offer. What is declared again changes nothing.
    pub async fn declare(&self) -> Result<(), annex::Error> {
        self.dice.annex.declare(&dice::manifest()).await?;
        self.ledger.annex.declare(&ledger::manifest()).await
    }

    async fn receive(
        &self,
        extension: &impl Extension,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Answer {
        // First of all: whoever cannot prove who they are learns nothing.
        if !self.credentials.are_in(headers) {
            return Answer::Unauthorized;
        }
        match Envelope::read(body) {
            Ok(Envelope::Invoked(call)) => match extension.invoked(&call).await {
                Ok(output) => Answer::Output(output),
                Err(failure) => Answer::Failed(failure),
            },
            Ok(Envelope::Told { event, data }) => {
                extension.told(&event, &data).await;
                Answer::Taken
            }
            Err(why) => Answer::BadRequest(why),
        }
    }
}

/// The routes of the two: `POST /dice` and `POST /ledger`.
pub fn router(pair: Arc<Pair>) -> Router {
    Router::new()
        .route("/dice", post(dice))
        .route("/ledger", post(ledger))
        // The credentials are checked after the body was read: without a bound, anybody could fill the memory.
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .with_state(pair)
}

async fn dice(State(pair): State<Arc<Pair>>, headers: HeaderMap, body: Bytes) -> Answer {
    pair.receive(&pair.dice, &headers, &body).await
}

async fn ledger(State(pair): State<Arc<Pair>>, headers: HeaderMap, body: Bytes) -> Answer {
    pair.receive(&pair.ledger, &headers, &body).await
}

/// Serves both on `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, pair: Arc<Pair>) -> io::Result<()> {
    axum::serve(listener, router(pair)).await
}

#[cfg(test)]
mod tests;
