//! What the platform stores about capability extensions, locks and sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ids::Oid;
use crate::seal::Sealed;
use crate::time::Timestamp;

use super::id::{LockId, Qualified, Slug};

/// A capability extension: the published thing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Extension {
    /// Its name and namespace, unique on the platform.
    pub slug: Slug,
    /// Where its calls and webhooks go; `None`: it receives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The Basic credentials that calls and webhooks carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Credentials>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether it belongs to the platform itself, and may offer `start` commands.
    #[serde(default)]
    pub platform_owned: bool,
    /// Hex SHA-256 of its developer token.
    pub developer_token: String,
    /// What it declared last.
    #[serde(default)]
    pub manifest: Manifest,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed, its manifest included.
    pub updated_at: Timestamp,
}

/// HTTP Basic credentials (RFC 7617).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// No colon in it.
    pub username: String,
    /// Bound to the extension's slug.
    pub password: Sealed,
}

/// What an extension declares.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// What may be called and may change state.
    #[serde(default)]
    pub commands: Vec<Capability>,
    /// What may be called and changes nothing.
    #[serde(default)]
    pub queries: Vec<Capability>,
    /// What it emits.
    #[serde(default)]
    pub events: Vec<EventDeclaration>,
    /// What it wants to hear of others on the same lock.
    #[serde(default)]
    pub subscriptions: Vec<EventSubscription>,
}

/// A command or a query.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// `<slug>.<name>`, unique over commands and queries.
    pub id: Qualified,
    /// For people.
    pub title: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema (2020-12) of its input.
    pub input_schema: Box<RawValue>,
    /// JSON Schema (2020-12) of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Who may call it.
    pub invocable_by: Vec<Invoker>,
    /// A command is `call` or `start`; a query always `call`.
    #[serde(default)]
    pub kind: CommandKind,
}

/// Who calls, technically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Invoker {
    /// The person whose lock it is.
    Wearer,
    /// The person who holds its key.
    Keyholder,
    /// Another extension on the lock.
    Extension,
}

impl Invoker {
    /// Reads a word, the one of the neighbouring documents for the wearer too.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "wearer" | "user" => Some(Self::Wearer),
            "keyholder" => Some(Self::Keyholder),
            "extension" => Some(Self::Extension),
            _ => None,
        }
    }

    /// The word that travels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wearer => "wearer",
            Self::Keyholder => "keyholder",
            Self::Extension => "extension",
        }
    }
}

/// What kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandKind {
    /// Runs and answers.
    #[default]
    Call,
    /// Starts something; only a platform-owned extension's may be called (CH-028).
    Start,
}

/// An event that an extension emits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDeclaration {
    /// `<slug>.<name>`.
    #[serde(rename = "type")]
    pub event: Qualified,
    /// For people; the title of its history line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// JSON Schema (2020-12) of its payload.
    pub payload_schema: Box<RawValue>,
    /// A hidden one adds no line to the lock's history.
    #[serde(default)]
    pub hidden: bool,
}

/// An event that an extension wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSubscription {
    /// Its type.
    #[serde(rename = "type")]
    pub event: Qualified,
    /// A command of its own that is called with the payload; `None`: a webhook is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Qualified>,
}

/// A lock: the scope that sessions live on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Where it stands.
    pub status: LockStatus,
    /// Whether somebody holds its key.
    pub has_keyholder: bool,
    /// Whether its time stands still.
    #[serde(default)]
    pub frozen: bool,
    /// The ids of its sessions, by extension: at most [`SESSIONS_PER_LOCK_MAX`](crate::limits::SESSIONS_PER_LOCK_MAX).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<Slug, String>,
    /// When its first session was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Lock {
    /// A new one, active, without sessions.
    pub const fn new(has_keyholder: bool, at: Timestamp) -> Self {
        Self {
            status: LockStatus::Locked,
            has_keyholder,
            frozen: false,
            sessions: BTreeMap::new(),
            created_at: at,
            updated_at: at,
        }
    }
}

/// Where a lock stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockStatus {
    /// Active.
    #[default]
    Locked,
    /// Ended.
    Unlocked,
    /// Ended without an end.
    Deserted,
}

impl LockStatus {
    /// Every status.
    pub const ALL: &[Self] = &[Self::Locked, Self::Unlocked, Self::Deserted];

    /// The word that travels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Unlocked => "unlocked",
            Self::Deserted => "deserted",
        }
    }

    /// The status with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.word() == word)
    }
}

/// The install of an extension on a lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// 32 hexadecimal digits, ordered by time.
    pub id: String,
    /// The tenant.
    pub oid: Oid,
    /// The lock.
    pub lock: LockId,
    /// The extension.
    pub extension: Slug,
    /// A JSON object.
    pub config: Box<RawValue>,
    /// A JSON object.
    pub data: Box<RawValue>,
    /// A JSON object.
    pub metadata: Box<RawValue>,
    /// What the extension last said of its own capabilities on this lock, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub availability: BTreeMap<Qualified, Availability>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Whether a capability may be called on a lock right now. It narrows what the manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// Whether it may.
    pub available: bool,
    /// Why not: `details.reason` of the refusal (CH-021).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who may call it; `None`: whom the manifest names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocable_by: Option<Vec<Invoker>>,
}

/// Where a session lies, in the index by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlace {
    /// The tenant.
    pub oid: Oid,
    /// The lock.
    pub lock: LockId,
}
