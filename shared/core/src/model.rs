//! What the platform stores about organizations and extensions, as JSON in the items' data.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ids::{ExtensionName, Oid};
use crate::seal::Sealed;
use crate::time::Timestamp;

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Org {
    /// Its id.
    pub oid: Oid,
    /// What people call it.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Set once it is deleted: from then on it is absent to everybody, and its data goes step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Deletion>,
}

/// The deletion of an organization, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// When it began.
    pub at: Timestamp,
    /// Who asked for it.
    pub by: String,
    /// What is to be done next.
    pub step: DeletionStep,
    /// Where the step goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The steps of a deletion, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeletionStep {
    /// Its extensions are told, as if it had unsubscribed.
    Unsubscribe,
    /// They clean up, and what is under way ends.
    Grace,
    /// The items of an area are removed.
    Remove(Area),
}

/// Where an organization has data: one partition, or those of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Invocation records.
    Invocations,
    /// Telemetry events.
    Telemetry,
    /// Marks of deliveries to adapters.
    EventPosts,
    /// Errors.
    Errors,
    /// Usage counters.
    Usage,
    /// Marks of usage reports.
    Metered,
    /// Locks: their sessions, history, events, calls, rates, and what waits to be delivered.
    Scopes,
    /// The organization itself, its API keys, subscriptions, hive records and installation keys.
    Settings,
}

impl Area {
    /// Every area. The settings are last: the organization itself is among them.
    pub const ALL: &[Self] = &[
        Self::Invocations,
        Self::Telemetry,
        Self::EventPosts,
        Self::Errors,
        Self::Usage,
        Self::Metered,
        Self::Scopes,
        Self::Settings,
    ];

    /// The area after this one.
    pub fn after(self) -> Option<Self> {
        let at = Self::ALL.iter().position(|area| *area == self)?;
        Self::ALL.get(at + 1).copied()
    }
}

/// An API key of an organization. The key itself is not stored; its keyed hash names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// What people call it.
    pub name: String,
    /// What its tokens may do.
    pub permissions: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// The key of the ring that makes its hash.
    #[serde(default = "first_ring_key")]
    pub hashed_with: u32,
    /// Its hash under a newer key of the ring, made when it was used: it is found by that once the older key is gone.
    /// What names it stays its first hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehashed: Option<Rehash>,
}

/// What the ring had when a stored API key did not yet say so.
const fn first_ring_key() -> u32 {
    1
}

/// One more hash of an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehash {
    /// The key of the ring that makes it.
    pub with: u32,
    /// The hash, in hexadecimal.
    pub hash: String,
}

impl ApiKey {
    /// The newest key of the ring that it is found by.
    pub fn found_with(&self) -> u32 {
        self.rehashed.as_ref().map_or(self.hashed_with, |rehash| rehash.with)
    }
}

/// An extension definition: the published thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name, unique on the platform.
    pub name: ExtensionName,
    /// Where its webhooks go.
    pub url: String,
    /// The shared secret that signs them. Bound to the extension's name.
    pub secret: Sealed,
    /// The secret before, while both verify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<PreviousSecret>,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// What its own tokens may do in an organization that is subscribed.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Extensions that an organization must be subscribed to first.
    #[serde(default)]
    pub required_extensions: Vec<ExtensionName>,
    /// Labels such as `segment` or `bulk`; kept and shown.
    #[serde(default)]
    pub flairs: Vec<String>,
    /// The events it wants; `None`: what its schema says.
    #[serde(default)]
    pub events: Option<Vec<String>>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed. A change empties the schema cache of its extension.
    pub updated_at: Timestamp,
}

/// The shared secret that another one takes over from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    /// Bound as the current one.
    pub secret: Sealed,
    /// From when on it is worth nothing.
    pub until: Timestamp,
}

/// An install: an organization's subscription to an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The extension.
    pub extension: ExtensionName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Grows with each re-key: tokens of an earlier generation are refused.
    pub generation: u32,
    /// When it was removed. Such an entry stays for [`crate::limits::REMOVED_INSTALL_GRACE`], so that the extension
    /// can clean up with the token of its `unsubscribe` event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

/// A hive record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HiveRecord {
    /// The record's data: a JSON object, byte for byte as it was written; sealed where it can hold secrets.
    pub data: HiveData,
    /// What the user may set beside the data.
    pub user: UserMetadata,
    /// A version of data and user metadata.
    pub etag: String,
    /// A UUID of the record.
    pub guid: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// When it was last changed.
    pub last_mod: Timestamp,
    /// Who changed it last.
    pub last_author: String,
}

/// The data of a hive record, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiveData {
    /// As it is.
    Plain(Box<RawValue>),
    /// Sealed, bound to organization, hive and name.
    Sealed(Sealed),
}

/// User metadata of a hive record. Times are in milliseconds, 0: never.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMetadata {
    /// A disabled record is kept and not used.
    pub enabled: bool,
    /// Labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// For people.
    #[serde(default)]
    pub comment: String,
    /// From when on the record is gone; 0: never.
    #[serde(default)]
    pub expiry: i64,
}

impl Default for UserMetadata {
    fn default() -> Self {
        Self { enabled: true, tags: Vec::new(), comment: String::new(), expiry: 0 }
    }
}

/// An installation key: names where telemetry comes from, and tags it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationKey {
    /// Its id, a UUID.
    pub iid: String,
    /// For people, and for the extension that made it to find it again.
    pub desc: String,
    /// Tags of what comes in with it.
    pub tags: Vec<String>,
    /// Kept and shown.
    pub use_public_root_ca: bool,
    /// When it was made or last changed.
    pub created_at: Timestamp,
}
