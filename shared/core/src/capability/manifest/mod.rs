//! What an extension declares: how it is read, and how it is merged into what was declared before.

use crate::fault::{Code, Fault, Outcome};

use super::id::Slug;
use super::model::{Capability, EventDeclaration, EventSubscription, Manifest};

pub mod options;

/// A manifest as it was sent: what is absent keeps what was declared before, an empty list clears it.
#[derive(Debug, Clone, Default)]
pub struct ManifestChange {
    /// What may be called and may change state.
    pub commands: Option<Vec<Capability>>,
    /// What may be called and changes nothing.
    pub queries: Option<Vec<Capability>>,
    /// What is emitted.
    pub events: Option<Vec<EventDeclaration>>,
    /// What it wants to hear of others on the same lock.
    pub subscriptions: Option<Vec<EventSubscription>>,
}

impl ManifestChange {
    /// The manifest after the change of `before`. Refused where the two do not go together: an id that is a command and
    /// a query, or more than a manifest holds.
    pub fn apply(self, before: &Manifest) -> Outcome<Manifest> {
        let after = Manifest {
            commands: self.commands.unwrap_or_else(|| before.commands.clone()),
            queries: self.queries.unwrap_or_else(|| before.queries.clone()),
            events: self.events.unwrap_or_else(|| before.events.clone()),
            subscriptions: self.subscriptions.unwrap_or_else(|| before.subscriptions.clone()),
        };
        Ok(after)
    }
}

/// Reads what an extension sent as its manifest: `{"slug"?, "commands"?, "queries"?, "events"?, "subscriptions"?}`.
///
/// Everything about it is checked, its schemas too. A fault is a 400 that names the first place that is wrong.
pub fn read(slug: &Slug, body: &[u8]) -> Outcome<ManifestChange> {
    let _ = (slug, body);
    Err(Fault::new(Code::BadRequest, "manifests are not read yet"))
}
