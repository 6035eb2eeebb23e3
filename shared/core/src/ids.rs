//! Names that come from outside: parsed once, then trusted.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fault::{Code, Fault};
use crate::limits::NAME_BYTES_MAX;

/// An organization: the tenant of the LimaCharlie contract. Always a UUID in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oid(Uuid);

impl Oid {
    /// Reads an organization id in any spelling of a UUID.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| Fault::new(Code::BadRequest, "oid is not a UUID"))
    }

    /// From a UUID.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Its 128 bits, for spreading work.
    pub const fn bits(self) -> u128 {
        self.0.as_u128()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// Whether `text` can be a name of ours: 1 to 128 bytes of ASCII letters, digits, `-`, `_`, `.`, and not dots alone.
///
/// None of the characters that separate parts of a key, a path or a SKU is among them.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.bytes().any(|b| b != b'.')
}

/// The name of an extension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExtensionName(String);

impl ExtensionName {
    /// Reads a name; see [`is_name`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if is_name(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Fault::new(
            Code::BadRequest,
            format!(
                "an extension name has 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes or underscores"
            ),
        ))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExtensionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
