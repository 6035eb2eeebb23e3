//! Accepting a request: checked, claimed, and waited for as long as its caller likes.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use crate::auth::Caller;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};
use crate::json;
use crate::keys;
use crate::limits;
use crate::org_errors;
use crate::ports::{Commit, Committed, Hold, Item, Outage, QueueName, When};
use crate::seal::{self, Sealed};
use crate::slots::Slot;
use crate::time::Timestamp;

use super::compose::{Install, unknown_action};
use super::install;
use super::job::Job;
use super::payload::Payload;
use super::record::{Kind, Origin, Record, Status, id_of};
use super::run::{Claimed, not_subscribed, send};
use super::settle::component;
use super::start::{no_user, prepare};
use super::{CallRequest, Calls, Reply, log};

/// A request that may be claimed.
struct Admitted {
    install: Install,
    data: String,
    impersonator: Option<Sealed>,
}

impl Calls {
    /// Accepts a request, and waits for its answer as long as it says.
    ///
    /// A repeat under the same idempotency key of the same caller gets what the first one got, or 202 while that runs;
    /// another action or other data under the key is [`Code::IdempotencyKeyConflict`].
    pub async fn request(&self, request: CallRequest) -> Outcome<Reply> {
        if request.data.len() > limits::REQUEST_BYTES_MAX {
            let most = limits::REQUEST_BYTES_MAX;
            return Err(Fault::new(Code::TooLarge, format!("data has more than {most} bytes")));
        }
        if limits::TEXT_BYTES_MAX < request.investigation.len() {
            let text = format!("an investigation has at most {} bytes", limits::TEXT_BYTES_MAX);
            return Err(Fault::new(Code::BadRequest, text));
        }
        let claim = self.claim_of(&request.caller, request.idempotency_key.as_deref())?;
        // Held from here on: also who waits for the schema of a slow extension takes a place of that one.
        let slot = self.slot_for(&request.extension)?;
        let id = id_of(request.oid, &[&claim]);
        let span = log::span(id, request.oid, &request.extension);
        self.accept(request, id, slot).instrument(span).await
    }

    async fn accept(
        &self,
        mut request: CallRequest,
        id: uuid::Uuid,
        slot: Arc<Slot<ExtensionName>>,
    ) -> Outcome<Reply> {
        let began = self.ports().clock.steady();
        let data = data_of(&request);
        let admitted = match self.admit_request(&request, data).await {
            Ok(admitted) => admitted,
            // What the first call got does not depend on what has changed since.
            Err(fault) if request.idempotency_key.is_some() => {
                return match self.standing(request.oid, id).await? {
                    Some(item) => self.repeated(&item, &fingerprint(&request, data)).await,
                    None => Err(fault),
                };
            }
            Err(fault) => return Err(fault),
        };
        request.wait = self.rest_of(request.wait, began);
        self.claim_and_run(request, id, admitted, slot).await
    }

    /// What is left of a wait whose request came at `began`, on the steady clock: what the schema of a slow extension took
    /// is not waited for once more.
    pub(super) fn rest_of(&self, wait: Duration, began: Timestamp) -> Duration {
        if wait.is_zero() {
            return wait;
        }
        let rest = limits::WAIT_MAX.saturating_sub(self.ports().clock.steady().since(began));
        wait.min(rest).max(limits::WAIT_MIN)
    }

    /// What the invocation is told apart by: the caller's key, or a new one.
    pub(super) fn claim_of(&self, caller: &Caller, key: Option<&str>) -> Outcome<String> {
        match key {
            None => Ok(format!("call#{}", self.ports().ids.uuid())),
            Some(key) => {
                let most = limits::IDEMPOTENCY_KEY_BYTES_MAX;
                if key.is_empty() || key.len() > most {
                    let text = format!("an idempotency key has 1 to {most} bytes");
                    return Err(Fault::new(Code::BadRequest, text));
                }
                Ok(format!("keyed#{}#{}#{key}", caller.ident.len(), caller.ident))
            }
        }
    }

    /// Checks everything that can be checked before the extension is called, in the order of the contract: whether it
    /// may be called at all, then the schema, and only then the rest (LC-002).
    async fn admit_request(&self, request: &CallRequest, data: &[u8]) -> Outcome<Admitted> {
        let ports = self.ports();
        let extension = self.extension(&request.extension).await?;
        let subscription = install::subscription(ports, request.oid, &request.extension)
            .await?
            .filter(|subscription| subscription.removed_at.is_none())
            .ok_or_else(|| not_subscribed(&request.extension))?;
        if request.caller.depth() > self.profile().depth_max {
            return Err(Fault::new(
                Code::DepthExceeded,
                "calls across extensions are nested too deeply",
            ));
        }
        let filed = async {
            let schema = self.fetch_schema(&extension).await?;
            let action =
                schema.action(&request.action).ok_or_else(|| unknown_action(&request.action))?;
            let data = prepare(action, data)?;
            let user = request.impersonator.as_deref();
            let impersonator = self
                .impersonator(request.oid, &request.action, user, action.is_impersonated)
                .await?;
            Ok((schema, data, impersonator))
        };
        match filed.await {
            Ok((schema, data, impersonator)) => Ok(Admitted {
                install: Install { extension, subscription, schema },
                data,
                impersonator,
            }),
            Err(fault) => {
                self.file(request.oid, &request.extension, &request.action, &fault).await?;
                Err(fault)
            }
        }
    }

    /// Files a refusal as an error of the organization (LC-005, LC-062).
    pub(super) async fn file(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        word: &str,
        fault: &Fault,
    ) -> Outcome<()> {
        if matches!(fault.code, Code::Internal | Code::Unavailable) {
            return Ok(());
        }
        let now = self.ports().clock.now();
        let component = component(extension, word);
        let steady = self.ports().clock.steady();
        let times = self.inner.refusals.due(oid, &component, &fault.message, steady).await;
        if times == 0 {
            return Ok(());
        }
        let write = org_errors::write_times(oid, &component, &fault.message, now, times);
        let commit = Commit { writes: vec![write], ..Commit::default() };
        self.ports().store.commit(commit).await?;
        Ok(())
    }

    /// The sealed token of the user, for an impersonated action (LC-135 to LC-138).
    pub(super) async fn impersonator(
        &self,
        oid: Oid,
        action: &str,
        user: Option<&str>,
        impersonated: bool,
    ) -> Outcome<Option<Sealed>> {
        if !impersonated {
            return Ok(None);
        }
        let token = user.filter(|token| !token.is_empty()).ok_or_else(|| no_user(action))?;
        self.check_impersonator(oid, token).await?;
        let ports = self.ports();
        let binding = ["impersonator", &oid.to_string()];
        Ok(Some(seal::seal(&*ports.keyring, &*ports.ids, &binding, token.as_bytes())))
    }

    async fn claim_and_run(
        &self,
        request: CallRequest,
        id: uuid::Uuid,
        admitted: Admitted,
        slot: Arc<Slot<ExtensionName>>,
    ) -> Outcome<Reply> {
        let ports = self.ports();
        let now = ports.clock.now();
        let until = now.plus(limits::RECORD_RETENTION);
        let data = Payload::plain(ports, admitted.data, until).await?;
        let record = Record {
            id,
            oid: request.oid,
            extension: request.extension.clone(),
            kind: Kind::Request {
                action: request.action.clone(),
                investigation: request.investigation.clone(),
            },
            origin: Origin::Api,
            fingerprint: fingerprint(&request, data_of(&request)),
            key: id.hyphenated().to_string(),
            data,
            ident: request.caller.ident.clone(),
            impersonator: admitted.impersonator,
            level: 0,
            depth: request.caller.depth(),
            secrets: Vec::new(),
            trace: request.trace,
            replay_of: None,
            status: Status::Queued,
            lease: None,
            attempts: 0,
            slow_retries: 0,
            created_at: now,
            ending: None,
        };
        self.claim_record(record, admitted.install, slot, request.wait).await
    }

    /// Claims a record that was admitted, and runs it, or has it run where the caller does not wait.
    pub(super) async fn claim_record(
        &self,
        mut record: Record,
        install: Install,
        slot: Arc<Slot<ExtensionName>>,
        wait: Duration,
    ) -> Outcome<Reply> {
        let ports = self.ports();
        let waits = !wait.is_zero();
        record.status = if waits { Status::Running } else { Status::Queued };
        record.lease = waits.then(|| self.new_lease());
        let mut commit = Commit { writes: vec![record.write(When::Absent)], ..Commit::default() };
        let job = Job::run(&record);
        let mut hold = None;
        if !waits {
            commit.sends.push(send(QueueName::Dispatch, &job, Duration::ZERO));
        } else if ports.store.holds() {
            let held =
                Hold { id: ports.ids.uuid(), send: send(QueueName::Resume, &job, limits::LEASE) };
            hold = Some(held.id);
            commit.holds.push(held);
        }
        match ports.store.commit(commit).await? {
            Committed::Lost { found, .. } => {
                record.data.forget(ports).await;
                let standing = found
                    .ok_or_else(|| Outage::new("a lost claim found nothing"))
                    .map_err(Fault::from)?;
                self.repeated(&standing, &record.fingerprint).await
            }
            Committed::Done if !waits => Ok(self.reply(&record).await?),
            Committed::Done => {
                let claimed = Claimed {
                    record: record.clone(),
                    revision: 1,
                    hold,
                    install: Some(install),
                    slot: Some(slot),
                };
                self.launch(claimed, wait.min(limits::WAIT_MAX)).await
            }
        }
    }

    /// A place for a call whose caller waits; the others are taken by calls that the extension has not answered.
    pub(super) fn slot_for(&self, extension: &ExtensionName) -> Outcome<Arc<Slot<ExtensionName>>> {
        self.inner.calls.take(extension, limits::CALLS_PER_EXTENSION_MAX).map(Arc::new).ok_or_else(
            || {
                Fault::new(
                    Code::Busy,
                    format!("too many calls of extension {extension} at a time; try again later"),
                )
            },
        )
    }

    /// The record that stands under a claim.
    pub(super) async fn standing(&self, oid: Oid, id: uuid::Uuid) -> Outcome<Option<Item>> {
        let key = keys::invocation(oid, &id.hyphenated().to_string());
        Ok(self.ports().store.get(&key).await?)
    }

    /// The reply to a repeat.
    pub(super) async fn repeated(&self, item: &Item, fingerprint: &str) -> Outcome<Reply> {
        let record = Record::read(item)?;
        if record.fingerprint != fingerprint {
            return Err(Fault::new(
                Code::IdempotencyKeyConflict,
                "the idempotency key was used for another action or other data",
            ));
        }
        self.promise(&record, item.revision).await?;
        Ok(self.reply(&record).await?)
    }
}

/// The data of a request; none is an empty object.
fn data_of(request: &CallRequest) -> &[u8] {
    if request.data.is_empty() { b"{}" } else { &request.data }
}

/// Tells a repeat from another call under the same key. White space and the order of members do not matter.
fn fingerprint(request: &CallRequest, data: &[u8]) -> String {
    let canonical = std::str::from_utf8(data).ok().and_then(json::canonical);
    let data = canonical.as_deref().map_or(data, str::as_bytes);
    let parts = [request.extension.as_str().as_bytes(), request.action.as_bytes(), data];
    keys::digest_hex(&parts)[..32].to_owned()
}
