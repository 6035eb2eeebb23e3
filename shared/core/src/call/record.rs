//! The record of an invocation: its claim, its state and its answer in one item.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits;
use crate::ports::{Item, Outage, When, Write};
use crate::seal::Sealed;
use crate::stored;
use crate::time::Timestamp;
use crate::trace::Trace;

use super::payload::Payload;

/// What is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A call of an action.
    Request {
        /// The action.
        action: String,
        /// Id of an investigation.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        investigation: String,
    },
    /// A platform event.
    Event {
        /// Its name.
        event: String,
    },
    /// An error that the platform met on the extension's behalf.
    ErrorReport,
}

impl Kind {
    /// The action or event, for errors and logs.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Request { action, .. } => action,
            Self::Event { event } => event,
            Self::ErrorReport => "error_report",
        }
    }
}

/// What started an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// A caller of the API: a person, the command line, another extension.
    Api,
    /// A rule.
    Rule,
    /// A continuation.
    Continuation,
    /// The platform itself.
    Platform,
}

impl Origin {
    /// As logs say it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Rule => "rule",
            Self::Continuation => "continuation",
            Self::Platform => "platform",
        }
    }
}

/// Where an invocation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Claimed, waiting for its turn in the dispatch queue.
    Queued,
    /// An attempt is under way.
    Running,
    /// The extension sheds load; the next attempt is in the delay queue.
    Waiting,
    /// Ended with an answer.
    Succeeded,
    /// Ended without one.
    Failed,
}

/// Who works on a running invocation, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    /// On the steady clock.
    #[serde(rename = "u", alias = "until")]
    pub(super) until: Timestamp,
    /// The epoch of the store in which it was taken.
    #[serde(rename = "e", alias = "epoch", default, skip_serializing_if = "is_zero")]
    pub(super) epoch: u64,
}

/// How an invocation ended: what its caller is told, now and at every repeat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ending {
    /// HTTP status.
    pub(super) http: u16,
    /// The data of a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Payload>,
    /// The text of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The code of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    /// When.
    pub(super) at: Timestamp,
}

/// An invocation record.
///
/// Its members have short names, and what is nothing is left out: a store bills each kilobyte of an item. Records that
/// were stored with the long names are read too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Names the invocation; derived from its claim, so that a repeat finds the same item.
    pub(super) id: Uuid,
    /// The tenant.
    pub(super) oid: Oid,
    /// The extension.
    #[serde(rename = "x", alias = "extension")]
    pub(super) extension: ExtensionName,
    /// What is delivered.
    #[serde(rename = "k", alias = "kind")]
    pub(super) kind: Kind,
    /// What started it.
    #[serde(rename = "o", alias = "origin")]
    pub(super) origin: Origin,
    /// Hash of extension, action and data: tells a repeat from another call under the same key.
    #[serde(rename = "f", alias = "fingerprint")]
    pub(super) fingerprint: String,
    /// The idempotency key that the extension sees.
    pub(super) key: String,
    /// The data as it was accepted: defaults applied, secrets not resolved.
    #[serde(rename = "d", alias = "data")]
    pub(super) data: Payload,
    /// Who asked.
    #[serde(rename = "by", alias = "ident")]
    pub(super) ident: String,
    /// The token of the user on whose behalf an impersonated action runs.
    #[serde(
        rename = "u",
        alias = "impersonator",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) impersonator: Option<Sealed>,
    /// Level in its chain of continuations.
    #[serde(rename = "lv", alias = "level", default, skip_serializing_if = "is_zero")]
    pub(super) level: u32,
    /// Depth in its chain of calls across extensions.
    #[serde(rename = "dp", alias = "depth")]
    pub(super) depth: u32,
    /// Names of the secrets that the extension got before in the chain.
    #[serde(rename = "sec", alias = "secrets", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) secrets: Vec<String>,
    /// The trace it is in, where that is another's: its caller's, or that of the call it goes on from.
    #[serde(rename = "t", alias = "trace", default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<Trace>,
    /// The failed invocation that it is a replay of.
    #[serde(rename = "ro", alias = "replay_of", default, skip_serializing_if = "Option::is_none")]
    pub(super) replay_of: Option<Uuid>,
    /// Where it stands.
    #[serde(rename = "s", alias = "status")]
    pub(super) status: Status,
    /// Who works on it.
    #[serde(rename = "l", alias = "lease", default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<Lease>,
    /// Fast attempts that were made.
    #[serde(rename = "a", alias = "attempts", default, skip_serializing_if = "is_zero")]
    pub(super) attempts: u32,
    /// Slow retries that were scheduled.
    #[serde(rename = "sr", alias = "slow_retries", default, skip_serializing_if = "is_zero")]
    pub(super) slow_retries: u32,
    /// When it was claimed; for a continuation, when it was published.
    #[serde(rename = "at", alias = "created_at")]
    pub(super) created_at: Timestamp,
    /// How it ended.
    #[serde(rename = "e", alias = "ending", default, skip_serializing_if = "Option::is_none")]
    pub(super) ending: Option<Ending>,
}

impl Record {
    /// The item's key.
    pub(super) fn item_key(&self) -> crate::ports::Key {
        keys::invocation(self.oid, &self.id.hyphenated().to_string())
    }

    /// The trace it is in.
    pub(super) fn trace(&self) -> Trace {
        self.trace.unwrap_or_else(|| Trace::of(self.id))
    }

    /// The write that stores it.
    pub(super) fn write(&self, when: When) -> Write {
        Write::Put {
            key: self.item_key(),
            data: serde_json::to_vec(self).expect("a record can be written as JSON"),
            expires_at: Some(self.created_at.plus(limits::RECORD_RETENTION)),
            when,
        }
    }

    /// The record in an item.
    pub(super) fn read(item: &Item) -> Result<Self, Outage> {
        stored::read(item, "record")
    }

    /// Whether somebody works on it now.
    pub(super) fn is_leased(&self, now: Timestamp, epoch: u64) -> bool {
        self.status == Status::Running
            && self.lease.is_some_and(|lease| lease.epoch == epoch && now < lease.until)
    }
}

/// For members that are left out.
fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The id that belongs to a claim: the same claim of the same tenant always has the same id, and no two tenants share
/// one.
pub(super) fn id_of(oid: Oid, claim: &[&str]) -> Uuid {
    let oid = oid.to_string();
    let mut parts: Vec<&[u8]> = vec![oid.as_bytes()];
    parts.extend(claim.iter().map(|part| part.as_bytes()));
    keys::uuid_of(&parts)
}
