//! A failed invocation once more: a new one with the data, the level and the depth of the old.

use std::time::Duration;

use tracing::Instrument as _;
use uuid::Uuid;

use crate::auth::Caller;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits;
use crate::trace::Trace;

use super::compose::{Install, unknown_action};
use super::payload::Payload;
use super::record::{Kind, Origin, Record, Status, id_of};
use super::start::{no_user, prepare};
use super::{Calls, Reply, log};

/// A request to make a failed invocation once more.
#[derive(Debug, Clone)]
pub struct ReplayRequest {
    /// The tenant.
    pub oid: Oid,
    /// The invocation, unchecked.
    pub id: String,
    /// Who asks; its permission `ext.request` was checked.
    pub caller: Caller,
    /// The token of the user on whose behalf an impersonated action runs, unchecked.
    pub impersonator: Option<String>,
    /// The caller's name of the replay, unchecked.
    pub idempotency_key: Option<String>,
    /// How long the caller waits for the answer; zero: not at all. At most [`limits::WAIT_MAX`].
    pub wait: Duration,
    /// The trace it is in; `None`: one of its own.
    pub trace: Option<Trace>,
}

impl Calls {
    /// Makes an invocation that ended and failed once more, as a new one, and waits for its answer as long as the
    /// request says. The old one stays as it is.
    ///
    /// [`Code::NotFound`]: the organization has no such invocation. [`Code::NotReplayable`]: it has not ended, or it
    /// succeeded. A repeat under the same idempotency key of the same caller gets what the first one got.
    pub async fn replay(&self, request: ReplayRequest) -> Outcome<Reply> {
        let claim = self.claim_of(&request.caller, request.idempotency_key.as_deref())?;
        let id = id_of(request.oid, &[&claim]);
        let old = Uuid::try_parse(&request.id).map_err(|_| unknown())?;
        let fingerprint = keys::digest_hex(&[b"replay", old.as_bytes()])[..32].to_owned();
        // What the first one got does not depend on what has changed since.
        if request.idempotency_key.is_some()
            && let Some(item) = self.standing(request.oid, id).await?
        {
            return self.repeated(&item, &fingerprint).await;
        }
        let old = self.replayable(request.oid, old).await?;
        let span = log::span(id, old.oid, &old.extension);
        self.replay_of(request, old, id, fingerprint).instrument(span).await
    }

    async fn replay_of(
        &self,
        request: ReplayRequest,
        old: Record,
        id: Uuid,
        fingerprint: String,
    ) -> Outcome<Reply> {
        let began = self.ports().clock.steady();
        let slot = self.slot_for(&old.extension)?;
        let now = self.ports().clock.now();
        let mut record = Record {
            id,
            fingerprint,
            key: id.hyphenated().to_string(),
            ident: request.caller.ident.clone(),
            impersonator: None,
            // Not by way of a replay does an extension get round the limit of its own calls.
            depth: old.depth.max(request.caller.depth()),
            trace: request.trace,
            replay_of: Some(old.id),
            lease: None,
            attempts: 0,
            slow_retries: 0,
            created_at: now,
            ending: None,
            ..old
        };
        if record.depth > self.profile().depth_max {
            let text = "calls across extensions are nested too deeply";
            return Err(Fault::new(Code::DepthExceeded, text));
        }
        let install = self.install(&record).await?;
        if is_stale(&record, &install) {
            let text = "the organization is subscribed: its end of subscription is not replayed";
            return Err(Fault::new(Code::NotReplayable, text));
        }
        let user = request.impersonator.as_deref();
        if let Err(fault) = self.admit_replay(&mut record, &install, user).await {
            self.file(record.oid, &record.extension, record.kind.word(), &fault).await?;
            return Err(fault);
        }
        let wait = self.rest_of(request.wait, began);
        self.claim_record(record, install, slot, wait).await
    }

    /// The record of an invocation that may be replayed.
    async fn replayable(&self, oid: Oid, id: Uuid) -> Outcome<Record> {
        let item = self.standing(oid, id).await?.ok_or_else(unknown)?;
        let record = Record::read(&item)?;
        match record.status {
            Status::Failed => Ok(record),
            Status::Succeeded => {
                Err(Fault::new(Code::NotReplayable, "the invocation has succeeded"))
            }
            Status::Queued | Status::Running | Status::Waiting => {
                Err(Fault::new(Code::NotReplayable, "the invocation has not ended"))
            }
        }
    }

    /// Checks a replay against the schema of now, and gives it data of its own: those of the old record expire before.
    async fn admit_replay(
        &self,
        record: &mut Record,
        install: &Install,
        user: Option<&str>,
    ) -> Outcome<()> {
        let ports = self.ports();
        let until = record.created_at.plus(limits::RECORD_RETENTION);
        let text = record.data.load(ports, record.oid, &record.extension).await?;
        if let Kind::Request { action, .. } = &record.kind {
            let schema = install.schema.action(action).ok_or_else(|| unknown_action(action))?;
            if record.origin != Origin::Continuation {
                record.impersonator =
                    self.impersonator(record.oid, action, user, schema.is_impersonated).await?;
                let data = prepare(schema, text.as_bytes())?;
                record.data = Payload::plain(ports, data, until).await?;
                return Ok(());
            }
            if schema.is_impersonated {
                // A continuation has no user (LC-140).
                return Err(no_user(action));
            }
        }
        record.data = match &record.data {
            Payload::Json(_) | Payload::Sealed(_) => return Ok(()),
            Payload::Blob(_) => Payload::plain(ports, text.to_string(), until).await?,
            Payload::SealedBlob(_) => {
                Payload::sealed(ports, record.oid, &record.extension, &text, until).await?
            }
        };
        Ok(())
    }
}

/// Whether an event tells of an end that is none any more: its extension would clean up what is in use again.
fn is_stale(record: &Record, install: &Install) -> bool {
    matches!(&record.kind, Kind::Event { event } if event == "unsubscribe")
        && install.subscription.removed_at.is_none()
}

fn unknown() -> Fault {
    Fault::new(Code::NotFound, "there is no such invocation")
}
