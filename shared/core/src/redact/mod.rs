//! Hides secret values in what leaves: answers, errors, logs, records.
//!
//! A value is found as it is and in the encodings it travels in: JSON escapes as common writers choose them, once and
//! twice; percent-encoding; base64 in both alphabets, alone or inside a longer text; hex; lower case. A
//! form of more than 128 bytes is found by its first 128 and hidden as far as it goes, so that a long secret that was
//! cut is hidden too. Of a value that is itself JSON, such as the key file of a service account, its longer strings are
//! hidden as well.
//!
//! A [`Redactor`] hides values that are known at the start, a [`RedactionList`] those that a call gathers.
//!
//! **Limits:** not found are a secret that was compressed or encrypted, split by line breaks, percent-encoded in a way
//! that no common writer has, or encoded twice in other ways than as JSON in JSON.

mod finder;
mod forms;
mod grams;
mod list;
mod parsed;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::json::{Scanner, Token, decode, escape_into};
use crate::limits::REDACTED_CHARS_MIN;
use finder::{Effort, Finder};

pub use list::RedactionList;

/// Bytes of a secret's name that a marker shows.
const NAME_BYTES_SHOWN: usize = 128;

/// Hides the values of some secrets. Its `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<Finder>,
}

impl Redactor {
    /// Hides these values, given with their names. Values shorter than [`REDACTED_CHARS_MIN`] characters are not
    /// hidden; encoded forms are from [`crate::limits::REDACTED_ENCODED_CHARS_MIN`] characters on.
    ///
    /// Memory grows with the sizes of the values, some forty times in all.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let long = secrets.into_iter().filter(|(_, value)| is_searched(value));
        Self::of(long.map(|(name, value)| (marker(&name), forms(&value))))
    }

    /// Puts the marker in place of each of the forms, the first marker where a form is given twice.
    fn of(values: impl IntoIterator<Item = (Box<str>, Vec<Arc<str>>)>) -> Self {
        Self { finder: Finder::new(values) }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// The text with a marker `[secret:<name>]` in place of each form of a secret, the longest at each place.
    ///
    /// For plain text. In JSON text use [`Self::redact_json`]: a value can begin in the middle of an escape.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted =
            self.finder.as_ref().and_then(|finder| finder.redact(text, &mut Effort::new()));
        redacted.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// The JSON text with the secrets in its keys, strings and numbers hidden, however their characters are escaped.
    ///
    /// It stays valid, and only what held a secret is written anew; a number that did becomes a string. Keys that
    /// differed only in a secret become equal. A text that is not valid JSON is redacted as plain text.
    pub fn redact_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        let effort = &mut Effort::new();
        // Without an escape, whatever a string says stands in the text as it is.
        if !text.contains('\\') && finder.search(text, effort).next(0).is_none() {
            return Cow::Borrowed(text);
        }
        match redact_json(finder, text, effort) {
            Some(None) => Cow::Borrowed(text),
            Some(Some(redacted)) => Cow::Owned(redacted),
            None => finder.redact(text, effort).map_or(Cow::Borrowed(text), Cow::Owned),
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let markers = self.finder.as_ref().map_or(&[][..], Finder::markers);
        f.debug_tuple("Redactor").field(&markers).finish()
    }
}

/// `None`: not valid JSON; `Some(None)`: nothing to hide.
fn redact_json(finder: &Finder, text: &str, effort: &mut Effort) -> Option<Option<String>> {
    let mut out = String::new();
    let mut copied = 0;
    let mut scanner = Scanner::new(text);
    while let Some(token) = scanner.token().ok()? {
        let (length, redacted) = match token {
            Token::Key(inner) | Token::Text(inner) => {
                (inner.len() + 2, finder.redact(&decode(inner), effort))
            }
            Token::Number(number) => (number.len(), finder.redact(number, effort)),
            Token::Open(_) | Token::Close(_) | Token::Word(_) => continue,
        };
        if let Some(redacted) = redacted {
            out.push_str(&text[copied..scanner.start()]);
            out.push('"');
            escape_into(&mut out, &redacted);
            out.push('"');
            copied = scanner.start() + length;
        }
    }
    if copied == 0 {
        return Some(None);
    }
    out.push_str(&text[copied..]);
    Some(Some(out))
}

/// Whether a value is long enough to be looked for.
fn is_searched(value: &str) -> bool {
    value.chars().take(REDACTED_CHARS_MIN).count() == REDACTED_CHARS_MIN
}

/// The forms of a value.
fn forms(value: &str) -> Vec<Arc<str>> {
    forms::all(value).into_iter().map(Arc::from).collect()
}

/// What stands for a secret. Nothing in it needs an escape in JSON.
fn marker(name: &str) -> Box<str> {
    let shown = &name[..name.floor_char_boundary(NAME_BYTES_SHOWN)];
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = shown.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("[secret:{plain}]").into()
}

#[cfg(test)]
mod tests;
