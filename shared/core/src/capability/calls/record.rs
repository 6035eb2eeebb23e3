//! The record of a call of a capability: its claim, its state and its answer in one item.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capability::id::{LockId, Qualified, Slug};
use crate::capability::link::Link;
use crate::capability::model::Invoker;
use crate::ids::Oid;
use crate::keys;
use crate::limits::CAPABILITY_CALL_RETENTION;
use crate::ports::{Item, Key, Outage, When, Write};
use crate::stored;
use crate::time::Timestamp;

/// A call of a command or a query, kept 30 days (CH-067). Its members have short names: a small record costs one write
/// unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallRecord {
    /// `inv_` and 32 hexadecimal digits.
    #[serde(rename = "i")]
    pub id: String,
    /// The session of the caller; where a person calls, that of the target.
    #[serde(rename = "n")]
    pub session: String,
    /// What is called.
    #[serde(rename = "p")]
    pub capability: Qualified,
    /// Whether it is a query.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub query: bool,
    /// Who calls.
    #[serde(rename = "w")]
    pub caller: Caller,
    /// On whose behalf.
    #[serde(rename = "a")]
    pub actor: Invoker,
    /// Tells a repeat from another call under the same key.
    #[serde(rename = "f", default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// The caller's key.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it stands in its chain.
    #[serde(rename = "l")]
    pub link: Link,
    /// When it was claimed.
    #[serde(rename = "t")]
    pub created_at: Timestamp,
    /// Who works on it.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// How it ended.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Of which kind.
    #[serde(rename = "type")]
    pub kind: Invoker,
    /// Which extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<Slug>,
}

/// Until when a process works on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Which start of the owner of leases it is of.
    #[serde(rename = "e")]
    pub epoch: u64,
    /// On the steady clock.
    #[serde(rename = "u")]
    pub until: Timestamp,
}

/// How a call ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ending {
    /// When.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// What the target answered, where it succeeded.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// The target's own code, or one of the platform's: see `docs/capability-extensions.md`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the target says that another try may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl CallError {
    /// One of the platform's own.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retryable: None }
    }
}

impl CallRecord {
    /// The item's key.
    pub fn item_key(&self, oid: Oid, lock: &LockId) -> Key {
        keys::capability_call(oid, lock, &self.id)
    }

    /// The write that stores it.
    pub fn write(&self, oid: Oid, lock: &LockId, when: When) -> Write {
        Write::Put {
            key: self.item_key(oid, lock),
            data: serde_json::to_vec(self).expect("a record can be written as JSON"),
            expires_at: Some(self.created_at.plus(CAPABILITY_CALL_RETENTION)),
            when,
        }
    }

    /// The record in an item.
    pub fn read(item: &Item) -> Result<Self, Outage> {
        stored::read(item, "call")
    }

    /// Whether an extension called, or was called.
    pub fn is_known_to(&self, slug: &Slug) -> bool {
        self.caller.slug.as_ref() == Some(slug) || self.capability.is_of(slug)
    }

    /// Whether somebody works on it now.
    pub fn is_leased(&self, steady: Timestamp, epoch: u64) -> bool {
        self.lease.is_some_and(|lease| lease.epoch == epoch && steady < lease.until)
    }

    /// The JSON that callers see.
    pub fn view(&self, lock: &LockId) -> String {
        let ending = self.ending.as_ref();
        let view = View {
            id: &self.id,
            session_id: &self.session,
            lock_id: lock,
            capability: &self.capability,
            caller: &self.caller,
            actor: self.actor,
            status: match ending {
                None => "running",
                Some(Ending { error: None, .. }) => "succeeded",
                Some(_) => "failed",
            },
            output: ending.and_then(|ending| ending.output.as_deref()),
            error: ending.and_then(|ending| ending.error.as_ref()),
            idempotency_key: self.key.as_deref(),
            causation_id: self.link.causation.as_deref(),
            correlation_id: &self.link.correlation,
            depth: self.link.depth,
            created_at: self.created_at.to_string(),
            finished_at: ending.map(|ending| ending.at.to_string()),
            duration_ms: ending.map(|ending| ending.at.since(self.created_at).as_millis()),
        };
        serde_json::to_string(&view).expect("a view can be written as JSON")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    id: &'a str,
    session_id: &'a str,
    lock_id: &'a LockId,
    capability: &'a Qualified,
    caller: &'a Caller,
    actor: Invoker,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a CallError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    correlation_id: &'a str,
    depth: u32,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u128>,
}
