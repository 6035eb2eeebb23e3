//! Hides secret values in what leaves: answers, errors, logs, records.
//!
//! A value is found as it is and in the encodings it travels in: JSON escapes as common writers choose them, once and
//! twice; percent-encoding; base64 in both alphabets, alone or inside a longer text; hex. A form of more than 128 bytes
//! is found by its first 128 and hidden as far as it goes, so that a long secret that was cut is hidden too. Of a value
//! that is itself JSON, such as the key file of a service account, its longer strings are hidden as well.
//!
//! **Limits:** not found are a secret that was compressed or encrypted, split by line breaks, or encoded twice in
//! other ways than as JSON in JSON.

mod forms;

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use crate::json::{Scanner, Token, decode, escape_into};
use crate::limits::REDACTED_CHARS_MIN;

/// Bytes of a form by which it is found.
const ANCHOR_BYTES: usize = 128;

/// Bytes of a secret's name that a marker shows.
const NAME_BYTES_SHOWN: usize = 128;

/// Hides the values of some secrets. Its `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<Finder>,
}

#[derive(Clone)]
struct Finder {
    anchors: AhoCorasick,
    /// By the number of an anchor: the forms that begin with it.
    forms: Vec<Vec<Form>>,
    markers: Vec<Box<str>>,
}

#[derive(Clone)]
struct Form {
    text: Box<str>,
    marker: usize,
}

impl Redactor {
    /// Hides these values, given with their names. Values shorter than [`REDACTED_CHARS_MIN`] characters are not
    /// hidden; encoded forms are from [`crate::limits::REDACTED_ENCODED_CHARS_MIN`] characters on.
    ///
    /// Memory grows with the sizes of the values, some forty times in all.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut markers = Vec::new();
        let mut anchors: Vec<String> = Vec::new();
        let mut forms: Vec<Vec<Form>> = Vec::new();
        let mut known = std::collections::HashMap::new();
        for (name, value) in secrets {
            if value.chars().take(REDACTED_CHARS_MIN).count() < REDACTED_CHARS_MIN {
                continue;
            }
            for form in forms::all(&value) {
                let anchor = &form[..form.floor_char_boundary(ANCHOR_BYTES)];
                let number = *known.entry(anchor.to_owned()).or_insert_with(|| {
                    anchors.push(anchor.to_owned());
                    forms.push(Vec::new());
                    anchors.len() - 1
                });
                forms[number].push(Form { text: form.into(), marker: markers.len() });
            }
            markers.push(marker(&name));
        }
        let anchors = (!anchors.is_empty()).then(|| {
            // The cheapest kind to build: a redactor serves one call. Its only errors are of sizes beyond 2^31.
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::NoncontiguousNFA))
                .dense_depth(1)
                .match_kind(MatchKind::LeftmostLongest)
                .build(&anchors)
                .expect("the anchors of a call's secrets are far below two gigabytes")
        });
        Self { finder: anchors.map(|anchors| Finder { anchors, forms, markers }) }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// The text with a marker `[secret:<name>]` in place of each form of a secret, the longest at each place.
    ///
    /// For plain text. In JSON text use [`Self::redact_json`]: a value can begin in the middle of an escape.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.finder {
            Some(finder) => finder.redact(text).map_or(Cow::Borrowed(text), Cow::Owned),
            None => Cow::Borrowed(text),
        }
    }

    /// The JSON text with the secrets in its keys, strings and numbers hidden, however their characters are escaped.
    ///
    /// It stays valid, and only what held a secret is written anew; a number that did becomes a string. Keys that
    /// differed only in a secret become equal. A text that is not valid JSON is redacted as plain text.
    pub fn redact_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        // Without an escape, whatever a string says stands in the text as it is.
        if !text.contains('\\') && finder.find(text, 0).is_none() {
            return Cow::Borrowed(text);
        }
        match finder.redact_json(text) {
            Some(None) => Cow::Borrowed(text),
            Some(Some(redacted)) => Cow::Owned(redacted),
            None => self.redact(text),
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let markers = self.finder.as_ref().map_or(&[][..], |finder| &finder.markers);
        f.debug_tuple("Redactor").field(&markers).finish()
    }
}

impl Finder {
    /// The first form from `from` on: where it is, and its marker.
    fn find(&self, text: &str, from: usize) -> Option<(usize, usize, &str)> {
        let found = self.anchors.find(Input::new(text).range(from..))?;
        let rest = &text[found.start()..];
        let forms = self.forms[found.pattern().as_usize()].iter();
        let reach = forms.map(|form| (common(&form.text, rest), form.marker));
        // The first of equals: the secret that was named first.
        let (length, marker) =
            reach.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        Some((found.start(), found.start() + length, &self.markers[marker]))
    }

    fn redact(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        while let Some((start, end, marker)) = self.find(text, copied) {
            out.push_str(&text[copied..start]);
            out.push_str(marker);
            copied = end;
        }
        if copied == 0 {
            return None;
        }
        out.push_str(&text[copied..]);
        Some(out)
    }

    /// `None`: not valid JSON; `Some(None)`: nothing to hide.
    fn redact_json(&self, text: &str) -> Option<Option<String>> {
        let mut out = String::new();
        let mut copied = 0;
        let mut scanner = Scanner::new(text);
        while let Some(token) = scanner.token().ok()? {
            let (length, redacted) = match token {
                Token::Key(inner) | Token::Text(inner) => {
                    (inner.len() + 2, self.redact(&decode(inner)))
                }
                Token::Number(number) => (number.len(), self.redact(number)),
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
}

/// Bytes of whole characters that both begin with.
fn common(form: &str, text: &str) -> usize {
    let equal = form.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    form.floor_char_boundary(equal)
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
