//! The delivery of a call to the extension that is called, and what its answer comes to.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::call::LOG_TARGET;
use crate::capability::id::{LockId, Qualified};
use crate::capability::message::{self, Named};
use crate::capability::model::Invoker;
use crate::capability::service::Capabilities;
use crate::limits::CAPABILITY_ANSWER_BYTES_MAX;
use crate::ports::Outage;
use crate::trace::Trace;

use super::admit::Admitted;
use super::record::{CallError, Caller};
use super::{Origin, answer};

/// What a called extension is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invoked<'a> {
    session_id: &'a str,
    lock_id: &'a LockId,
    extension: Named<'a>,
    invocation_id: &'a str,
    capability: &'a Qualified,
    input: &'a RawValue,
    actor: Invoker,
    caller: &'a Caller,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    correlation_id: &'a str,
    depth: u32,
}

impl Capabilities {
    /// Calls the target, in one attempt: its output, checked and with the target's credentials hidden, or why the call
    /// failed (CH-060, CH-061).
    pub(super) async fn deliver(
        &self,
        origin: &Origin,
        admitted: &Admitted,
    ) -> Result<Box<RawValue>, CallError> {
        let began = self.ports().clock.steady();
        let result = match self.send(origin, admitted).await {
            Ok(result) => result,
            Err(outage) => {
                tracing::error!(source = ?outage.source, "a call could not be sent: {outage}");
                Err(CallError::new("internal", "the platform could not send the call"))
            }
        };
        let record = &admitted.record;
        let latency = self.ports().clock.steady().since(began).as_millis();
        tracing::info!(
            target: LOG_TARGET,
            parent: None,
            id = record.id,
            oid = %origin.oid,
            extension = admitted.target.extension.slug.as_str(),
            action = record.capability.as_str(),
            origin = "capability",
            outcome = if result.is_ok() { "succeeded" } else { "failed" },
            attempts = 1,
            latency_ms = u64::try_from(latency).unwrap_or(u64::MAX),
            queue_age_ms = 0,
            trace_id = trace(&record.link.correlation).id_hex(),
            "call"
        );
        result
    }

    async fn send(
        &self,
        origin: &Origin,
        admitted: &Admitted,
    ) -> Result<Result<Box<RawValue>, CallError>, Outage> {
        let (ports, record) = (self.ports(), &admitted.record);
        let extension = &admitted.target.extension;
        let input = RawValue::from_string(admitted.input.clone())
            .map_err(|error| Outage::caused("an input that was checked is not JSON", error))?;
        let data = Invoked {
            session_id: &admitted.session,
            lock_id: &origin.lock,
            extension: Named { slug: &extension.slug },
            invocation_id: &record.id,
            capability: &record.capability,
            input: &input,
            actor: record.actor,
            caller: &record.caller,
            idempotency_key: record.key.as_deref(),
            causation_id: record.link.causation.as_deref(),
            correlation_id: &record.link.correlation,
            depth: record.link.depth,
        };
        let event = if record.query { "query.invoked" } else { "command.invoked" };
        let trace = trace(&record.link.correlation);
        let sent = message::post(ports, extension, event, data, Some(trace)).await?;
        let redactor = message::redactor(ports, extension)?;
        let output = match answer::read(sent) {
            Ok(output) => output,
            Err(failure) => return Ok(Err(answer::shown(failure, &redactor))),
        };
        let compiled = &admitted.target.compiled;
        let capability = match record.query {
            true => compiled.query(&record.capability),
            false => compiled.command(&record.capability),
        };
        if !capability.is_some_and(|capability| capability.check_output(output.as_bytes())) {
            let text = "the output does not match the outputSchema";
            return Ok(Err(CallError::new("invalid-output", text)));
        }
        let output = redactor.redact_json(&output).into_owned();
        // What stands in for a short password is longer than it.
        if CAPABILITY_ANSWER_BYTES_MAX < output.len() {
            let text = "the output is too large with the credentials in it hidden";
            return Ok(Err(CallError::new("response-too-large", text)));
        }
        RawValue::from_string(output)
            .map(Ok)
            .map_err(|error| Outage::caused("a redacted output is not JSON", error))
    }
}

/// The trace of a chain: its id is that of the first link.
fn trace(correlation: &str) -> Trace {
    let hex = correlation.get(super::super::link::CALL_ID.len()..).unwrap_or("");
    Trace::of(uuid::Uuid::try_parse(hex).unwrap_or(uuid::Uuid::nil()))
}
