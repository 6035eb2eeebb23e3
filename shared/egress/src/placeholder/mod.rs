//! Secrets by name: `{{secret:NAME:TAG}}`, filled on the way out (AL-064 to AL-110).
//!
//! Only a placeholder that carries the call's tag names a secret; all other text is text. The tag itself never leaves:
//! where it stands outside a placeholder, or where nothing is filled, the request is refused.

mod config;
mod json;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

pub use config::{draw_tag, references};

/// What stands before a placeholder's name.
const OPENING: &str = "{{secret:";

/// What stands behind a placeholder's tag.
const CLOSING: &str = "}}";

/// Bytes of values that are filled in for one call in all. A placeholder is short and a value can be long: a request
/// full of them would be many times as large as it may be.
pub const FILLED_BYTES_MAX: usize = 32 << 20;

/// What a component of a URL holds unencoded, as JavaScript's `encodeURIComponent` has it.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Where in a request a text stands. Its name is shown in refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The URL.
    Url,
    /// A header's name: nothing is filled.
    HeaderName,
    /// A header's value.
    HeaderValue,
    /// A body that is text, JSON or a form.
    Body,
    /// The content of a `base64` body: nothing is filled.
    Base64Body,
    /// A document's id: nothing is filled.
    DocumentId,
    /// A `jsonText` body outside its strings: nothing is filled.
    JsonOutsideString,
    /// The name of a multipart part: nothing is filled.
    PartName,
    /// The value of a multipart part.
    PartValue,
    /// The file name of a multipart part: nothing is filled.
    PartFileName,
    /// The content type of a multipart part: nothing is filled.
    PartContentType,
    /// A field of the auth.
    Auth,
    /// The key of a signature, given as text: nothing is filled.
    SignKey,
    /// The header of a signature: nothing is filled.
    SignHeader,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Url => "the URL",
            Self::HeaderName => "a header name",
            Self::HeaderValue => "a header value",
            Self::Body => "the body",
            Self::Base64Body => "a base64 body",
            Self::DocumentId => "a document's id",
            Self::JsonOutsideString => "a jsonText body outside a string",
            Self::PartName => "the name of a multipart part",
            Self::PartValue => "the value of a multipart part",
            Self::PartFileName => "the file name of a multipart part",
            Self::PartContentType => "the content type of a multipart part",
            Self::Auth => "the auth",
            Self::SignKey => "the key of the signature",
            Self::SignHeader => "the header of the signature",
        }
    }
}

/// Why a placeholder is not filled. Never holds the tag or a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillFault {
    /// The tag stands where nothing is filled (AL-103).
    #[error("a secret placeholder stands where the host does not fill it: {}", .0.name())]
    Misplaced(Place),
    /// The call carries no secret of that name (AL-091).
    #[error("secret {0} is not set for this install")]
    NotSet(String),
    /// More than [`FILLED_BYTES_MAX`].
    #[error("more than {FILLED_BYTES_MAX} bytes of secrets are filled in")]
    TooMuch,
    /// A `jsonText` body that does not parse (AL-238).
    #[error("body: jsonText is not JSON")]
    NotJson,
}

/// The secrets of one call and its tag. Shows neither in its `Debug`.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<String, Zeroizing<String>>,
    tag: String,
    /// Bytes filled in so far, by whichever clone.
    filled: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("names", &self.values.keys()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// The secrets that a call carries, by name, and its tag. Without a tag (an empty one) nothing is ever filled.
    pub fn new(values: impl IntoIterator<Item = (String, String)>, tag: impl Into<String>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name, Zeroizing::new(value)));
        Self { values: values.collect(), tag: tag.into(), filled: Arc::default() }
    }

    /// The value of a secret that the call carries.
    pub fn get(&self, name: &str) -> Result<&str, FillFault> {
        match self.values.get(name) {
            Some(value) => Ok(value),
            None => Err(FillFault::NotSet(name.chars().take(128).collect())),
        }
    }

    /// The call's tag.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a text holds the tag.
    pub fn holds_tag(&self, text: &str) -> bool {
        !self.tag.is_empty() && text.contains(&self.tag)
    }

    /// Refuses a text that holds the tag, as nothing is filled at `place`.
    pub fn keep_out(&self, text: &str, place: Place) -> Result<(), FillFault> {
        self.keep_out_bytes(text.as_bytes(), place)
    }

    /// As [`Self::keep_out`], of bytes.
    pub fn keep_out_bytes(&self, bytes: &[u8], place: Place) -> Result<(), FillFault> {
        let found =
            !self.tag.is_empty() && memchr::memmem::find(bytes, self.tag.as_bytes()).is_some();
        if found { Err(FillFault::Misplaced(place)) } else { Ok(()) }
    }

    /// Fills a text with the values as they are.
    pub fn fill<'t>(&self, text: &'t str, place: Place) -> Result<Cow<'t, str>, FillFault> {
        self.fill_with(text, place, |out, value| out.push_str(value))
    }

    /// Fills a URL: a value stays one piece of text and cannot change what the URL means (AL-066, AL-067).
    pub fn fill_url<'t>(&self, url: &'t str) -> Result<Cow<'t, str>, FillFault> {
        // A URL's parser drops these wherever they stand.
        let dropped = ['\t', '\n', '\r'];
        if url.contains(dropped) && !self.tag.is_empty() {
            let tags = |text: &str| text.matches(&self.tag).count();
            if tags(url) < tags(&url.replace(dropped, "")) {
                return Err(FillFault::Misplaced(Place::Url));
            }
        }
        self.fill_with(url, Place::Url, |out, value| {
            out.extend(utf8_percent_encode(value, COMPONENT));
        })
    }

    /// Fills a text in one pass; `write` appends a value in the form that the place needs. What was filled is not read
    /// again.
    fn fill_with<'t>(
        &self,
        text: &'t str,
        place: Place,
        mut write: impl FnMut(&mut String, &str),
    ) -> Result<Cow<'t, str>, FillFault> {
        if !self.holds_tag(text) {
            return Ok(Cow::Borrowed(text));
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(found) = self.next(rest) {
            let found = found.ok_or(FillFault::Misplaced(place))?;
            out.push_str(&rest[..found.start]);
            let value = self.get(found.name)?;
            let filled = self.filled.fetch_add(value.len(), Ordering::Relaxed);
            if FILLED_BYTES_MAX < filled.saturating_add(value.len()) {
                return Err(FillFault::TooMuch);
            }
            write(&mut out, value);
            rest = &rest[found.end..];
        }
        out.push_str(rest);
        Ok(Cow::Owned(out))
    }

    /// The first placeholder in a text: `Some(None)` where the tag stands outside one before it.
    fn next<'t>(&self, text: &'t str) -> Option<Option<Placeholder<'t>>> {
        if self.tag.is_empty() {
            return None;
        }
        let tag = text.find(&self.tag)?;
        Some(placeholder(text, tag, self.tag.len()))
    }
}

/// A placeholder in a text, by its bytes.
struct Placeholder<'t> {
    start: usize,
    end: usize,
    name: &'t str,
}

/// The placeholder around the tag at `tag`.
fn placeholder(text: &str, tag: usize, length: usize) -> Option<Placeholder<'_>> {
    let before = text[..tag].strip_suffix(':')?;
    let start = before.rfind(OPENING)?;
    let name = &before[start + OPENING.len()..];
    let is_name = !name.is_empty() && !name.contains([':', '{', '}']);
    let end = tag + length;
    let closed = text[end..].starts_with(CLOSING);
    (is_name && closed).then(|| Placeholder { start, end: end + CLOSING.len(), name })
}

#[cfg(test)]
mod tests;
