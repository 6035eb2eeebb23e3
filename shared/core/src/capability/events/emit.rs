//! Emitting events, and reading them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capability::calls::body::{actor, members, nothing};
use crate::capability::calls::{Asker, NotAdmitted, Origin};
use crate::capability::history::{self, HistoryLine};
use crate::capability::id::{Qualified, RESERVED_NAMESPACES};
use crate::capability::link::{EVENT_ID, is_id};
use crate::capability::message::Named;
use crate::capability::model::{Extension, Invoker, Lock};
use crate::capability::outbox::{self, Change, Place, What};
use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::fault::{Code, Fault};
use crate::keys;
use crate::limits::{HIDDEN_EVENT_RETENTION, LOCK_EVENTS_LISTED_MAX};
use crate::ports::{Key, Query, When, Write};
use crate::stored;

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
            Err(not) => Err(self.refuse(origin, not).await?),
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
        let event = event_type(extension, &body.event)?;
        let compiled = known.compiled.event(&event).ok_or(Refusal::UnknownEvent)?;
        let actor = body.actor.as_deref().map(actor).transpose()?.unwrap_or(Invoker::Extension);
        let lock: Option<Lock> = self.read(keys::lock(origin.oid, &origin.lock)).await?;
        let lock = lock.ok_or(Refusal::NotInstalled)?;
        if actor == Invoker::Keyholder && !lock.has_keyholder {
            return Err(Refusal::InvalidActor.into());
        }
        let id = format!("{EVENT_ID}{}", ports.ids.uuid().simple());
        let link = self.link(origin, &id, body.causation_id.as_deref(), true).await?;
        compiled.check_payload(body.payload.get().as_bytes())?;
        let payload = body.payload.to_owned();
        let record = EventRecord {
            id,
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

    async fn publish(
        &self,
        origin: &Origin,
        record: EventRecord,
        lock: &Lock,
    ) -> Result<String, Refusal> {
        let (ports, oid) = (self.ports(), origin.oid);
        let view = serde_json::to_string(&record.view(&origin.lock));
        let view = view.expect("a view can be written as JSON");
        let mut change = Change::of(Write::Put {
            key: Key::new(keys::lock_events(oid, &origin.lock), record.id.clone()),
            data: stored::bytes(&record),
            expires_at: Some(record.created_at.plus(HIDDEN_EVENT_RETENTION)),
            when: When::Always,
        });
        if !record.hidden {
            let line = self.line(origin, &record);
            history::add(ports, &mut change, (oid, &origin.lock), lock, &line).await?;
        }
        for (slug, session) in &lock.sessions {
            let Some(listener) = self.known(slug).await? else { continue };
            let wants = &listener.extension.manifest.subscriptions;
            for want in wants.iter().filter(|want| want.event == record.event) {
                let place = Place { oid, lock: origin.lock.clone(), extension: slug.clone() };
                match &want.command {
                    Some(command) => {
                        let what = What::Call(command.clone());
                        change.post(ports, place, what, outbox::raw(&record));
                    }
                    None if listener.extension.url.is_some() => {
                        let data = Emitted {
                            session_id: session,
                            extension: Named { slug },
                            event: record.view(&origin.lock),
                        };
                        let what = What::Event(EMITTED.to_owned());
                        change.post(ports, place, what, outbox::raw(&data));
                    }
                    None => {}
                }
            }
        }
        change.commit(ports).await?;
        Ok(view)
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

    /// The events of a lock that an extension may read, from after `after` on, oldest first:
    /// `{"results": [...], "hasMore": bool}`.
    pub async fn events(
        &self,
        origin: &Origin,
        after: Option<&str>,
        limit: usize,
    ) -> Result<String, Refusal> {
        let Asker::Extension(known) = &origin.asker else {
            return Err(Refusal::ForeignNamespace);
        };
        let mut query = Query::prefix(keys::lock_events(origin.oid, &origin.lock), EVENT_ID);
        if let Some(after) = after {
            if !is_id(after) || !after.starts_with(EVENT_ID) {
                let text = "after is no id of an event";
                return Err(Fault::new(Code::BadRequest, text).into());
            }
            query.from = format!("{after}!");
        }
        let limit = limit.clamp(1, LOCK_EVENTS_LISTED_MAX);
        query.limit = limit + 1;
        let mut found: Vec<EventRecord> = Vec::new();
        // One more than asked for: that a page is full does not say whether anything follows.
        'pages: loop {
            let page = self.ports().store.query(query.clone()).await?;
            for (sort, item) in page.items {
                let record: EventRecord = stored::read(&item, &sort)?;
                if record.is_known_to(&known.extension) {
                    found.push(record);
                }
                if limit < found.len() {
                    break 'pages;
                }
            }
            match page.next {
                None => break,
                Some(next) => query.from = next,
            }
        }
        let more = limit < found.len();
        found.truncate(limit);
        let results: Vec<_> = found.iter().map(|record| record.view(&origin.lock)).collect();
        let json = serde_json::json!({ "results": results, "hasMore": more });
        Ok(json.to_string())
    }
}

/// The type of an event that this extension may emit (CH-010, CH-011, CH-015).
fn event_type(extension: &Extension, text: &str) -> Result<Qualified, Refusal> {
    let namespace = text.split_once('.').map_or(text, |(namespace, _)| namespace);
    if RESERVED_NAMESPACES.contains(&namespace) {
        return Err(Refusal::ReservedNamespace);
    }
    let event = Qualified::parse(text).ok_or(Refusal::UnknownEvent)?;
    if event.is_of(&extension.slug) { Ok(event) } else { Err(Refusal::ForeignNamespace) }
}
