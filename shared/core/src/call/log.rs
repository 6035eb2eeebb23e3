//! What the log says of calls: one line for every run that ended, and whose call any other line is about.
//!
//! **Invariant:** no line holds a payload, a secret, or a text of an extension, of its caller, or of its tenant, but for
//! names that were checked: an action of the schema, an event that an extension asked for.

use std::time::Duration;

use tracing::Span;
use uuid::Uuid;

use crate::fault::Code;
use crate::ids::{ExtensionName, Oid};
use crate::time::Timestamp;

use super::job::Job;
use super::record::{Kind, Record, Status, id_of};

/// The target of the line of a run.
pub const TARGET: &str = "annex::call";

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    /// From the claim, or for a message from its publishing, to the start of the run.
    queued: Duration,
    /// Attempts of this run.
    pub(super) attempts: u32,
    /// From the start of its first attempt to the end of its last one.
    pub(super) delivery: Duration,
}

impl Spent {
    /// At the start of a run of this record.
    pub(super) fn new(record: &Record, now: Timestamp) -> Self {
        let queued = now.since(record.created_at);
        Self { queued, attempts: 0, delivery: Duration::ZERO }
    }
}

/// What every line about a call carries. It is there at every level, so that an error always says whose it is.
pub(super) fn span(id: Uuid, oid: Oid, extension: &ExtensionName) -> Span {
    tracing::error_span!("call", %id, %oid, %extension)
}

impl Record {
    /// What every line about it carries.
    pub(super) fn span(&self) -> Span {
        span(self.id, self.oid, &self.extension)
    }
}

impl Job {
    /// What every line about it carries. The extension of an invocation that has a record is known once that is read:
    /// [`found`].
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Deliver { place, .. } => {
                tracing::error_span!("deliver", oid = %place.oid, extension = %place.extension)
            }
            Self::Start(start) => {
                let id = id_of(start.oid, &[&start.claim, start.extension.as_str()]);
                span(id, start.oid, &start.extension)
            }
            Self::Run { oid, id, .. } => {
                tracing::error_span!("call", %id, %oid, extension = tracing::field::Empty)
            }
            Self::Erase { oid } => tracing::error_span!("erase", %oid),
            Self::Later(updates) | Self::Now(updates) => {
                tracing::error_span!("updates", extension = %updates.extension)
            }
        }
    }
}

/// Adds the extension of a record to the span.
pub(super) fn found(record: &Record) {
    Span::current().record("extension", tracing::field::display(&record.extension));
}

/// The line of a run that ended, or that waits for its slow retry.
pub(super) fn ended(record: &Record, spent: Spent) {
    let outcome = match record.status {
        Status::Succeeded => "succeeded",
        Status::Failed => "failed",
        Status::Queued | Status::Running | Status::Waiting => "waiting",
    };
    let code = record.ending.as_ref().and_then(|ending| ending.code.as_deref());
    let (action, event) = match &record.kind {
        Kind::Request { action, .. } => (Some(action.as_str()), None),
        Kind::Event { .. } | Kind::ErrorReport => (None, Some(record.kind.word())),
    };
    line(record, (action, event), (outcome, code), spent);
}

/// The line of a message that was refused before it became an invocation. Its action is no name that was checked.
pub(super) fn refused(record: &Record, code: Code, now: Timestamp) {
    line(record, (None, None), ("failed", Some(code.word())), Spent::new(record, now));
}

fn line(
    record: &Record,
    (action, event): (Option<&str>, Option<&str>),
    (outcome, code): (&str, Option<&str>),
    spent: Spent,
) {
    tracing::info!(
        target: TARGET,
        // The span has the same members: lines for people do not say them twice.
        parent: None,
        id = %record.id,
        oid = %record.oid,
        extension = record.extension.as_str(),
        action,
        event,
        origin = record.origin.word(),
        outcome,
        code,
        attempts = spent.attempts,
        latency_ms = millis(spent.delivery),
        queue_age_ms = millis(spent.queued),
        trace_id = %record.trace().id_hex(),
        "call"
    );
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
