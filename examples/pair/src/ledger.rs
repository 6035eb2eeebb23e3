//! `ledger`: calls `dice`, and hears of its rolls in both ways there are: as a call of a command, and as a webhook.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::annex::{Annex, Error};
use crate::message::{Extension, Failure, Invocation};

/// The extension.
pub struct Ledger {
    /// The platform.
    pub annex: Annex,
    /// By lock. One that is not a sample keeps them where they survive a restart.
    books: Mutex<HashMap<String, Book>>,
}

/// What was added up on a lock.
#[derive(Default)]
struct Book {
    total: i64,
    /// The events that are in it.
    events: HashSet<String>,
}

/// What it declares.
pub fn manifest() -> Value {
    let rolled = json!({
        "type": "object",
        "required": ["value"],
        "properties": { "value": { "type": "integer" } },
    });
    let added = json!({
        "type": "object",
        "required": ["total"],
        "properties": { "total": { "type": "integer" } },
    });
    json!({
        "slug": "ledger",
        "commands": [{
            "id": "ledger.add",
            "title": "Add a roll",
            "inputSchema": rolled,
            "outputSchema": added,
            "invocableBy": ["extension"],
        }],
        "queries": [],
        "events": [{ "type": "ledger.added", "payloadSchema": added, "hidden": true }],
        "subscriptions": [
            { "type": "dice.rolled", "command": "ledger.add" },
            { "type": "dice.rolled" },
        ],
    })
}

impl Ledger {
    /// The extension with this client.
    pub fn new(annex: Annex) -> Self {
        Self { annex, books: Mutex::default() }
    }

    /// Has a die rolled on the lock of one of the ledger's sessions: the record of that call.
    pub async fn roll(&self, session: &str, sides: Option<u64>) -> Result<Value, Error> {
        let input = sides.map_or_else(|| json!({}), |sides| json!({ "sides": sides }));
        self.annex.call(session, "dice.roll", &json!({ "input": input })).await
    }

    async fn add(&self, call: &Invocation) -> Result<Value, Failure> {
        // An event is delivered at least once. Its id stays the same, and stands here as the cause of the call.
        let event = call.causation_id.clone().unwrap_or_else(|| call.invocation_id.clone());
        let mut books = self.books.lock().await;
        let book = books.entry(call.lock_id.clone()).or_default();
        if book.events.contains(&event) {
            return Ok(json!({ "total": book.total }));
        }
        let value = call.input["value"].as_i64().unwrap_or_default();
        let total = book.total.saturating_add(value);
        let added = json!({ "total": total });
        let emitted = json!({
            "type": "ledger.added",
            "payload": added,
            "causationId": call.invocation_id,
        });
        let told = async {
            self.annex.emit(&call.session_id, &emitted).await?;
            self.annex.log(&call.session_id, &format!("The ledger stands at {total}")).await
        };
        told.await.map_err(|error| Failure {
            code: "not-told",
            message: format!("nobody could be told of the sum: {error}"),
            retryable: true,
        })?;
        book.total = total;
        book.events.insert(event.clone());
        eprintln!("ledger: added {value}, total {total}, because of {event}, depth {}", call.depth);
        Ok(added)
    }
}

impl Extension for Ledger {
    async fn invoked(&self, call: &Invocation) -> Result<Value, Failure> {
        match call.capability.as_str() {
            "ledger.add" => self.add(call).await,
            other => Err(Failure {
                code: "unknown",
                message: format!("{other} is not known here"),
                retryable: false,
            }),
        }
    }

    async fn told(&self, event: &str, data: &Value) {
        if event == "event.emitted" {
            let emitted = &data["event"];
            eprintln!("ledger: told of {} {}", emitted["type"], emitted["id"]);
        }
    }
}
