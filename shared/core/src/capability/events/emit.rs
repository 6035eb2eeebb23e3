//! Emitting events.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capability::calls::body::{actor, members, nothing};
use crate::capability::calls::{Asker, NotAdmitted, Origin};
use crate::capability::history::{self, HistoryLine};
use crate::capability::id::{Qualified, RESERVED_NAMESPACES};
use crate::capability::message::Named;
use crate::capability::model::{Extension, Invoker, Lock};
use crate::capability::outbox::{self, Change, Place, What};
use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::keys;
use crate::limits::HIDDEN_EVENT_RETENTION;
use crate::ports::{Committed, Key, When, Write};
use crate::stored;

use super::order::{self, Turn};
use super::{EventRecord, View};

/// The event of the webhooks that carry an event to those who want it.
const EMITTED: &str = "event.emitted";

/// What a listener is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Emitted<'a> {
    session_id: &'a str,
    extension: Named<'a>,
    event: View<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body<'a> {
    #[serde(rename = "type")]
    event: String,
    #[serde(borrow, default = "nothing")]
    payload: &'a RawValue,
    #[serde(default)]
    actor: Option<String>,
    #[serde(default)]
    causation_id: Option<String>,
}

impl Capabilities {
    /// Emits an event: it is kept, has its line in the lock's history unless it is hidden, and is on its way to those who
    /// want it, in one step. Answers the event's JSON.
    pub async fn emit(&self, origin: &Origin, body: &[u8]) -> Result<String, Refusal> {
        self.count(origin).await?;
        match self.admit_event(origin, body).await {
            Ok((record, lock)) => self.publish(origin, record, &lock).await,
            Err(not) => Err(self.refuse(origin, origin.caller().slug.as_ref(), not).await?),
        }
    }

    async fn admit_event(
        &self,
        origin: &Origin,
        body: &[u8],
    ) -> Result<(EventRecord, Lock), NotAdmitted> {
        let Asker::Extension(known) = &origin.asker else {
            return Err(Refusal::ForeignNamespace.into());
        };
        let (extension, ports) = (&known.extension, self.ports());
        let body: Body<'_> = members(body)?;
        let actor = body.actor.as_deref().map(actor).transpose()?.unwrap_or(Invoker::Extension);
        let event = event_type(extension, &body.event)?;
        let compiled = known.compiled.event(&event).ok_or(Refusal::UnknownEvent)?;
        let lock: Option<Lock> = self.read(keys::lock(origin.oid, &origin.lock)).await?;
        let lock = lock.ok_or(Refusal::NotInstalled)?;
        if actor == Invoker::Keyholder && !lock.has_keyholder {
            return Err(Refusal::InvalidActor.into());
        }
        let link = self.link(origin, "", body.causation_id.as_deref(), true).await?;
        compiled.check_payload(body.payload.get().as_bytes())?;
        let payload = body.payload.to_owned();
        let record = EventRecord {
            id: String::new(),
            event,
            payload,
            hidden: compiled.declared.hidden,
            source: extension.slug.clone(),
            session: origin.session.clone().unwrap_or_default(),
            actor,
            link,
            created_at: ports.clock.now(),
        };
        Ok((record, lock))
    }

    /// Gives an event its place among those of the lock, and writes it with all that comes of it.
    async fn publish(
        &self,
        origin: &Origin,
        mut record: EventRecord,
        lock: &Lock,
    ) -> Result<String, Refusal> {
        let ports = self.ports();
        let mut last = ports.store.get(&keys::event_order(origin.oid, &origin.lock)).await?;
        loop {
            let turn = order::next(ports, origin.oid, &origin.lock, last.as_ref())?;
            record.id = turn.id(ports);
            if record.link.causation.is_none() {
                record.link.correlation.clone_from(&record.id);
            }
            match self.change(origin, &record, lock, turn).await?.commit(ports).await? {
                Committed::Done => {
                    let view = serde_json::to_string(&record.view(&origin.lock));
                    return Ok(view.expect("a view can be written as JSON"));
                }
                // Another event was faster. Each round, one of them gets through.
                Committed::Lost { found, .. } => last = found,
            }
        }
    }

    /// All that an event is: itself, its line in the history, and what its listeners are told.
    async fn change(
        &self,
        origin: &Origin,
        record: &EventRecord,
        lock: &Lock,
        turn: Turn,
    ) -> Result<Change, Refusal> {
        let (ports, oid) = (self.ports(), origin.oid);
        let mut change = Change::of(turn.write.clone());
        change.writes.push(Write::Put {
            key: Key::new(keys::lock_events(oid, &origin.lock), record.id.clone()),
            data: stored::bytes(record),
            expires_at: Some(record.created_at.plus(HIDDEN_EVENT_RETENTION)),
            when: When::Always,
        });
        if !record.hidden {
            let line = self.line(origin, record);
            history::add(ports, &mut change, (oid, &origin.lock), lock, &line).await?;
        }
        for (slug, session) in &lock.sessions {
            let Some(listener) = self.known(slug).await? else { continue };
            let place = Place { oid, lock: origin.lock.clone(), extension: slug.clone() };
            let wants = &listener.extension.manifest.subscriptions;
            for want in wants.iter().filter(|want| want.event == record.event) {
                let (what, data) = match &want.command {
                    Some(command) => (What::Call(command.clone()), outbox::raw(record)),
                    None if listener.extension.url.is_some() => {
                        let (extension, event) = (Named { slug }, record.view(&origin.lock));
                        let told = Emitted { session_id: session, extension, event };
                        (What::Event(EMITTED.to_owned()), outbox::raw(&told))
                    }
                    None => continue,
                };
                change.post_as(ports, turn.place(ports), place.clone(), what, data);
            }
        }
        Ok(change)
    }

    /// The line of a visible event in the history of its lock.
    fn line(&self, origin: &Origin, record: &EventRecord) -> HistoryLine {
        let title = self.title(origin, record);
        let mut line =
            HistoryLine::new(self.ports(), record.event.as_str(), &title, Some(&record.source));
        line.payload.clone_from(&record.payload);
        line.role = record.actor.into();
        line.prefix = record.source.to_string();
        line
    }

    fn title(&self, origin: &Origin, record: &EventRecord) -> String {
        let declared = match &origin.asker {
            Asker::Extension(known) => known.compiled.event(&record.event),
            Asker::Person(_) => None,
        };
        let title = declared.and_then(|event| event.declared.title.clone());
        title.unwrap_or_else(|| record.event.to_string())
    }
}

/// The type of an event that this extension may emit (CH-010, CH-011, CH-015).
fn event_type(extension: &Extension, text: &str) -> Result<Qualified, Refusal> {
    let namespace = text.split_once('.').map_or(text, |(namespace, _)| namespace);
    if RESERVED_NAMESPACES.contains(&namespace) {
        return Err(Refusal::ReservedNamespace);
    }
    if namespace != extension.slug.as_str() {
        return Err(Refusal::ForeignNamespace);
    }
    Qualified::parse(text).ok_or(Refusal::UnknownEvent)
}
