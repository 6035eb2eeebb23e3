//! Who calls: tokens, and what they may do.

pub mod permission;
mod sign_in;
mod token;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};

pub use sign_in::{SignIn, sign_in};
pub use token::{extension_token, verify};

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
    /// What it may do: `*` or single permissions of [`permission::ALL`].
    pub permissions: Vec<String>,
}

impl Caller {
    /// Whether it may do `permission` in `oid`.
    pub fn may(&self, oid: Oid, permission: &str) -> bool {
        self.oid == Some(oid) && self.holds(permission)
    }

    /// Whether its token carries `permission`, in whatever organization it is for.
    pub fn holds(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == "*" || held == permission)
    }

    /// Refuses unless it may do `permission` in `oid` (LC-139).
    pub fn require(&self, oid: Oid, permission: &str) -> Outcome<()> {
        if self.oid != Some(oid) {
            return Err(Fault::new(Code::Forbidden, "the token is not for this organization"));
        }
        if self.holds(permission) {
            return Ok(());
        }
        Err(Fault::new(Code::Forbidden, format!("the token lacks the permission {permission}")))
    }

    /// Depth of a call that it makes, in its chain of calls across extensions.
    pub fn depth(&self) -> u32 {
        match &self.kind {
            CallerKind::Extension { depth, .. } => depth.saturating_add(1),
            CallerKind::Operator | CallerKind::User => 1,
        }
    }

    /// Refuses unless it is the operator.
    pub fn require_operator(&self) -> Outcome<()> {
        match self.kind {
            CallerKind::Operator => Ok(()),
            _ => Err(Fault::new(Code::Forbidden, "only the operator of the platform may do this")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(oid: Option<u128>, permissions: &[&str]) -> Caller {
        Caller {
            kind: CallerKind::User,
            oid: oid.map(|bits| Oid::new(uuid::Uuid::from_u128(bits))),
            ident: "key:1".into(),
            permissions: permissions.iter().map(|&word| word.into()).collect(),
        }
    }

    fn check(caller: &Caller, oid: u128, permission: &str, refusal: Option<&str>) {
        let oid = Oid::new(uuid::Uuid::from_u128(oid));
        let outcome = caller.require(oid, permission);
        assert_eq!(caller.may(oid, permission), refusal.is_none());
        assert_eq!(outcome.err().map(|fault| fault.message), refusal.map(Into::into));
    }

    #[test]
    fn a_permission_counts_in_its_own_organization_only() {
        check(&caller(Some(1), &["org.get"]), 1, "org.get", None);
        check(
            &caller(Some(1), &["org.get"]),
            2,
            "org.get",
            Some("the token is not for this organization"),
        );
        check(&caller(None, &["*"]), 1, "org.get", Some("the token is not for this organization"));
    }

    #[test]
    fn a_star_is_every_permission_and_no_permission_is_the_prefix_of_another() {
        check(&caller(Some(1), &["*"]), 1, "ext.request", None);
        check(
            &caller(Some(1), &["ext", "ext.req"]),
            1,
            "ext.request",
            Some("the token lacks the permission ext.request"),
        );
        // LC-139: a powerless token is denied at use.
        check(&caller(Some(1), &[]), 1, "org.get", Some("the token lacks the permission org.get"));
    }
}
