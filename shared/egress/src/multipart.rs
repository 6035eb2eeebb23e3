//! Bodies of `multipart/form-data` (AL-250 to AL-257), written as browsers and Node write a form.
//!
//! A document is a segment of its own, so that its bytes can be streamed between the others.

use std::borrow::Cow;

use bytes::Bytes;

use crate::draft::Nonces;

/// What a part's content type must be, for the error that refuses it (AL-255).
pub const MEDIA_TYPE_EXPECTED: &str =
    "expected a media type like text/plain, without control characters";

/// The type of a document whose own is no media type.
const BYTES: &str = "application/octet-stream";

/// Longest boundary, in characters (RFC 2046).
const BOUNDARY_CHARS_MAX: usize = 70;

/// Boundaries that are drawn before one is numbered.
const DRAWS_MAX: usize = 4;

/// A part of a form, filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A text (AL-251).
    Text {
        /// The field's name.
        name: &'a str,
        /// Its line ends become CR LF, as a form's do, unless it has a content type.
        value: &'a str,
        /// One that [`is_media_type`] accepts.
        content_type: Option<&'a str>,
    },
    /// One of the tenant's documents (AL-252, AL-253).
    Document {
        /// The field's name.
        name: &'a str,
        /// The part's own file name, or the document's.
        filename: &'a str,
        /// The document's.
        content_type: &'a str,
        /// Which document, for [`Segment::Document`].
        index: usize,
    },
}

/// A stretch of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// These bytes.
    Bytes(Bytes),
    /// The bytes of the document with this index.
    Document(usize),
}

/// An encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multipart {
    /// What parts its parts.
    pub boundary: String,
    /// The body, in order.
    pub segments: Vec<Segment>,
}

impl Multipart {
    /// The content type that tells the boundary (AL-256).
    pub fn content_type(&self) -> String {
        match self.boundary.bytes().all(is_token) {
            true => format!("multipart/form-data; boundary={}", self.boundary),
            false => format!("multipart/form-data; boundary=\"{}\"", self.boundary),
        }
    }
}

/// Writes the parts, in order, between boundaries that occur in none of their texts.
///
/// What a document holds is not looked at: a boundary is random, and a document was stored before it was drawn.
pub fn encode(parts: &[Part<'_>], nonces: &dyn Nonces) -> Multipart {
    let boundary = boundary(parts, nonces);
    let mut segments = Vec::new();
    let mut written = String::new();
    for part in parts {
        written.push_str("--");
        written.push_str(&boundary);
        written.push_str("\r\nContent-Disposition: form-data; name=\"");
        match *part {
            Part::Text { name, value, content_type } => {
                push_escaped(&mut written, &with_line_ends(name));
                written.push_str("\"\r\n");
                match content_type {
                    Some(content_type) => {
                        push_content_type(&mut written, content_type);
                        written.push_str(value);
                    }
                    None => {
                        written.push_str("\r\n");
                        written.push_str(&with_line_ends(value));
                    }
                }
            }
            Part::Document { name, filename, content_type, index } => {
                push_escaped(&mut written, &with_line_ends(name));
                written.push_str("\"; filename=\"");
                push_escaped(&mut written, filename);
                written.push_str("\"\r\n");
                push_content_type(&mut written, content_type);
                segments.push(Segment::Bytes(std::mem::take(&mut written).into()));
                segments.push(Segment::Document(index));
            }
        }
        written.push_str("\r\n");
    }
    written.push_str("--");
    written.push_str(&boundary);
    written.push_str("--\r\n");
    segments.push(Segment::Bytes(written.into()));
    Multipart { boundary, segments }
}

/// A drawn boundary; a numbered one where nonces that are fixed give no other than the parts hold.
fn boundary(parts: &[Part<'_>], nonces: &dyn Nonces) -> String {
    let is_free = |boundary: &String| {
        !parts.iter().any(|part| match part {
            Part::Text { name, value, content_type } => {
                name.contains(boundary)
                    || value.contains(boundary)
                    || content_type.is_some_and(|text| text.contains(boundary))
            }
            Part::Document { name, filename, content_type, .. } => {
                name.contains(boundary)
                    || filename.contains(boundary)
                    || content_type.contains(boundary)
            }
        })
    };
    let drawn = (0..DRAWS_MAX).map(|_| nonces.boundary());
    let numbered = (0..u32::MAX).map(|number| {
        let number = number.to_string();
        let kept = BOUNDARY_CHARS_MAX - number.len();
        nonces.boundary().chars().take(kept).collect::<String>() + &number
    });
    // A text holds fewer boundaries than it has bytes, so one is free.
    drawn.chain(numbered).find(is_free).unwrap_or_default()
}

/// The end of a part's header, with its type. A type that could end the line by itself is never written.
fn push_content_type(out: &mut String, content_type: &str) {
    out.push_str("Content-Type: ");
    out.push_str(if is_media_type(content_type) { content_type } else { BYTES });
    out.push_str("\r\n\r\n");
}

/// Every line end as CR LF.
fn with_line_ends(text: &str) -> Cow<'_, str> {
    if !text.contains(['\r', '\n']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                out.push_str("\r\n");
            }
            '\n' => out.push_str("\r\n"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// What would end a quoted name, or its line, percent-encoded; nothing else.
fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\n' => out.push_str("%0A"),
            '\r' => out.push_str("%0D"),
            '"' => out.push_str("%22"),
            other => out.push(other),
        }
    }
}

/// Whether a text is a media type, with parameters or without, and holds no control character (AL-254, AL-255;
/// RFC 9110, 8.3.1).
pub fn is_media_type(text: &str) -> bool {
    if text.chars().any(char::is_control) {
        return false;
    }
    let (essence, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let is_essence = essence
        .trim_end_matches(' ')
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype));
    while let Some(parameter) = rest.strip_prefix(';') {
        match after_parameter(parameter.trim_start_matches(' ')) {
            Some(after) => rest = after.trim_start_matches(' '),
            None => return false,
        }
    }
    is_essence && rest.is_empty()
}

/// What follows a parameter, which may be missing between two semicolons.
fn after_parameter(text: &str) -> Option<&str> {
    if text.is_empty() || text.starts_with(';') {
        return Some(text);
    }
    let (name, value) = text.split_once('=')?;
    if !is_name(name) {
        return None;
    }
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([';', ' ']).unwrap_or(value.len());
        return is_name(&value[..end]).then(|| &value[end..]);
    };
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some(&quoted[at + 1..]),
            '\\' => {
                characters.next();
            }
            _ => {}
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token)
}

/// Whether a byte is one of RFC 9110's `tchar`.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
