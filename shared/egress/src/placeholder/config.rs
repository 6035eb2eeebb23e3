//! What an install's configuration says of secrets: `{{secret:NAME}}` in a string, without a tag (AL-107 to AL-110).

use std::borrow::Cow;
use std::collections::BTreeSet;

use annex_core::json::{JsonFault, Object, Scanner, Token, decode, escape_into};
use zeroize::Zeroizing;

use super::{CLOSING, FillFault, OPENING, Secrets};
use crate::nonces;

/// Characters of a secret's name.
const NAME_CHARS_MAX: usize = 64;

/// A call's secret tag: 16 random bytes in base64url, 22 characters (AL-084).
pub fn draw_tag() -> String {
    nonces::random::<16>()
}

/// The names of the secrets that a configuration, a JSON text, refers to in its strings; its keys refer to none
/// (AL-107, AL-109).
pub fn references(config: &str) -> Result<BTreeSet<String>, JsonFault> {
    let mut names = BTreeSet::new();
    let mut scanner = Scanner::new(config);
    while let Some(token) = scanner.token()? {
        let Token::Text(inner) = token else { continue };
        let text = decode(inner);
        names.extend(References::of(&text).map(|found| found.name.to_owned()));
    }
    Ok(names)
}

impl Secrets {
    /// The secrets of one call of an export, under a tag drawn for it: a retry is another call (AL-082, AL-083). It
    /// carries those that its install requires (the [`references`] of its configuration, and the names that its
    /// manifest declares), and no others (AL-079).
    ///
    /// # Errors
    ///
    /// [`FillFault::NotSet`] with the first name, in their order, that has no value: the call does not start (AL-080).
    pub fn of_call<'n>(
        required: impl IntoIterator<Item = &'n str>,
        mut value: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, FillFault> {
        let required: BTreeSet<&str> = required.into_iter().collect();
        let values = required.into_iter().map(|name| match value(name) {
            Some(value) => Ok((name.to_owned(), Zeroizing::new(value))),
            None => Err(FillFault::NotSet(name.to_owned())),
        });
        let values = values.collect::<Result<_, _>>()?;
        Ok(Self { values, tag: draw_tag(), ..Self::default() })
    }

    /// A configuration as the module gets it: each reference in a string is the call's placeholder, and every other
    /// byte is as it was (AL-108, AL-109).
    pub fn in_config<'t>(&self, config: &'t str) -> Result<Cow<'t, str>, JsonFault> {
        let mut out = String::new();
        let mut copied = 0;
        let mut scanner = Scanner::new(config);
        while let Some(token) = scanner.token()? {
            let Token::Text(inner) = token else { continue };
            let Some(tagged) = self.tagged_inner(inner) else { continue };
            let start = scanner.start() + 1;
            out.push_str(&config[copied..start]);
            out.push_str(&tagged);
            copied = start + inner.len();
        }
        if copied == 0 {
            return Ok(Cow::Borrowed(config));
        }
        out.push_str(&config[copied..]);
        Ok(Cow::Owned(out))
    }

    /// The envelope of a call, a JSON object, as the module gets it: with the call's tag as `call.secretTag`, whatever
    /// the caller sent there (AL-085, AL-086), and its `config` as [`Self::in_config`] writes it. All other values keep
    /// their bytes (AL-110).
    ///
    /// # Errors
    ///
    /// A text that is no object, or in which one of the keys of the envelope or of its `call` stands twice: readers
    /// would not agree on which of them counts.
    pub fn in_envelope(&self, envelope: &str) -> Result<String, JsonFault> {
        let mut envelope = Object::parse(envelope)?;
        let mut call = match envelope.get("call").map(Object::parse) {
            Some(Ok(call)) => call,
            None | Some(Err(JsonFault::NotObject)) => Object::new(),
            Some(Err(fault)) => return Err(fault),
        };
        call.insert_text("secretTag", &self.tag);
        envelope.insert("call", &call.to_json())?;
        if let Some(config) = envelope.get("config")
            && let Cow::Owned(config) = self.in_config(config)?
        {
            envelope.insert("config", &config)?;
        }
        Ok(envelope.to_json())
    }

    /// What stands between the quotes of a JSON string, with placeholders for references; `None` where there are none.
    /// A string that spells a reference with escapes is written anew as a whole.
    fn tagged_inner(&self, inner: &str) -> Option<String> {
        let text = decode(inner);
        let count = References::of(&text).count();
        if count == 0 {
            return None;
        }
        if count == References::of(inner).count() {
            return Some(self.tagged(inner));
        }
        let mut out = String::with_capacity(inner.len());
        escape_into(&mut out, &self.tagged(&text));
        Some(out)
    }

    fn tagged(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + self.tag.len());
        let mut copied = 0;
        for Reference { close, .. } in References::of(text) {
            out.push_str(&text[copied..close]);
            out.extend([":", &self.tag]);
            copied = close;
        }
        out.push_str(&text[copied..]);
        out
    }
}

/// A reference in a text.
struct Reference<'t> {
    name: &'t str,
    /// Where its closing braces begin.
    close: usize,
}

/// The references in a text, in one pass.
struct References<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> References<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'t> Iterator for References<'t> {
    type Item = Reference<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = &self.text[self.at..];
            let start = self.at + rest.find(OPENING)? + OPENING.len();
            let rest = &self.text[start..];
            let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let length = rest.bytes().take(NAME_CHARS_MAX + 1).take_while(is_of_name).count();
            let (name, behind) = rest.split_at(length);
            self.at = start + length;
            if is_name(name) && behind.starts_with(CLOSING) {
                return Some(Reference { name, close: self.at });
            }
        }
    }
}

/// Whether a secret can have this name: a letter, then up to 63 letters, digits or `_`.
fn is_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests;
