//! One call of a command or a query: admitted, claimed, delivered, settled.
//!
//! Everything that may refuse a call is checked before it is claimed, in the order of the profile; a call whose key has
//! served before gets what the first one got, whatever has changed since. The claim is the record itself, one
//! conditional put. The target has one attempt, since its caller waits; what goes wrong from there on is a failed record
//! and no refusal.

mod admit;
mod answer;
pub(super) mod body;
mod deliver;
mod event;
mod place;
pub mod record;
mod run;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::ids::Oid;
use crate::json;
use crate::keys;
use crate::ports::Item;

use super::id::{LockId, Qualified, Slug};
use super::link::CALL_ID;
use super::model::Invoker;
use super::rate::Chooser;
use super::refusal::Refusal;
use super::service::{Capabilities, Known};

pub(super) use self::admit::{NotAdmitted, allowed};
use self::body::Body;
use self::record::{CallError, CallRecord, Caller};

/// Who asks, and on which lock.
#[derive(Clone)]
pub struct Origin {
    /// The tenant.
    pub oid: Oid,
    /// The lock.
    pub lock: LockId,
    /// The session that it asks through; `None`: a person asks through the organization's own token.
    pub session: Option<String>,
    /// Who.
    pub asker: Asker,
}

/// Who asks.
#[derive(Clone)]
pub enum Asker {
    /// An extension, with its developer token.
    Extension(Arc<Known>),
    /// The wearer or the keyholder, as the organization says.
    Person(Invoker),
}

impl Origin {
    /// As it stands in records.
    pub(super) fn caller(&self) -> Caller {
        match &self.asker {
            Asker::Extension(known) => {
                let slug = Some(known.extension.slug.clone());
                Caller { kind: Invoker::Extension, slug }
            }
            Asker::Person(kind) => Caller { kind: *kind, slug: None },
        }
    }

    pub(super) fn chooser(&self) -> Chooser<'_> {
        match &self.asker {
            Asker::Extension(known) => Chooser::Extension(&known.extension.slug),
            Asker::Person(kind) => Chooser::User(kind.word()),
        }
    }

    /// What tells its keys and its choices from those of others: a slug, or the kind of person, which is no slug.
    pub(super) fn name(&self) -> String {
        match &self.asker {
            Asker::Extension(known) => known.extension.slug.to_string(),
            Asker::Person(kind) => format!("@{}", kind.word()),
        }
    }
}

/// A call, unchecked.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Which command or query.
    pub capability: String,
    /// Whether it was asked for as a query.
    pub query: bool,
    /// JSON: `{input?, actor?, idempotencyKey?, causationId?}`.
    pub body: Bytes,
}

/// What the caller gets: the JSON of the record, and whether the call has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The invocation record.
    pub json: String,
    /// Whether it has ended: 201, else 202.
    pub ended: bool,
}

impl Capabilities {
    /// Calls a command or a query, and waits for its end (at most [`crate::limits::CAPABILITY_TIMEOUT`] and what the store
    /// takes). To be run to its end once begun: a call that is dropped on its way ends as `interrupted`.
    pub async fn call(&self, origin: &Origin, request: CallRequest) -> Result<Reply, Refusal> {
        self.count(origin).await?;
        let id = Qualified::parse(&request.capability).ok_or(Refusal::InvalidCommandId)?;
        let body = Body::read(&request.body)?;
        let fingerprint = fingerprint(&id, request.query, body.input);
        let call = match &body.idempotency_key {
            Some(key) => keyed_id(origin, key),
            None => call_id(self.ports().ids.uuid()),
        };
        let keyed = body.idempotency_key.is_some();
        // Until the first has its claim, the others would take places among the calls of the target.
        let turn = if keyed { Some(self.turn(&call).await) } else { None };
        match self.admit(origin, &id, request.query, &body, call.clone()).await {
            Ok(mut admitted) => {
                if keyed {
                    admitted.record.fingerprint = fingerprint;
                }
                Ok(reply(origin, &self.claim_and_run(origin, admitted, turn).await?))
            }
            Err(not) => {
                // What the first call got does not depend on what has changed since.
                if keyed && let Some(item) = self.standing(origin, &call).await? {
                    return Ok(reply(origin, &self.repeated(origin, &item, &fingerprint).await?));
                }
                Err(self.refuse(origin, origin.caller().slug.as_ref(), not).await?)
            }
        }
    }

    /// The record of a call, as one of the two who know it sees it; `None`: there is none for this session.
    pub async fn record(&self, origin: &Origin, id: &str) -> Result<Option<String>, Refusal> {
        if !super::link::is_id(id) || !id.starts_with(CALL_ID) {
            return Ok(None);
        }
        let Some(item) = self.standing(origin, id).await? else { return Ok(None) };
        let record = CallRecord::read(&item)?;
        let known = match &origin.asker {
            Asker::Extension(known) => record.is_known_to(&known.extension.slug),
            Asker::Person(_) => true,
        };
        if !known {
            return Ok(None);
        }
        let record = self.current(origin, record, item.revision).await?;
        Ok(Some(record.view(&origin.lock)))
    }

    /// Counts what passes the first step (CH-037 to CH-040).
    pub(super) async fn count(&self, origin: &Origin) -> Result<(), Refusal> {
        match &origin.asker {
            Asker::Extension(known) => {
                self.rates().take(origin.oid, &origin.lock, &known.extension.slug).await
            }
            Asker::Person(_) => self.rates().take_user(origin.oid, &origin.lock).await,
        }
    }

    /// The refusal of what was not admitted. One for the depth of its chain counts for who began that (CH-059), unless it
    /// was counted for them already.
    pub(super) async fn refuse(
        &self,
        origin: &Origin,
        counted: Option<&Slug>,
        not: NotAdmitted,
    ) -> Result<Refusal, Refusal> {
        if let Some(starter) = &not.charged
            && not.refusal == Refusal::DepthExceeded
            && counted != Some(starter)
        {
            self.rates().charge(origin.oid, &origin.lock, starter).await?;
        }
        Ok(not.refusal)
    }

    async fn standing(&self, origin: &Origin, call: &str) -> Result<Option<Item>, Refusal> {
        let key = keys::capability_call(origin.oid, &origin.lock, call);
        Ok(self.ports().store.get(&key).await?)
    }

    /// The record that a repeat gets (CH-017, CH-018).
    async fn repeated(
        &self,
        origin: &Origin,
        item: &Item,
        fingerprint: &str,
    ) -> Result<CallRecord, Refusal> {
        let record = CallRecord::read(item)?;
        if record.fingerprint != fingerprint {
            return Err(Refusal::IdempotencyKeyConflict);
        }
        self.current(origin, record, item.revision).await
    }
}

fn reply(origin: &Origin, record: &CallRecord) -> Reply {
    Reply { json: record.view(&origin.lock), ended: record.ending.is_some() }
}

/// The id of a call with a key: of this caller on this lock (CH-019).
fn keyed_id(origin: &Origin, key: &str) -> String {
    let (oid, name) = (origin.oid.to_string(), origin.name());
    let parts = [oid.as_bytes(), origin.lock.as_str().as_bytes(), name.as_bytes(), key.as_bytes()];
    call_id(keys::uuid_of(&parts))
}

pub(super) fn call_id(id: Uuid) -> String {
    format!("{CALL_ID}{}", id.simple())
}

/// Tells a repeat from another call under the same key. White space and the order of members do not matter.
fn fingerprint(id: &Qualified, query: bool, input: &str) -> String {
    let canonical = json::canonical(input);
    let input = canonical.as_deref().unwrap_or(input);
    let parts = [id.as_str().as_bytes(), &[u8::from(query)], input.as_bytes()];
    keys::digest_hex(&parts)[..32].to_owned()
}

/// The end of a call whose worker is gone.
fn interrupted() -> CallError {
    CallError::new(
        "interrupted",
        "the platform stopped while the call ran; it may have been carried out",
    )
}
