//! `dice`: a command with choices, the query behind them, and an event.

use aws_lc_rs::rand;
use serde_json::{Value, json};

use crate::annex::Annex;
use crate::message::{Extension, Failure, Invocation};

/// The sides of the dice that there are; the first unless a caller chooses.
const SIDES: [u64; 3] = [6, 12, 20];

/// The extension.
pub struct Dice {
    /// The platform.
    pub annex: Annex,
}

/// What it declares.
pub fn manifest() -> Value {
    let rolled = json!({
        "type": "object",
        "required": ["value", "sides"],
        "properties": { "value": { "type": "integer" }, "sides": { "type": "integer" } },
    });
    let anybody = json!(["wearer", "keyholder", "extension"]);
    json!({
        "slug": "dice",
        "commands": [{
            "id": "dice.roll",
            "title": "Roll a die",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "sides": {
                        "type": "integer", "minimum": 2, "maximum": 100,
                        "x-chaster-options": { "query": "dice.sides" },
                    },
                },
                "additionalProperties": false,
            },
            "outputSchema": rolled,
            "invocableBy": anybody,
        }],
        "queries": [{
            "id": "dice.sides",
            "title": "Which dice there are",
            "inputSchema": { "type": "object" },
            "invocableBy": anybody,
        }],
        "events": [{ "type": "dice.rolled", "title": "A die was rolled", "payloadSchema": rolled }],
        "subscriptions": [],
    })
}

impl Dice {
    /// The extension with this client.
    pub const fn new(annex: Annex) -> Self {
        Self { annex }
    }

    async fn roll(&self, call: &Invocation) -> Result<Value, Failure> {
        let sides = call.input["sides"].as_u64().unwrap_or(SIDES[0]);
        let rolled = json!({ "value": random(sides)?, "sides": sides });
        let event = json!({
            "type": "dice.rolled",
            "payload": rolled,
            "actor": call.actor,
            // Makes the event the next link of the chain that this call is in.
            "causationId": call.invocation_id,
        });
        let emitted = self.annex.emit(&call.session_id, &event).await;
        emitted.map_err(|error| Failure {
            code: "not-told",
            message: format!("nobody could be told of the roll: {error}"),
            retryable: true,
        })?;
        eprintln!("dice: {} because of {}, depth {}", rolled, call.invocation_id, call.depth);
        Ok(rolled)
    }
}

/// A number from 1 to `sides`.
fn random(sides: u64) -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).map_err(|_| Failure {
        code: "no-randomness",
        message: "the machine gave no random numbers".to_owned(),
        retryable: true,
    })?;
    Ok(u64::from_le_bytes(bytes) % sides.max(1) + 1)
}

impl Extension for Dice {
    async fn invoked(&self, call: &Invocation) -> Result<Value, Failure> {
        match call.capability.as_str() {
            "dice.roll" => self.roll(call).await,
            // A query: it only answers.
            "dice.sides" => {
                let option = |sides| json!({ "value": sides, "label": format!("{sides} sides") });
                Ok(json!({ "options": SIDES.map(option) }))
            }
            other => Err(Failure {
                code: "unknown",
                message: format!("{other} is not known here"),
                retryable: false,
            }),
        }
    }

    async fn told(&self, _event: &str, _data: &Value) {}
}
