//! What the rest of the platform asks of extensions: schemas, configuration checks, events, reports.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Either, select};

use crate::auth;
use crate::delivery::answer::{Answer, Verdict};
use crate::delivery::message::{Empty, OrgPart, Part, render};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};
use crate::limits;
use crate::ports::{Outgoing, QueueName};
use crate::redact::Redactor;
use crate::schema::ExtensionSchema;
use crate::trace::Trace;

use super::Calls;
use super::deliver::{OnError, Rules};
use super::install::{self, Extension, Secrets};
use super::job::{Job, Start};
use super::payload::{Payload, raw};
use super::record::{Kind, Origin, Record};
use super::run::{not_subscribed, send};

impl Calls {
    /// The raw `data` of the extension's answer to a schema request, at most a minute old; the fault says what failed
    /// (LC-147, LC-148, LC-151).
    pub async fn schema(&self, extension: &ExtensionName) -> Outcome<Bytes> {
        let schema = self.extension_schema(extension).await?;
        Ok(Bytes::copy_from_slice(schema.raw().as_bytes()))
    }

    /// The schema itself.
    pub async fn extension_schema(
        &self,
        extension: &ExtensionName,
    ) -> Outcome<Arc<ExtensionSchema>> {
        let extension = self.extension(extension).await?;
        self.fetch_schema(&extension).await
    }

    /// The events an extension wants: those of its definition, or else those its schema advertises (LC-108).
    pub async fn advertised_events(&self, extension: &ExtensionName) -> Outcome<Vec<String>> {
        let extension = self.extension(extension).await?;
        match &extension.definition.events {
            Some(events) => Ok(events.clone()),
            None => Ok(self.fetch_schema(&extension).await?.required_events.clone()),
        }
    }

    pub(super) async fn fetch_schema(
        &self,
        extension: &Arc<Extension>,
    ) -> Outcome<Arc<ExtensionSchema>> {
        let (calls, asked) = (self.clone(), Arc::clone(extension));
        let fetch = move || async move { calls.ask_schema(&asked).await }.boxed();
        let now = self.ports().clock.steady();
        self.inner.schemas.get(extension, now, fetch).await
    }

    async fn ask_schema(&self, extension: &Arc<Extension>) -> Outcome<Arc<ExtensionSchema>> {
        let id = self.ports().ids.uuid();
        let json = render(&id.hyphenated().to_string(), Part::SchemaRequest(Empty {}));
        let failed =
            |code, text: &str| Fault::new(code, format!("schema request failed: {text}")).cut();
        let rules = Rules {
            made: 0,
            on_error: OnError::Status,
            timeout: limits::SCHEMA_TIMEOUT,
            trace: Trace::of(id),
        };
        let answer = match self.deliver(extension, &json, rules).await.verdict {
            Verdict::Done(answer) => answer,
            Verdict::Failed(fault, _)
            | Verdict::RetrySoon(fault, _)
            | Verdict::RetryLater(fault, _) => {
                // An error that the extension calls permanent is still no fault of the caller.
                let code = if fault.code == Code::ExtensionError {
                    Code::ExtensionFailed
                } else {
                    fault.code
                };
                return Err(failed(code, &fault.message));
            }
        };
        let data = answer.data.ok_or_else(|| failed(Code::BadAnswer, "the answer has no data"))?;
        if data.get().len() > limits::SCHEMA_BYTES_MAX {
            let text = format!("the schema has more than {} bytes", limits::SCHEMA_BYTES_MAX);
            return Err(failed(Code::BadAnswer, &text));
        }
        ExtensionSchema::parse(data.get().as_bytes())
            .map(Arc::new)
            .map_err(|text| failed(Code::BadAnswer, &text))
    }

    /// Asks the extension whether it takes this configuration (an object's JSON text), on write. A refusal is
    /// [`Code::ConfigRefused`] with the extension's text.
    pub async fn validate_config(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        config: &str,
        ident: &str,
    ) -> Outcome<()> {
        let ports = self.ports();
        let began = ports.clock.steady();
        let definition = self.extension(extension).await?;
        let subscription = install::subscription(ports, oid, extension)
            .await?
            .filter(|subscription| subscription.removed_at.is_none())
            .ok_or_else(|| not_subscribed(extension))?;
        let schema = self.fetch_schema(&definition).await?;
        let mut secrets = Secrets::new();
        let conf =
            install::prepare_config(ports, oid, &schema.config, config, &mut secrets).await?;
        let token = auth::extension_token(ports, oid, &definition.definition, &subscription, 1);
        let org = OrgPart { oid, jwt: &token, ident };
        let id = ports.ids.uuid();
        let json = render(&id.hyphenated().to_string(), Part::ConfValidation { org, conf: &conf });
        let redactor =
            Redactor::new(secrets.iter().map(|(name, value)| (name.clone(), value.to_string())));
        let timeout = self.profile().call_timeout;
        let rules = Rules { made: 0, on_error: OnError::Final, timeout, trace: Trace::of(id) };
        let delivered = self.deliver(&definition, &json, rules);
        let verdict = match self.inner.settings.check_within {
            None => delivered.await.verdict,
            Some(most) => {
                // What its schema took counts as well.
                let rest = most.saturating_sub(ports.clock.steady().since(began));
                let end = ports.clock.sleep(rest.max(limits::WAIT_MIN));
                match select(pin!(delivered), pin!(end)).await {
                    Either::Left((delivered, _)) => delivered.verdict,
                    Either::Right(_) => {
                        let text =
                            format!("the extension did not answer within {} s", most.as_secs());
                        return Err(Fault::new(Code::ExtensionFailed, text));
                    }
                }
            }
        };
        match verdict {
            Verdict::Done(_) => Ok(()),
            Verdict::Failed(fault, answer) => {
                let said = answer.is_some_and(|answer: Answer| !answer.error.is_empty());
                let code = if said { Code::ConfigRefused } else { fault.code };
                Err(Fault::new(code, redactor.redact(&fault.message)).cut())
            }
            Verdict::RetrySoon(fault, _) | Verdict::RetryLater(fault, _) => {
                Err(Fault::new(fault.code, redactor.redact(&fault.message)).cut())
            }
        }
    }

    /// The message that delivers an event (`subscribe`, `unsubscribe`, `update`) of an organization to an extension,
    /// if it wants it; `once` names the occurrence, so that a repeat of the same message is delivered once.
    pub fn event_message(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        event: &str,
        ident: &str,
        once: &str,
    ) -> Outgoing {
        let start = self.event(oid, extension, event, ident, once);
        send(QueueName::Dispatch, &Job::Start(Box::new(start)), Duration::ZERO)
    }

    pub(super) fn event(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        event: &str,
        ident: &str,
        once: &str,
    ) -> Start {
        Start {
            oid,
            extension: extension.clone(),
            kind: Kind::Event { event: event.to_owned() },
            origin: Origin::Platform,
            claim: format!("event#{event}#{once}"),
            key: None,
            data: Payload::Json(raw("{}")),
            ident: ident.to_owned(),
            level: 0,
            depth: 1,
            secrets: Vec::new(),
            trace: None,
            published_at: self.ports().clock.now(),
        }
    }

    /// The message that makes a call which nobody waits for: what a rule asks for. `data` is an object's JSON text of
    /// at most [`limits::INLINE_BYTES_MAX`] bytes. `once` names the occurrence.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one message")]
    pub fn request_message(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        action: &str,
        data: &str,
        ident: &str,
        investigation: &str,
        once: &str,
    ) -> Outgoing {
        let kind =
            Kind::Request { action: action.to_owned(), investigation: investigation.to_owned() };
        let start = Start {
            oid,
            extension: extension.clone(),
            kind,
            origin: Origin::Rule,
            claim: format!("rule#{once}"),
            key: None,
            data: Payload::Json(raw(data)),
            ident: ident.to_owned(),
            level: 0,
            depth: 1,
            secrets: Vec::new(),
            trace: None,
            published_at: self.ports().clock.now(),
        };
        send(QueueName::Dispatch, &Job::Start(Box::new(start)), Duration::ZERO)
    }

    /// The message that tells the extension of an error the platform met on its behalf (LC-065).
    pub(super) fn report_message(&self, record: &Record, error: &str, once: &str) -> Outgoing {
        let error = serde_json::to_string(error).expect("text can be written as JSON");
        let start = Start {
            oid: record.oid,
            extension: record.extension.clone(),
            kind: Kind::ErrorReport,
            origin: Origin::Platform,
            claim: format!("report#{once}"),
            key: None,
            data: Payload::Json(raw(&error)),
            ident: "annex".to_owned(),
            level: 0,
            depth: record.depth,
            secrets: Vec::new(),
            trace: Some(record.trace()),
            published_at: self.ports().clock.now(),
        };
        send(QueueName::Dispatch, &Job::Start(Box::new(start)), Duration::ZERO)
    }
}
