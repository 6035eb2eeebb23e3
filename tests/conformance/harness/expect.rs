//! What must be the case: deliveries, errors, usage.
//!
//! An expected delivery names its kind by one member: `request` (an action), `event`, `report` (a text), `validate` (a
//! configuration) or `schema` (true). What it leaves out is what is usual; the whole message is compared.
//! Schema requests are left out unless one is expected. Further members: `to`, `org`, `key`, `ident`, `data`, `data_text` (byte for byte), `config`, `inv_id`, `token` (whose), `at` (seconds
//! since the steps began, or bounds of them), `headers` (all of them).

use annex_core::ports::{Clock as _, Scan};
use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::case::{Case, Deliveries};
use super::door::Call;
use super::extension::{Delivery, token};
use super::world::World;

/// Members of an expected delivery.
const MEMBERS: &[&str] = &[
    "request",
    "event",
    "report",
    "validate",
    "schema",
    "to",
    "org",
    "key",
    "ident",
    "data",
    "data_text",
    "config",
    "inv_id",
    "token",
    "perms",
    "at",
    "headers",
];

impl World {
    /// Compares what was delivered since the last call of this.
    pub(crate) fn check_deliveries(&mut self, expected: &Deliveries) -> Result<(), String> {
        let (found, faults) = self.extensions.take();
        if let Some(fault) = faults.first() {
            return Err(format!("a message that no extension accepts: {fault}"));
        }
        for delivery in &found {
            // LC-031, LC-032, LC-047: of every message, whatever it is. A schema is waited for while a caller waits.
            let is_schema = delivery.message.get("schema_request").is_some();
            let secs = if is_schema { 7 } else { 120 };
            if delivery.timeout.as_secs() != secs || delivery.bytes_max != 100_000_000 {
                return Err("a message was not sent with its limits".to_owned());
            }
        }
        let with_schemas = match expected {
            Deliveries::List(list) => list.iter().any(|one| one.get("schema").is_some()),
            Deliveries::Count(_) | Deliveries::Some(_) => false,
        };
        let found: Vec<Delivery> = found
            .into_iter()
            .filter(|found| with_schemas || found.message.get("schema_request").is_none())
            .collect();
        let text = |d: &Delivery| format!("\n  {:.3} {}", self.since(d.at), brief(d));
        let texts: Vec<String> = found.iter().take(20).map(text).collect();
        match expected {
            Deliveries::Count(count) if *count == found.len() => Ok(()),
            Deliveries::List(list) if list.len() == found.len() => {
                let mut pairs = list.iter().zip(&found).enumerate();
                pairs.try_for_each(|(number, (expected, found))| {
                    let check = self.check_delivery(expected, found);
                    check.map_err(|error| format!("delivery {number}: {error}"))
                })
            }
            Deliveries::Some(some) if some.count == found.len() => {
                some.at.iter().try_for_each(|(number, expected)| {
                    let number: usize = number.parse().map_err(|_| "a place is a number")?;
                    let found = found.get(number).ok_or("there are not so many")?;
                    let check = self.check_delivery(expected, found);
                    check.map_err(|error| format!("delivery {number}: {error}"))
                })
            }
            _ => Err(format!("{} deliveries:{}", found.len(), texts.concat())),
        }
    }

    fn check_delivery(&mut self, expected: &Value, found: &Delivery) -> Result<(), String> {
        let expected = expected.as_object().ok_or("an expected delivery is an object")?;
        if let Some(unknown) = expected.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(format!("unknown member {unknown}"));
        }
        let message = self.expected_message(expected, found)?;
        self.bindings.check(&message, &found.message, "message")?;
        let to = expected.get("to").and_then(Value::as_str).unwrap_or("demo");
        if to != found.to {
            return Err(format!("it went to {}", found.to));
        }
        if let Some(text) = expected.get("data_text").and_then(Value::as_str) {
            let text = format!("\"data\":{text},\"config\"");
            if !found.json.contains(&text) {
                return Err(format!("the data differs: {}", found.json));
            }
        }
        if let Some(headers) = expected.get("headers") {
            let found = json!(found.headers);
            self.bindings.check(headers, &found, "headers")?;
        }
        self.check_token(expected, found)?;
        self.check_time(expected, found)
    }

    /// The whole message that a delivery stands for.
    fn expected_message(
        &self,
        expected: &Map<String, Value>,
        found: &Delivery,
    ) -> Result<Value, String> {
        let text = |name: &str, usual: &str| {
            expected.get(name).and_then(Value::as_str).unwrap_or(usual).to_owned()
        };
        let value = |name: &str| expected.get(name).cloned().unwrap_or_else(|| json!({}));
        let oid = format!("${{{}}}", text("org", "A"));
        let is_update = expected.get("event").is_some_and(|event| event == "update");
        let ident = text("ident", if is_update { "annex" } else { "user@example.com" });
        let org = json!({ "oid": oid, "jwt": "${any}", "ident": ident });
        let data = match expected.contains_key("data_text") {
            // It is compared as text instead.
            true => found.message["request"]["data"].clone(),
            false => value("data"),
        };
        let part = if let Some(action) = expected.get("request") {
            let inv_id = text("inv_id", "");
            json!({ "request": {
                "org": org, "action": action, "data": data, "config": value("config"),
                "resource_state": {}, "inv_id": inv_id,
            }})
        } else if let Some(event) = expected.get("event") {
            json!({ "event": {
                "org": org, "event_name": event, "data": {}, "config": value("config"),
            }})
        } else if let Some(conf) = expected.get("validate") {
            json!({ "conf_validation": { "org": org, "conf": conf } })
        } else if let Some(error) = expected.get("report") {
            json!({ "error_report": { "error": error, "oid": oid } })
        } else if expected.contains_key("schema") {
            json!({ "schema_request": {} })
        } else {
            return Err("an expected delivery says what is delivered".to_owned());
        };
        let mut message = part;
        message["version"] = json!(20_221_218);
        message["idempotency_key"] = json!(text("key", "${any}"));
        Ok(message)
    }

    fn check_token(
        &mut self,
        expected: &Map<String, Value>,
        found: &Delivery,
    ) -> Result<(), String> {
        let Some(token) = token(&found.message) else { return Ok(()) };
        let payload = token.split('.').nth(1).ok_or("a token has three parts")?;
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(payload)
            .map_err(|error| error.to_string())?;
        let claims: Value = serde_json::from_slice(&claims).map_err(|error| error.to_string())?;
        let own = json!(format!("ext:{}", found.to));
        let whose = expected.get("token").unwrap_or(&own);
        self.bindings.check(whose, &claims["sub"], "token")?;
        match expected.get("perms") {
            Some(perms) => self.bindings.check(perms, &claims["perms"], "perms"),
            None => Ok(()),
        }
    }

    fn check_time(&self, expected: &Map<String, Value>, found: &Delivery) -> Result<(), String> {
        let at = self.since(found.at);
        let (least, most) = match expected.get("at") {
            None => return Ok(()),
            Some(Value::Array(bounds)) => (bounds[0].as_f64(), bounds[1].as_f64()),
            Some(exact) => (exact.as_f64(), exact.as_f64()),
        };
        let (least, most) = least.zip(most).ok_or("a time is a number of seconds")?;
        if (least - 0.000_5..=most + 0.000_5).contains(&at) {
            return Ok(());
        }
        Err(format!("it came at {at} s, not at {least} to {most} s"))
    }

    /// What must be so at the end of a case.
    pub(crate) async fn check_end(&mut self, case: &Case) -> Result<(), String> {
        self.check_deliveries(&case.deliveries)?;
        self.check_records(case).await?;
        let Some(bounds) = &case.sleeps else { return Ok(()) };
        let slept: Vec<f64> =
            self.clock.slept()[self.slept..].iter().map(std::time::Duration::as_secs_f64).collect();
        let fits = |(found, bounds): (&f64, &[f64; 2])| (bounds[0]..=bounds[1]).contains(found);
        if slept.len() == bounds.len() && slept.iter().zip(bounds).all(fits) {
            return Ok(());
        }
        Err(format!("it slept {slept:?}"))
    }

    /// Errors, usage and dead letters at the end of a case.
    pub(crate) async fn check_records(&mut self, case: &Case) -> Result<(), String> {
        for org in &case.gone {
            self.check_gone(org).await?;
        }
        for org in case.left() {
            let expected = match &case.errors {
                None => json!([]),
                Some(Value::Object(by_org)) => by_org.get(org).cloned().unwrap_or(json!([])),
                Some(list) if org == "A" => list.clone(),
                Some(_) => json!([]),
            };
            self.check_errors(org, &expected).await?;
        }
        self.check_usage(case).await?;
        if self.dead_letters.len() != case.dead {
            return Err(format!(
                "{} dead letters: {:?}",
                self.dead_letters.len(),
                self.dead_letters
            ));
        }
        Ok(())
    }

    /// Nothing that names an organization is in the store.
    async fn check_gone(&self, org: &str) -> Result<(), String> {
        let oid = self.bindings.fill(&format!("${{{org}}}"));
        for first in 'a'..='z' {
            let mut scan = Scan::prefix(first);
            loop {
                let page = self.process.ports.store.scan(scan.clone()).await;
                let page = page.map_err(|outage| outage.to_string())?;
                for (key, item) in page.items {
                    let data = String::from_utf8_lossy(&item.data);
                    if [&*key.partition, &*key.sort, &*data].iter().any(|text| text.contains(&oid))
                    {
                        return Err(format!("{key:?} is left of {org}: {data}"));
                    }
                }
                match page.next {
                    Some(next) => scan.cursor = Some(next),
                    None => break,
                }
            }
        }
        Ok(())
    }

    async fn check_errors(&mut self, org: &str, expected: &Value) -> Result<(), String> {
        let path = self.bindings.fill(&format!("/v1/errors/${{{org}}}"));
        let token = self.token("user", org).await?;
        let reply = self.send(Call::new("GET", &path).token(token)).await;
        let found = reply.body["errors"].as_array().ok_or_else(|| reply.body.to_string())?;
        let mut expected = expected.as_array().cloned().unwrap_or_default();
        let counted = expected.iter().any(|entry| entry.get(2).is_some());
        let mut found: Vec<Value> = found
            .iter()
            .map(|entry| match counted {
                true => json!([entry["component"], entry["error"], entry["count"]]),
                false => json!([entry["component"], entry["error"]]),
            })
            .collect();
        // Those of one component come in no order that anybody may rely on.
        expected.sort_by_key(Value::to_string);
        found.sort_by_key(Value::to_string);
        let at = format!("errors of {org}");
        self.bindings.check(&Value::Array(expected), &Value::Array(found), &at)
    }

    async fn check_usage(&mut self, case: &Case) -> Result<(), String> {
        // Whatever clock went where, all of it.
        let now = self.clock.now().max(self.clock.steady());
        let (from, to) = (now.secs() - 100 * 86_400, now.secs() + 100 * 86_400);
        for org in case.left() {
            let path = format!("/v1/orgs/${{{org}}}/usage?from={from}&to={to}");
            let path = self.bindings.fill(&path);
            let token = self.token("user", org).await?;
            let reply = self.send(Call::new("GET", &path).token(token)).await;
            let entries = reply.body["usage"].as_array().ok_or_else(|| reply.body.to_string())?;
            let entry =
                |entry: &Value| (entry["sku"].as_str().map(str::to_owned), entry["value"].clone());
            let found: Map<String, Value> =
                entries.iter().map(entry).filter_map(|(sku, value)| Some((sku?, value))).collect();
            let expected = if org == "A" { json!(case.usage) } else { json!({}) };
            self.bindings.check(&expected, &Value::Object(found), &format!("usage of {org}"))?;
        }
        Ok(())
    }
}

fn brief(delivery: &Delivery) -> String {
    let token = token(&delivery.message).unwrap_or("no token");
    let text = format!("{}: {}", delivery.to, delivery.json.replace(token, "…"));
    text[..text.floor_char_boundary(400)].to_owned()
}
