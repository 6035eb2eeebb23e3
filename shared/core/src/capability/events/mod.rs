//! Events: what an extension says has happened on a lock, for whoever listens there.

mod emit;
mod order;
mod read;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::time::Timestamp;

use super::id::{LockId, Qualified, Slug};
use super::link::Link;
use super::model::{Extension, Invoker};

/// An event that was emitted, kept 30 days, hidden or not (CH-068).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventRecord {
    /// `evt_` and 32 hexadecimal digits, ordered by time.
    #[serde(rename = "i")]
    pub id: String,
    /// Its type.
    #[serde(rename = "y")]
    pub event: Qualified,
    /// As it was spelled.
    #[serde(rename = "p")]
    pub payload: Box<RawValue>,
    /// Whether it added no line to the lock's history.
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Who emitted it.
    #[serde(rename = "w")]
    pub source: Slug,
    /// The emitter's session.
    #[serde(rename = "n")]
    pub session: String,
    /// On whose behalf.
    #[serde(rename = "a")]
    pub actor: Invoker,
    /// Where it stands in its chain.
    #[serde(rename = "l")]
    pub link: Link,
    /// When it was emitted.
    #[serde(rename = "t")]
    pub created_at: Timestamp,
}

/// The JSON that extensions see of an event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View<'a> {
    id: &'a str,
    lock_id: &'a LockId,
    #[serde(rename = "type")]
    event: &'a Qualified,
    payload: &'a RawValue,
    hidden: bool,
    source: Source<'a>,
    actor: Invoker,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    correlation_id: &'a str,
    depth: u32,
    created_at: String,
}

#[derive(Serialize)]
struct Source<'a> {
    slug: &'a Slug,
}

impl EventRecord {
    /// Whether an extension may refer to it: its own, one that everybody on the lock can read, or one that is delivered
    /// to it (CH-025, CH-026).
    pub fn is_known_to(&self, extension: &Extension) -> bool {
        let wanted =
            || extension.manifest.subscriptions.iter().any(|want| want.event == self.event);
        self.source == extension.slug || !self.hidden || wanted()
    }

    pub(super) fn view<'a>(&'a self, lock: &'a LockId) -> View<'a> {
        View {
            id: &self.id,
            lock_id: lock,
            event: &self.event,
            payload: &self.payload,
            hidden: self.hidden,
            source: Source { slug: &self.source },
            actor: self.actor,
            causation_id: self.link.causation.as_deref(),
            correlation_id: &self.link.correlation,
            depth: self.link.depth,
            created_at: self.created_at.to_string(),
        }
    }
}
