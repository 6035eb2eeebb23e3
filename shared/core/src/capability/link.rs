//! Chains of calls and events: what caused what, how deep, and who began it.

use serde::{Deserialize, Serialize};

use crate::ids::Oid;
use crate::keys;
use crate::limits::CAPABILITY_DEPTH_MAX;
use crate::ports::{Outage, Ports};
use crate::stored;

use super::calls::record::CallRecord;
use super::events::EventRecord;
use super::id::{LockId, Slug};
use super::model::Extension;
use super::refusal::Refusal;

/// Where a call or an event stands in its chain. The first link is its own correlation, at depth 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The call or event that caused it.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub causation: Option<String>,
    /// The first link of the chain.
    #[serde(rename = "r")]
    pub correlation: String,
    /// Links from the first one on, itself included.
    #[serde(rename = "d")]
    pub depth: u32,
    /// The extension that began the chain; `None`: a person did.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub starter: Option<Slug>,
}

/// Prefix of the ids of calls.
pub const CALL_ID: &str = "inv_";

/// Prefix of the ids of events.
pub const EVENT_ID: &str = "evt_";

/// Who wants to be the next link.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// The tenant.
    pub oid: Oid,
    /// The lock.
    pub lock: &'a LockId,
    /// The extension; `None`: a person.
    pub extension: Option<&'a Extension>,
    /// Its own id.
    pub id: &'a str,
    /// Whether it may change something: a query, while it runs, may cause nothing that does.
    pub changes: bool,
}

/// The link after the one that `causation` names, or the first of a chain (CH-025, CH-026, CH-056 to CH-058).
///
/// The inner error of a chain that is too deep is its starter, which the refusal is charged to (CH-059).
pub async fn next(
    ports: &Ports,
    next: Next<'_>,
    causation: Option<&str>,
) -> Result<Result<Link, Option<Slug>>, Refusal> {
    let starter = next.extension.map(|extension| extension.slug.clone());
    let Some(causation) = causation else {
        let correlation = next.id.to_owned();
        return Ok(Ok(Link { causation: None, correlation, depth: 1, starter }));
    };
    let cause = cause(ports, &next, causation).await?.ok_or(Refusal::InvalidCausation)?;
    if CAPABILITY_DEPTH_MAX <= cause.depth {
        return Ok(Err(cause.starter));
    }
    Ok(Ok(Link {
        causation: Some(causation.to_owned()),
        correlation: cause.correlation,
        depth: cause.depth + 1,
        starter: cause.starter,
    }))
}

/// The link of a call or an event that the next one may refer to.
async fn cause(ports: &Ports, next: &Next<'_>, causation: &str) -> Result<Option<Link>, Outage> {
    if !is_id(causation) {
        return Ok(None);
    }
    if causation.starts_with(CALL_ID) {
        let key = keys::capability_call(next.oid, next.lock, causation);
        let Some(item) = ports.store.get(&key).await? else { return Ok(None) };
        let record: CallRecord = stored::read(&item, "call")?;
        let known = match next.extension {
            Some(extension) => record.is_known_to(&extension.slug),
            None => record.caller.slug.is_none(),
        };
        return Ok((known && !(record.query && next.changes)).then_some(record.link));
    }
    let key = crate::ports::Key::new(keys::lock_events(next.oid, next.lock), causation);
    let Some(item) = ports.store.get(&key).await? else { return Ok(None) };
    let record: EventRecord = stored::read(&item, "event")?;
    let known = next.extension.is_some_and(|extension| record.is_known_to(extension));
    Ok(known.then_some(record.link))
}

/// Whether a text can be an id of ours at all: nothing else reaches a key.
pub(super) fn is_id(text: &str) -> bool {
    let rest = text.strip_prefix(CALL_ID).or_else(|| text.strip_prefix(EVENT_ID));
    rest.is_some_and(|hex| {
        hex.len() == 32 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}
