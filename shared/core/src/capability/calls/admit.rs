//! Whether a call may run: the checks from `not-installed` on, in the profile's order; the first that fails answers.

use std::sync::Arc;

use futures_util::future::try_join3;

use crate::capability::availability;
use crate::capability::id::{Qualified, Slug};
use crate::capability::link::{self, Next};
use crate::capability::model::{Availability, CommandKind, Invoker, Lock, Session};
use crate::capability::options::Asked;
use crate::capability::refusal::Refusal;
use crate::capability::service::{Capabilities, Known};
use crate::keys;
use crate::limits::CAPABILITY_LEASE;
use crate::ports::{Key, Outage};
use crate::stored;

use super::body::Body;
use super::place::Place;
use super::record::{CallRecord, Lease};
use super::{Asker, Origin};

/// A call that may be claimed.
pub(super) struct Admitted {
    pub(super) record: CallRecord,
    pub(super) input: String,
    pub(super) target: Arc<Known>,
    /// The target's session on the lock.
    pub(super) session: String,
    /// Its place among the calls of the target.
    pub(super) place: Place,
}

/// Why a call may not run.
#[derive(Debug)]
pub(in crate::capability) struct NotAdmitted {
    pub(in crate::capability) refusal: Refusal,
    /// Who began the chain that is too deep.
    pub(in crate::capability) charged: Option<Slug>,
}

impl<R: Into<Refusal>> From<R> for NotAdmitted {
    fn from(refusal: R) -> Self {
        Self { refusal: refusal.into(), charged: None }
    }
}

/// What a call meets on its lock.
pub(in crate::capability) struct Found {
    pub(in crate::capability) lock: Lock,
    pub(in crate::capability) session: Session,
    pub(in crate::capability) target: Arc<Known>,
}

impl Capabilities {
    pub(super) async fn admit(
        &self,
        origin: &Origin,
        id: &Qualified,
        query: bool,
        body: &Body<'_>,
        call: String,
    ) -> Result<Admitted, NotAdmitted> {
        let found = self.find(origin, id).await?;
        let compiled = match query {
            true => found.target.compiled.query(id),
            false => found.target.compiled.command(id),
        };
        let compiled = compiled.ok_or(Refusal::UnknownCommand)?;
        let declared = &compiled.declared;
        if declared.kind == CommandKind::Start && !found.target.extension.platform_owned {
            return Err(Refusal::StartNotSupported.into());
        }
        let caller = origin.caller();
        let said = found.session.availability.get(id);
        allowed(caller.kind, &declared.invocable_by, said)?;
        let actor = body.actor.unwrap_or(caller.kind);
        if [actor, caller.kind].contains(&Invoker::Keyholder) && !found.lock.has_keyholder {
            return Err(Refusal::InvalidActor.into());
        }
        let link = self.link(origin, &call, body.causation_id.as_deref(), !query).await?;
        compiled.check_input(body.input.as_bytes())?;
        if let Some(reason) = availability::why_not(&found.lock, said) {
            return Err(Refusal::CommandUnavailable { reason: reason.to_owned() }.into());
        }
        if !found.target.is_dispatchable() {
            return Err(Refusal::NotDispatchable.into());
        }
        let place = self.place(&found.target).await?;
        let record = CallRecord {
            id: call,
            session: origin.session.clone().unwrap_or_else(|| found.session.id.clone()),
            capability: id.clone(),
            query,
            caller,
            actor,
            fingerprint: String::new(),
            key: body.idempotency_key.clone(),
            link,
            created_at: self.ports().clock.now(),
            lease: Some(self.lease()),
            ending: None,
        };
        let (input, session) = (body.input.to_owned(), found.session.id);
        Ok(Admitted { record, input, target: found.target, session, place })
    }

    fn lease(&self) -> Lease {
        let ports = self.ports();
        let until = ports.clock.steady().plus(CAPABILITY_LEASE);
        Lease { epoch: ports.store.epoch(), until }
    }

    /// Asks a query on a caller's behalf, without a record: its output, or why there is none.
    pub(in crate::capability) async fn ask(
        &self,
        origin: &Origin,
        Asked { query, by }: Asked<'_>,
        input: String,
    ) -> Result<String, Refusal> {
        let found = self.find(origin, query).await?;
        let compiled = found.target.compiled.query(query).ok_or(Refusal::UnknownCommand)?;
        let said = found.session.availability.get(query);
        // What an extension asks itself for its own fields is its own affair. Another's query is asked by the caller.
        if !query.is_of(by) {
            allowed(origin.caller().kind, &compiled.declared.invocable_by, said)?;
        }
        compiled.check_input(input.as_bytes())?;
        if let Some(reason) = availability::why_not(&found.lock, said) {
            return Err(Refusal::CommandUnavailable { reason: reason.to_owned() });
        }
        if !found.target.is_dispatchable() {
            return Err(Refusal::NotDispatchable);
        }
        let id = super::call_id(self.ports().ids.uuid());
        let place = self.place(&found.target).await?;
        let caller = origin.caller();
        let starter = caller.slug.clone();
        let record = CallRecord {
            session: origin.session.clone().unwrap_or_else(|| found.session.id.clone()),
            capability: query.clone(),
            query: true,
            actor: caller.kind,
            caller,
            fingerprint: String::new(),
            key: None,
            link: link::Link { causation: None, correlation: id.clone(), depth: 1, starter },
            created_at: self.ports().clock.now(),
            lease: None,
            ending: None,
            id,
        };
        let session = found.session.id;
        let admitted = Admitted { record, input, target: found.target, session, place };
        let output = self.deliver(origin, &admitted).await;
        self.leave(admitted.place).await;
        output.map(|output| output.get().to_owned()).map_err(|_| Refusal::OptionsUnavailable)
    }

    /// The lock, the target's session on it, and the target (CH-012).
    pub(in crate::capability) async fn find(
        &self,
        origin: &Origin,
        id: &Qualified,
    ) -> Result<Found, Refusal> {
        let slug = Slug::parse(id.namespace()).map_err(|_| Refusal::NotInstalled)?;
        let (lock, session, target) = try_join3(
            self.read::<Lock>(keys::lock(origin.oid, &origin.lock)),
            self.read::<Session>(keys::session(origin.oid, &origin.lock, &slug)),
            self.known(&slug),
        )
        .await?;
        let (Some(lock), Some(session), Some(target)) = (lock, session, target) else {
            return Err(Refusal::NotInstalled);
        };
        Ok(Found { lock, session, target })
    }

    /// What changes from call to call is read anew for each.
    pub(in crate::capability) async fn read<T: serde::de::DeserializeOwned>(
        &self,
        key: Key,
    ) -> Result<Option<T>, Outage> {
        let item = self.ports().store.get(&key).await?;
        item.map(|item| stored::read(&item, &key.sort)).transpose()
    }

    /// The place of a call or an event in its chain.
    pub(in crate::capability) async fn link(
        &self,
        origin: &Origin,
        id: &str,
        causation: Option<&str>,
        changes: bool,
    ) -> Result<link::Link, NotAdmitted> {
        let extension = match &origin.asker {
            Asker::Extension(known) => Some(&known.extension),
            Asker::Person(_) => None,
        };
        let next = Next { oid: origin.oid, lock: &origin.lock, extension, id, changes };
        match link::next(self.ports(), next, causation).await? {
            Ok(link) => Ok(link),
            Err(charged) => Err(NotAdmitted { refusal: Refusal::DepthExceeded, charged }),
        }
    }
}

impl Known {
    /// Whether there is an endpoint, and credentials for it (CH-029, CH-030).
    pub(in crate::capability) fn is_dispatchable(&self) -> bool {
        self.extension.url.is_some() && self.extension.webhook.is_some()
    }
}

/// CH-008, CH-009, CH-032
pub(in crate::capability) fn allowed(
    caller: Invoker,
    declared: &[Invoker],
    availability: Option<&Availability>,
) -> Result<(), Refusal> {
    let narrowed = availability.and_then(|availability| availability.invocable_by.as_deref());
    let listed = declared.contains(&caller) && narrowed.is_none_or(|list| list.contains(&caller));
    if listed { Ok(()) } else { Err(Refusal::CallerNotAllowed) }
}
