//! The scenarios of capability extensions: three of them on one lock.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::bill::Bill;
use crate::rows::bill;
use crate::stack::{OID, Stack};

/// What the extensions declare and want, by their slugs.
fn manifests() -> [(&'static str, Value); 3] {
    let field = json!({ "type": "string", "x-chaster-options": { "query": "dice.sides" } });
    let input = json!({ "type": "object", "properties": { "side": field } });
    let capability = |id: &str| json!({ "id": id, "title": "dice", "inputSchema": input, "invocableBy": ["extension"] });
    let sides = json!({ "id": "dice.sides", "title": "sides", "inputSchema": {}, "invocableBy": ["extension"] });
    let event = json!({ "type": "game.ended", "payloadSchema": { "type": "object" } });
    let wanted = json!([{ "type": "game.ended" }]);
    [
        ("game", json!({ "slug": "game", "events": [event] })),
        (
            "dice",
            json!({ "slug": "dice", "commands": [capability("dice.roll")], "queries": [sides],
                "subscriptions": wanted }),
        ),
        ("score", json!({ "slug": "score", "subscriptions": wanted })),
    ]
}

/// Extensions on a lock, whose API process has seen them a moment ago.
struct Lock {
    /// Developer token and session, in the order of [`manifests`].
    extensions: Vec<(String, String)>,
}

impl Lock {
    async fn new(stack: &mut Stack) -> anyhow::Result<Self> {
        let mut extensions = Vec::new();
        for (slug, manifest) in manifests() {
            let definition = json!({
                "contract": "chaster", "name": slug, "url": "https://partner.example.com/hook",
                "webhook": { "username": "annex", "password": "a-password-of-the-partner" },
            });
            let operator = stack.operator().await?;
            let made =
                stack.json(&operator, "POST", "/v1/extension/definition", &definition).await?;
            let token = text(&made, "developer_token")?;
            stack.json(&token, "PUT", "/api/extensions/manifest", &manifest).await?;
            let path = format!("/v1/orgs/{OID}/scopes/lock/65f0c2a1e4b0a1b2c3d4e5f6/sessions");
            let user = stack.user();
            let made = stack.json(&user, "POST", &path, &json!({ "extension": slug })).await?;
            extensions.push((token, text(&made, "sessionId")?));
        }
        let lock = Self { extensions };
        stack.settle().await?;
        lock.roll(stack).await?;
        lock.choose(stack).await?;
        lock.end(stack).await?;
        stack.settle().await?;
        stack.observe();
        Ok(lock)
    }

    /// Something that one of the extensions does through its session.
    async fn post(
        &self,
        stack: &mut Stack,
        who: usize,
        tail: &str,
        body: &Value,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let (token, session) = &self.extensions[who];
        let path = format!("/api/extensions/sessions/{session}/{tail}");
        stack.send_json(token, "POST", &path, body).await
    }

    async fn roll(&self, stack: &mut Stack) -> anyhow::Result<()> {
        let body = json!({ "input": { "side": "six" } });
        let (status, answer) = self.post(stack, 0, "commands/dice.roll", &body).await?;
        ensure!(status == StatusCode::CREATED, "{status}: {answer}");
        ensure!(answer["status"] == "succeeded", "{answer}");
        Ok(())
    }

    async fn choose(&self, stack: &mut Stack) -> anyhow::Result<()> {
        let body = json!({ "id": "dice.roll", "field": "side" });
        let (status, answer) = self.post(stack, 0, "options", &body).await?;
        ensure!(status == StatusCode::OK, "{status}: {answer}");
        Ok(())
    }

    async fn end(&self, stack: &mut Stack) -> anyhow::Result<()> {
        let body = json!({ "type": "game.ended", "payload": { "winner": "wearer" } });
        let (status, answer) = self.post(stack, 0, "events", &body).await?;
        ensure!(status == StatusCode::CREATED, "{status}: {answer}");
        Ok(())
    }
}

fn text(answer: &Value, member: &str) -> anyhow::Result<String> {
    let text = answer[member].as_str().map(str::to_owned);
    text.with_context(|| format!("there is no {member} in {answer}"))
}

/// A command that an extension answers at once.
pub(crate) async fn command(stack: &mut Stack) -> anyhow::Result<Bill> {
    let lock = Lock::new(stack).await?;
    let body = json!({ "input": { "side": "six" } });
    let (status, answer) = lock.post(stack, 0, "commands/dice.roll", &body).await?;
    ensure!(status == StatusCode::CREATED && answer["status"] == "succeeded", "{status}: {answer}");
    bill(stack, 0)
}

/// One more than a lock takes in a minute.
pub(crate) async fn rate_limited(stack: &mut Stack) -> anyhow::Result<Bill> {
    let lock = Lock::new(stack).await?;
    let nothing = json!({ "type": "lock.opened" });
    for number in 0..=300 {
        stack.observe();
        let (status, answer) = lock.post(stack, number % 3, "events", &nothing).await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            ensure!(answer["details"]["bucket"] == "lock", "{answer}");
            return bill(stack, 0);
        }
        ensure!(answer["code"] == "reserved-namespace", "{status}: {answer}");
    }
    anyhow::bail!("the lock takes more than it may")
}

/// Choices that were asked for a moment ago.
pub(crate) async fn options(stack: &mut Stack) -> anyhow::Result<Bill> {
    let lock = Lock::new(stack).await?;
    // In a new minute every other request is counted ahead, by the one before it.
    stack.clock.advance(Duration::from_secs(60));
    lock.choose(stack).await?;
    stack.observe();
    lock.choose(stack).await?;
    bill(stack, 0)
}

/// An event that two extensions get as a webhook, and that stands in the lock's history.
pub(crate) async fn event(stack: &mut Stack) -> anyhow::Result<Bill> {
    let lock = Lock::new(stack).await?;
    // Everything that is remembered is read anew, so that none of it grows old while the event is told.
    stack.clock.advance(Duration::from_secs(60));
    lock.end(stack).await?;
    stack.settle().await?;
    stack.observe();
    lock.end(stack).await?;
    stack.settle().await?;
    bill(stack, 0)
}
