//! What may be called and heard of on a lock.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::keys;

use super::availability::why_not;
use super::calls::Origin;
use super::id::{Qualified, Slug};
use super::message::Named;
use super::model::{Capability, CommandKind, EventDeclaration, Invoker, Lock, Session};
use super::refusal::Refusal;
use super::service::Capabilities;

#[derive(Default, Serialize)]
struct Listing<'a> {
    commands: Vec<Shown<'a>>,
    queries: Vec<Shown<'a>>,
    events: Vec<ShownEvent<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    id: &'a Qualified,
    extension: Named<'a>,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a RawValue>,
    invocable_by: Vec<Invoker>,
    kind: CommandKind,
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEvent<'a> {
    #[serde(rename = "type")]
    event: &'a Qualified,
    extension: Named<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    payload_schema: &'a RawValue,
}

impl Capabilities {
    /// The commands, queries and visible events of every extension on a lock, as they are there right now: JSON
    /// `{commands, queries, events}`.
    pub async fn listing(&self, origin: &Origin) -> Result<String, Refusal> {
        let lock: Option<Lock> = self.read(keys::lock(origin.oid, &origin.lock)).await?;
        let lock = lock.ok_or(Refusal::NotInstalled)?;
        let mut found = Vec::new();
        for slug in lock.sessions.keys() {
            let key = keys::session(origin.oid, &origin.lock, slug);
            if let Some(session) = self.read::<Session>(key).await?
                && let Some(known) = self.known(slug).await?
            {
                found.push((session, known));
            }
        }
        let mut listing = Listing::default();
        for (session, known) in &found {
            let manifest = &known.extension.manifest;
            let show = |capability| shown(&known.extension.slug, capability, session, &lock);
            listing.commands.extend(manifest.commands.iter().map(show));
            listing.queries.extend(manifest.queries.iter().map(show));
            let visible = manifest.events.iter().filter(|event| !event.hidden);
            listing.events.extend(visible.map(|event| shown_event(&known.extension.slug, event)));
        }
        Ok(serde_json::to_string(&listing).expect("a listing can be written as JSON"))
    }
}

fn shown<'a>(
    slug: &'a Slug,
    capability: &'a Capability,
    session: &'a Session,
    lock: &Lock,
) -> Shown<'a> {
    let availability = session.availability.get(&capability.id);
    let narrowed = availability.and_then(|found| found.invocable_by.as_deref());
    let mut invocable_by = capability.invocable_by.clone();
    invocable_by.retain(|invoker| narrowed.is_none_or(|list| list.contains(invoker)));
    let reason = why_not(lock, availability);
    Shown {
        id: &capability.id,
        extension: Named { slug },
        title: &capability.title,
        description: capability.description.as_deref(),
        input_schema: &capability.input_schema,
        output_schema: capability.output_schema.as_deref(),
        invocable_by,
        kind: capability.kind,
        available: reason.is_none(),
        reason,
    }
}

fn shown_event<'a>(slug: &'a Slug, event: &'a EventDeclaration) -> ShownEvent<'a> {
    ShownEvent {
        event: &event.event,
        extension: Named { slug },
        title: event.title.as_deref(),
        payload_schema: &event.payload_schema,
    }
}
