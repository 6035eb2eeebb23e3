//! Who calls: tokens, and what they may do.

use crate::fault::Outcome;
use crate::ids::{ExtensionName, Oid};
use crate::model::{Definition, Subscription};
use crate::ports::Ports;

/// What kind of caller a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerKind {
    /// The operator of the platform: may create organizations and register extensions.
    Operator,
    /// A person or a program with an API key of the organization.
    User,
    /// An extension in an organization, with its granted permissions.
    Extension {
        /// Its name.
        name: ExtensionName,
        /// How deep in a chain of calls the call is that the token was made for.
        depth: u32,
    },
}

/// A caller whose token was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What it is.
    pub kind: CallerKind,
    /// The organization its token is for; `None` only for an operator.
    pub oid: Option<Oid>,
    /// A stable name for records and keys: `operator`, `key:<hash>`, `ext:<name>`, or the `uid` it signed in with.
    pub ident: String,
    /// What it may do: `*` or single permissions.
    pub permissions: Vec<String>,
}

impl Caller {
    /// Whether it may do `permission` in `oid`.
    pub fn may(&self, oid: Oid, permission: &str) -> bool {
        self.oid == Some(oid) && self.permissions.iter().any(|p| p == "*" || p == permission)
    }
}

/// A token for an extension in an organization, with the permissions of its definition (LC-133).
pub fn extension_token(
    _ports: &Ports,
    _oid: Oid,
    _definition: &Definition,
    _subscription: &Subscription,
    _depth: u32,
) -> String {
    unimplemented!("the token module is being written")
}

/// The caller behind a token: its signature, its times, and for an extension that its install still stands.
pub async fn verify(_ports: &Ports, _token: &str) -> Outcome<Caller> {
    unimplemented!("the token module is being written")
}
