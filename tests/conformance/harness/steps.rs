//! Doing the steps of a case.

use std::time::Duration;

use annex_core::ids::{ExtensionName, Oid};
use annex_core::ports::{Clock as _, Outgoing, QueueName};
use annex_core::telemetry::Delivery;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::bindings::Bindings;
use super::case::{Answer, Generate, Step};
use super::door::{Call, Reply, pack};
use super::tap::Queued;
use super::world::World;

/// How often the schedule of the daily update runs.
const TICK: Duration = Duration::from_secs(600);

impl World {
    /// Does a step, and checks what it answers.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), String> {
        if step.call.is_some() || step.http.is_some() {
            let call = self.request_of(step).await?;
            let times = step.times.unwrap_or(1);
            let router = self.process.router();
            let replies = join_all((0..times).map(|_| call.clone().send(router))).await;
            for reply in replies {
                self.check_reply(step, &reply)?;
            }
        } else if let Some(action) = &step.rule {
            self.event_for_rule(step, action).await?;
        } else if let Some(secs) = step.wait {
            let until = self.clock.steady().plus(Duration::from_secs_f64(secs));
            self.run_until(until).await?;
        } else if step.settle.is_some() {
            self.settle().await?;
        } else if let Some(hours) = step.daily_hours {
            self.daily(hours).await?;
        } else if step.publish_again.is_some() {
            self.publish_again();
        } else if step.redeliver.is_some() {
            for Queued { queue, body, .. } in std::mem::take(&mut self.handed) {
                self.site.machine.send(Outgoing { queue, body, delay: Duration::ZERO });
            }
        } else if step.restart.is_some() {
            self.restart();
        } else if let Some(secs) = step.jump_s {
            let now = self.clock.now();
            let by = Duration::from_secs(secs.unsigned_abs());
            self.clock.set_now(if secs < 0 { now.minus(by) } else { now.plus(by) });
        } else if let Some(change) = &step.change {
            let name = step.extension.as_deref().unwrap_or("demo");
            self.change(name, change.clone());
        } else if let Some(full) = step.disk_full {
            self.site.machine.fill_disk(full);
        } else if step.deliveries.is_none() {
            return Err("the step has no verb".to_owned());
        }
        Ok(())
    }

    /// The request that a step sends.
    pub(crate) async fn request_of(&mut self, step: &Step) -> Result<Call, String> {
        let org = step.org.as_deref().unwrap_or("A");
        let who = step.caller.as_deref().unwrap_or("user");
        let (method, path) = match (&step.call, &step.http) {
            (Some(_), _) => {
                let extension = step.extension.as_deref().unwrap_or("demo");
                ("POST", format!("/v1/extension/request/{extension}"))
            }
            (None, Some(http)) => {
                let (method, path) = http.split_once(' ').ok_or("http is `METHOD /path`")?;
                (method, self.bindings.fill(path))
            }
            (None, None) => unreachable!("a request has one of them"),
        };
        let mut fields: Vec<(&str, String)> = Vec::new();
        if let Some(action) = &step.call {
            fields.push(("oid", self.bindings.fill(&format!("${{{org}}}"))));
            fields.push(("action", action.clone()));
            if let Some(data) = self.data_of(step)? {
                let packed = step.packed == Some(true);
                let data = if packed { pack(data.as_bytes()) } else { data };
                fields.push((if packed { "gzdata" } else { "data" }, data));
            }
            if let Some(who) = &step.impersonate {
                fields.push(("impersonator_jwt", self.impersonator(who, org).await?));
            }
            if let Some(id) = &step.investigation {
                fields.push(("inv_id", id.clone()));
            }
        }
        for (name, value) in step.form.iter().flatten() {
            fields.push((name, self.bindings.fill(value)));
        }
        // The token last: for some callers time passes.
        let token = self.token(who, org).await?;
        let mut call = Call::new(method, &path);
        if let Some(json) = &step.json {
            let text = self.bindings.fill(&json.to_string());
            let json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            call = call.json(&json);
        } else if !fields.is_empty() {
            call = call.form(fields.iter().map(|(name, value)| (*name, value.as_str())));
        }
        if !token.is_empty() {
            call = call.token(token);
        }
        call.headers.extend(step.key.iter().map(|key| ("idempotency-key", key.clone())));
        call.headers.extend(step.prefer.iter().map(|prefer| ("prefer", prefer.clone())));
        Ok(call)
    }

    async fn impersonator(&mut self, who: &str, org: &str) -> Result<String, String> {
        match who.strip_suffix("@B") {
            Some(who) => self.token(who, "B").await,
            None if who == "garbage" => Ok("garbage".to_owned()),
            None => self.token(who, org).await,
        }
    }

    fn data_of(&self, step: &Step) -> Result<Option<String>, String> {
        let data = step.data.as_ref().map(|data| data.get().to_owned());
        let generated = step.generate.as_ref().map(generate);
        let given: Vec<String> =
            [data, step.text.clone(), generated].into_iter().flatten().collect();
        match &given[..] {
            [] => Ok(None),
            [one] => Ok(Some(self.bindings.fill(one))),
            _ => Err("a step has one of data, text and generate".to_owned()),
        }
    }

    /// Checks an answer against what the step says about it.
    fn check_reply(&mut self, step: &Step, reply: &Reply) -> Result<(), String> {
        if let Some(any) = &step.any_of {
            let found = any.iter().any(|one| matches(&self.bindings, one, reply));
            return if found {
                Ok(())
            } else {
                Err(format!("answer {} {}", reply.status, reply.body))
            };
        }
        let expected = expected_answer(step)?;
        if expected.status == 202 {
            let location = reply.headers.get("location").and_then(|value| value.to_str().ok());
            let id = reply.body["id"].as_str().unwrap_or_default();
            if location != Some(&format!("/v1/invocations/{id}")) {
                return Err(format!("a 202 has the location {location:?}"));
            }
        }
        if reply.status != expected.status {
            return Err(format!("answer {} {}", reply.status, reply.body));
        }
        self.bindings.check(&expected.body, &reply.body, "answer")
    }

    /// A rule calls an action: with the data of the step, taken from an event that comes in by an adapter.
    async fn event_for_rule(&mut self, step: &Step, action: &str) -> Result<(), String> {
        let org = step.org.as_deref().unwrap_or("A");
        let name = step.extension.as_deref().unwrap_or("demo");
        let oid = self.bindings.fill(&format!("${{{org}}}"));
        let data: Map<String, Value> = match &step.data {
            Some(data) => serde_json::from_str(data.get()).map_err(|error| error.to_string())?,
            None => Map::new(),
        };
        let paths: Map<String, Value> =
            data.keys().map(|key| (key.clone(), json!(format!("event.data.{key}")))).collect();
        let rule = json!({
            "detect": { "op": "exists", "path": "event/data" },
            "respond": [{
                "action": "extension request",
                "extension name": name,
                "extension action": action,
                "extension request": paths,
            }],
        });
        let token = self.token("user", org).await?;
        let path = format!("/v1/hive/dr-general/{oid}/rule/data");
        let call = Call::new("POST", &path).token(token);
        self.done(call.form([("data", rule.to_string().as_str())])).await?;
        self.post_event(&oid, name, &json!({ "data": data }).to_string(), step.key.as_deref()).await
    }

    async fn post_event(
        &self,
        oid: &str,
        extension: &str,
        event: &str,
        key: Option<&str>,
    ) -> Result<(), String> {
        let telemetry = &self.process.telemetry;
        let name = ExtensionName::parse(extension).map_err(|fault| fault.message)?;
        let parsed = Oid::parse(oid).map_err(|fault| fault.message)?;
        let made = telemetry.provision(parsed, &name, None, "user@example.com").await;
        let path = made.map_err(|fault| fault.message)?.path;
        let secret = path.rsplit('/').next().unwrap_or_default();
        let delivery = Delivery {
            oid,
            adapter: extension,
            secret,
            encoding: None,
            body: event.as_bytes(),
            idempotency_key: key,
        };
        telemetry.receive(delivery).await.map_err(|fault| fault.message)?;
        Ok(())
    }

    async fn daily(&mut self, hours: u32) -> Result<(), String> {
        let until = self.clock.steady().plus(Duration::from_secs(u64::from(hours) * 3600));
        while self.clock.steady() < until {
            let daily = daily::Daily::new(self.process.calls.clone());
            daily.tick().await.map_err(|error| error.to_string())?;
            self.run_until(self.clock.steady().plus(TICK)).await?;
        }
        Ok(())
    }

    /// Sends the messages of the continuations once more, as a second answer of the same call would.
    fn publish_again(&mut self) {
        let now = json!(self.clock.now().millis());
        for message in self.handed.clone() {
            let Ok(mut job) = serde_json::from_str::<Value>(&message.body) else { continue };
            if message.queue == QueueName::Resume && job["start"]["origin"] == "continuation" {
                job["start"]["published_at"] = now.clone();
                let body = job.to_string();
                self.site.machine.send(Outgoing {
                    queue: message.queue,
                    body,
                    delay: Duration::ZERO,
                });
            }
        }
    }
}

fn expected_answer(step: &Step) -> Result<Answer, String> {
    if let Some(data) = &step.ok {
        return Ok(Answer { status: 200, body: json!({ "data": data }) });
    }
    if let Some((status, code, text)) = &step.fails {
        return Ok(Answer { status: *status, body: json!({ "error": text, "code": code }) });
    }
    if let Some(status) = &step.accepted {
        let body = json!({ "id": "${id}", "status": status, "created_at": "${time}" });
        return Ok(Answer { status: 202, body });
    }
    step.answer.clone().ok_or_else(|| "the step does not say what is answered".to_owned())
}

fn generate(generate: &Generate) -> String {
    let repeated = generate.text.repeat(generate.count);
    let value = if generate.raw { repeated } else { format!("\"{repeated}\"") };
    format!("{{\"{}\":{value}}}", generate.field)
}

fn matches(bindings: &Bindings, expected: &Answer, reply: &Reply) -> bool {
    reply.status == expected.status
        && bindings.clone().check(&expected.body, &reply.body, "answer").is_ok()
}
