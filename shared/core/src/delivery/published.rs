//! The published webhooks of the vendor's SDKs, as the platform makes them.

use serde_json::{Value, json};

use super::wire::{SIGNATURE_HEADER, Signer};
use crate::chain::{self, Asks};
use crate::ids::Oid;
use crate::profile::LIMACHARLIE;
use crate::telemetry::adapter::webhook_secret;

#[test]
fn the_published_webhooks_are_made_as_they_say() {
    annex_vectors::run("limacharlie", |case| {
        let (input, expected) = (&case["input"], &case["expect"]);
        match case["kind"].as_str() {
            Some("webhook") => signature(input, &expected["signatureValid"]),
            Some("adapter-secret") => adapter_secret(input, &expected["hex"]),
            Some("continuation-key") => continuation(input, expected),
            // How the SDK of an extension hides secrets in what it logs.
            Some("mask-secrets") => Ok(()),
            kind => Err(format!("an unknown kind {kind:?}")),
        }
    });
}

fn signature(input: &Value, valid: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let signer = Signer::new(&text(&input["secret"]).ok_or("no secret")?);
    let (Some(message), Some(given)) =
        (text(&input["message"]), text(&input["headers"][SIGNATURE_HEADER]))
    else {
        return annex_vectors::same("checked", Value::Null, valid);
    };
    annex_vectors::same("valid", signer.sign(message.as_bytes()) == given, valid)
}

fn adapter_secret(input: &Value, expected: &Value) -> Result<(), String> {
    // One case names no organization that could be one.
    let Ok(oid) = Oid::parse(input["oid"].as_str().ok_or("no oid")?) else { return Ok(()) };
    let secret = webhook_secret(input["secretKey"].as_str().ok_or("no secret")?, oid);
    annex_vectors::same("the secret", secret.as_str(), expected)
}

fn continuation(input: &Value, expected: &Value) -> Result<(), String> {
    let level = u32::try_from(input["parentLevel"].as_u64().ok_or("no level")?).expect("it fits");
    let asks: Asks =
        serde_json::from_value(json!([{"in_n_seconds": 0, "action": "a", "state": {}}]))
            .map_err(|error| error.to_string())?;
    let key = input["parentKey"].as_str().ok_or("no key")?;
    let (planned, _) = chain::plan(&LIMACHARLIE, key, level, asks);
    let [planned] = planned.as_slice() else { return Err("not planned".to_owned()) };
    annex_vectors::same("the level", planned.level, &expected["level"])?;
    annex_vectors::same("the key", planned.key.as_str(), &expected["simulatorKey"])
}
