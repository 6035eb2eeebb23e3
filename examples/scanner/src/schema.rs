//! What the extension can do, as it tells the platform, which checks every call against it.

use serde_json::{Map, Value, json};

use crate::answer::Answer;

/// Deepest scan that a configuration may ask for.
const DEPTH_MAX: u64 = 10;

/// The answer to a schema request. What is not declared here never reaches the extension.
pub fn schema() -> Value {
    json!({
        "config_schema": {
            "fields": {
                "depth": {
                    "data_type": "integer", "label": "Depth",
                    "description": "How deep to look, from 1 to 10", "default_value": 1,
                },
                "api_key": {
                    "data_type": "secret", "label": "API key",
                    "description": "A reference such as hive://secret/scanner",
                },
            },
            "requirements": [],
        },
        "request_schema": {
            "scan": action("Scan a target", json!({
                "target": { "data_type": "string", "label": "Target", "placeholder": "a host name" },
            }), json!([["target"]])),
            // Only continuations call it: `is_user_facing` hides it from people.
            "scan_page": {
                "is_user_facing": false, "short_description": "The next page of a scan",
                "parameters": { "fields": {
                    "target": { "data_type": "string" },
                    "page": { "data_type": "integer" },
                }, "requirements": [["target"], ["page"]] },
            },
            "echo": action("Answer what was sent", json!({
                "message": { "data_type": "string" },
                "number": { "data_type": "integer" },
                "object": { "data_type": "object" },
            }), json!([])),
            "fail": action("Fail for good", json!({}), json!([])),
            "flaky": action("Fail at first, then answer", json!({}), json!([])),
        },
        "required_events": ["subscribe", "unsubscribe", "update"],
    })
}

fn action(description: &str, fields: Value, requirements: Value) -> Value {
    json!({
        "is_user_facing": true, "short_description": description,
        "parameters": { "fields": fields, "requirements": requirements },
    })
}

/// Whether a configuration may be written: types were checked already, so only what they cannot say is checked here.
pub fn validate(config: &Map<String, Value>) -> Answer {
    match config.get("depth") {
        None => Answer::ok(),
        Some(depth) if depth.as_u64().is_some_and(|d| (1..=DEPTH_MAX).contains(&d)) => Answer::ok(),
        Some(_) => Answer::permanent(format!("depth must be from 1 to {DEPTH_MAX}")),
    }
}
