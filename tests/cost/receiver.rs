//! The extension of a stack: it answers at once, and costs nothing.

use std::io::Read as _;
use std::sync::atomic::{AtomicU32, Ordering};

use annex_core::ports::{Outbound, SendFault, WebhookAnswer, WebhookRequest};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

/// Continuations that the action `fan` asks for.
pub(crate) const FAN: usize = 100;

/// The way out of a stack: every URL is the same extension. Its actions:
///
/// - `scan` is answered with a verdict;
/// - `flaky` fails twice and is answered then;
/// - `fan` asks for [`FAN`] continuations, `step` for one, of itself.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    tries: AtomicU32,
}

impl Receiver {
    fn answer(&self, message: &Value) -> (u16, Value) {
        let next = |n: usize| {
            let state = json!({ "scan": "b1946ac92492d234", "part": n, "of": FAN });
            json!({ "in_delay_sec": 0, "action": "step", "state": state })
        };
        let verdict = json!({ "verdict": "clean", "score": 3, "engine": "2026.11" });
        let done = |data: Value, continuations: Vec<Value>| {
            let version = 20_221_218;
            (200, json!({ "version": version, "data": data, "continuations": continuations }))
        };
        if !message["schema_request"].is_null() {
            return (200, json!({ "version": 20_221_218, "data": schema() }));
        }
        match message["request"]["action"].as_str() {
            Some("scan") => done(verdict, Vec::new()),
            Some("flaky") if self.tries.fetch_add(1, Ordering::Relaxed) % 3 < 2 => (503, json!({})),
            Some("flaky") => done(verdict, Vec::new()),
            Some("fan") => done(json!({ "parts": FAN }), (1..=FAN).map(next).collect()),
            Some("step") => done(json!({ "seen": 4096 }), vec![next(1)]),
            _ => done(json!({}), Vec::new()),
        }
    }
}

/// What a capability extension answers.
fn called(message: &Value) -> Value {
    match message["event"].as_str() {
        Some("command.invoked") => json!({ "output": { "rolled": 6 } }),
        Some("query.invoked") => {
            json!({ "output": { "options": [{ "value": "six", "label": "Six" }] } })
        }
        _ => json!({}),
    }
}

fn schema() -> Value {
    let parameters = json!({
        "fields": {
            "url": { "data_type": "url", "description": "what to look at" },
            "depth": { "data_type": "integer", "default_value": 2 },
        },
        "requirements": [["url"]],
    });
    let action = json!({ "short_description": "look", "parameters": parameters });
    json!({
        "config_schema": { "fields": {} },
        "request_schema": { "scan": action, "flaky": action, "fan": action, "step": action },
        "required_events": ["update"],
    })
}

#[async_trait]
impl Outbound for Receiver {
    fn check_url(&self, _url: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        // What goes to capability extensions is not compressed.
        let (status, body) = match serde_json::from_slice::<Value>(&request.body) {
            Ok(message) => (200, called(&message)),
            Err(_) => {
                let mut text = String::new();
                flate2::read::GzDecoder::new(&request.body[..])
                    .read_to_string(&mut text)
                    .map_err(|error| SendFault::Broken(error.to_string()))?;
                self.answer(&serde_json::from_str(&text).unwrap_or(Value::Null))
            }
        };
        Ok(WebhookAnswer { status, retry_after: None, body: Bytes::from(body.to_string()) })
    }
}
