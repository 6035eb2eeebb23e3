//! JSON text that passes through unchanged: checked, never rebuilt from numbers and maps.
//!
//! What callers and extensions send travels byte for byte: the order of keys, the spelling of numbers and of escapes
//! survive every hop. So values are kept as text, and only what must be known of them is read.
//!
//! **Invariant:** everything here takes linear time and a stack of fixed size, whatever the text holds.

mod canonical;
mod first;
mod number;
mod object;
mod scan;
mod string;

pub use canonical::canonical;
pub use first::First;
pub use number::{go_safe, is_integral};
pub use object::Object;
pub use scan::{Container, Scanner, Token};
pub use string::{decode, escape_into, quote, text};

use crate::limits::{JSON_DEPTH_MAX, JSON_MEMBERS_MAX};

/// Why a text is not the JSON that is asked for. The displayed texts are stable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// A byte that is not part of valid UTF-8.
    #[error("not valid UTF-8 at byte {at}")]
    NotUtf8 {
        /// Bytes before it.
        at: usize,
    },
    /// A character that the grammar of RFC 8259 does not allow there.
    #[error("not valid JSON at byte {at}")]
    Syntax {
        /// Bytes before it.
        at: usize,
    },
    /// The text ends inside a value, or holds none.
    #[error("not valid JSON: the text ends early")]
    Early,
    /// A container deeper than [`JSON_DEPTH_MAX`] levels.
    #[error("nested deeper than {JSON_DEPTH_MAX} levels at byte {at}")]
    Deep {
        /// Bytes before it.
        at: usize,
    },
    /// An escape of one half of a surrogate pair: no text has such a character.
    #[error("a lone surrogate escape at byte {at}")]
    LoneSurrogate {
        /// Bytes before it.
        at: usize,
    },
    /// Valid, but not an object.
    #[error("not a JSON object")]
    NotObject,
    /// A key that stands twice in an object that is read strictly.
    #[error("the key \"{key}\" stands twice")]
    DoubledKey {
        /// The key, cut at [`KEY_CHARS_SHOWN`] characters.
        key: String,
    },
    /// More members than [`JSON_MEMBERS_MAX`].
    #[error("more than {JSON_MEMBERS_MAX} members in an object")]
    Members,
}

/// Characters of a doubled key that a fault shows.
pub const KEY_CHARS_SHOWN: usize = 100;

/// Checks that `bytes` are one valid JSON text, nested at most [`JSON_DEPTH_MAX`] levels, without lone surrogates.
///
/// Doubled keys pass: this is for data that passes through.
pub fn check(bytes: &[u8]) -> Result<&str, JsonFault> {
    let text = utf8(bytes)?;
    count(text)?;
    Ok(text)
}

/// Checks as [`check`] does, and says how many keys and values there are, the root included.
pub fn count(text: &str) -> Result<usize, JsonFault> {
    let mut scanner = Scanner::new(text);
    let mut count = 0;
    while let Some(token) = scanner.token()? {
        count += usize::from(!matches!(token, Token::Close(_)));
    }
    Ok(count)
}

/// The raw texts of the elements of a checked array; none for anything else.
pub fn elements(raw: &str) -> impl Iterator<Item = &str> {
    let mut scanner = Scanner::new(raw);
    let is_array = matches!(scanner.token(), Ok(Some(Token::Open(Container::Array))));
    std::iter::from_fn(move || if is_array { scanner.element().ok().flatten() } else { None })
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, JsonFault> {
    std::str::from_utf8(bytes).map_err(|error| JsonFault::NotUtf8 { at: error.valid_up_to() })
}

#[cfg(test)]
mod tests;
