//! Names of the contract: slugs, capability ids, event types, lock ids.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fault::{Code, Fault};

/// Longest slug, and longest name behind it, in characters.
pub const WORD_CHARS_MAX: usize = 40;

/// Longest id of a lock, in characters.
pub const LOCK_ID_CHARS_MAX: usize = 64;

/// Namespaces that belong to the platform (CH-010): no extension has one of them as its slug.
pub const RESERVED_NAMESPACES: &[&str] = &["lock", "default", "chaster", "annex"];

/// `[a-z0-9][a-z0-9-]{0,39}` with `extra` allowed as well after the first character.
fn is_word(text: &str, extra: &[u8]) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|first| plain(*first))
        && bytes.len() <= WORD_CHARS_MAX
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-' || extra.contains(byte))
}

/// The name of a capability extension, which is its namespace too: 1 to 40 lower-case letters, digits and dashes, the
/// first no dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slug(String);

impl Slug {
    /// Reads a slug that an extension may have: none of [`RESERVED_NAMESPACES`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if is_word(text, b"") && !RESERVED_NAMESPACES.contains(&text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Fault::new(
            Code::BadRequest,
            format!(
                "a slug has 1 to {WORD_CHARS_MAX} lower-case letters, digits or dashes, begins with no dash, and is no \
                 namespace of the platform"
            ),
        ))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `<namespace>.<name>`: the id of a command or a query, or the type of an event. The namespace may be one of the
/// platform; whether there is such an extension is another question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Qualified {
    text: String,
    dot: usize,
}

impl Qualified {
    /// Reads `<namespace>.<name>`; `None` where it is not of that form (CH-007). The name may hold underscores too.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('.')?;
        (is_word(namespace, b"") && is_word(name, b"_"))
            .then(|| Self { text: text.to_owned(), dot: namespace.len() })
    }

    /// The whole of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands before the dot: a slug, or a namespace of the platform.
    pub fn namespace(&self) -> &str {
        &self.text[..self.dot]
    }

    /// Whether it is in the namespace of this extension.
    pub fn is_of(&self, slug: &Slug) -> bool {
        self.namespace() == slug.as_str()
    }
}

impl TryFrom<String> for Qualified {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not of the form <namespace>.<name>")
    }
}

impl From<Qualified> for String {
    fn from(id: Qualified) -> Self {
        id.text
    }
}

impl fmt::Display for Qualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The id of a lock inside an organization: 1 to 64 letters, digits, dashes or underscores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LockId(String);

impl LockId {
    /// Reads the id of a lock.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let fits = !text.is_empty()
            && text.len() <= LOCK_ID_CHARS_MAX
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if fits {
            return Ok(Self(text.to_owned()));
        }
        Err(Fault::new(
            Code::BadRequest,
            format!(
                "a lock id has 1 to {LOCK_ID_CHARS_MAX} letters, digits, dashes or underscores"
            ),
        ))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_a_short_lower_case_word_that_the_platform_does_not_own() {
        let check = |text: &str, fits: bool| assert_eq!(Slug::parse(text).is_ok(), fits, "{text}");
        check("a", true);
        check("9-lives", true);
        check(&"a".repeat(WORD_CHARS_MAX), true);
        check(&"a".repeat(WORD_CHARS_MAX + 1), false);
        for bad in ["", "-a", "A", "a.b", "a_b", "é", "a b"] {
            check(bad, false);
        }
        for reserved in RESERVED_NAMESPACES {
            check(reserved, false);
        }
    }

    #[test]
    fn a_qualified_name_is_a_namespace_a_dot_and_a_name() {
        // CH-007
        let check = |text: &str, namespace: Option<&str>| {
            assert_eq!(
                Qualified::parse(text).as_ref().map(Qualified::namespace),
                namespace,
                "{text}"
            );
        };
        check("dice.roll", Some("dice"));
        check("lock.opened", Some("lock"));
        check("a.b_c-d", Some("a"));
        let long = "n".repeat(WORD_CHARS_MAX);
        check(&format!("{long}.{long}"), Some(&long));
        for bad in [
            "",
            "dice",
            "dice.",
            ".roll",
            "dice.Roll",
            "dice.a.b",
            "not an id",
            "dice._a",
            "di_ce.a",
        ] {
            check(bad, None);
        }
        check(&format!("{long}n.a"), None);
        check(&format!("a.{long}n"), None);
    }

    #[test]
    fn a_lock_id_is_a_short_word() {
        let check =
            |text: &str, fits: bool| assert_eq!(LockId::parse(text).is_ok(), fits, "{text}");
        check("65f0c2a1e4b0a1b2c3d4e5f6", true);
        check(&"x".repeat(LOCK_ID_CHARS_MAX), true);
        check(&"x".repeat(LOCK_ID_CHARS_MAX + 1), false);
        for bad in ["", "a#b", "a/b", "a.b", "é"] {
            check(bad, false);
        }
    }
}
