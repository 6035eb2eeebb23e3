//! JSON that is redacted string by string and then as a text, and stays JSON.

use std::borrow::Cow;
use std::ops::Range;

use super::Redactor;
use super::finder::{Effort, Finder, Hit};
use crate::json::{Scanner, Token};

/// A stretch of a text, and what is written in its place.
struct Edit<'a> {
    at: Range<usize>,
    marker: &'a str,
    /// Whether a whole value is replaced, so that quotes are needed.
    is_value: bool,
}

impl Redactor {
    /// As [`Self::redact_json`], and then the text itself once more: a value can stand in the spelling of a string only
    /// (`\n1234` spells `n1234`), or go from one string to the next, when it is JSON or a piece of it.
    pub(super) fn redact_parsed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = self.redact_json(text);
        let Some(finder) = &self.finder else { return redacted };
        match redact_spelling(finder, &redacted) {
            Some(text) => Cow::Owned(text),
            None => redacted,
        }
    }
}

/// `None`: nothing more to hide, or not JSON.
fn redact_spelling(finder: &Finder, text: &str) -> Option<String> {
    let effort = &mut Effort::new();
    let mut search = finder.search(text, effort);
    let mut hits = Vec::new();
    let mut from = 0;
    while let Some(hit) = search.next(from) {
        from = hit.end;
        // A marker is hidden by itself.
        if text[hit.start..hit.end] != *hit.marker {
            hits.push(hit);
        }
    }
    if hits.is_empty() {
        return None;
    }
    Some(apply(text, edits(text, &hits)?))
}

/// What to write in place of the hits; `None` where the text is not JSON.
fn edits<'a>(text: &str, hits: &[Hit<'a>]) -> Option<Vec<Edit<'a>>> {
    let mut edits = Vec::new();
    // Those that touch more than one token, until the container around all of it ends.
    let mut wide: Vec<&Hit<'a>> = Vec::new();
    let mut open = Vec::new();
    let mut next = 0;
    let mut scanner = Scanner::new(text);
    while let Some(token) = scanner.token().ok()? {
        let start = scanner.start();
        let (inner, end) = match token {
            Token::Open(_) => {
                open.push(start);
                continue;
            }
            Token::Close(_) => {
                let container = open.pop().unwrap_or(0)..scanner.end();
                // In their order, and never one over another: those that begin in the container are the last ones, and
                // only the very last can go on behind it.
                let behind = wide.pop_if(|hit| container.end < hit.end);
                while let Some(hit) = wide.pop_if(|hit| container.start <= hit.start) {
                    let at = container.clone();
                    edits.push(Edit { at, marker: hit.marker, is_value: true });
                }
                wide.extend(behind);
                continue;
            }
            Token::Key(inner) | Token::Text(inner) => (Some(inner), start + inner.len() + 2),
            // A number that held a value is a string by now; a word is no more than what JSON needs.
            Token::Number(inner) | Token::Word(inner) => (None, start + inner.len()),
        };
        // Hits between two tokens are punctuation and white space.
        while hits.get(next).is_some_and(|hit| hit.end <= start) {
            next += 1;
        }
        let mut escape = 0;
        while let Some(hit) = hits.get(next).filter(|hit| hit.start < end) {
            let is_within = start <= hit.start && hit.end <= end;
            match inner {
                _ if !is_within => {
                    // It has touched the token before this one too.
                    wide.pop_if(|last| std::ptr::eq(*last, hit));
                    wide.push(hit);
                }
                Some(inner) if start < hit.start && hit.end < end => {
                    let at = whole_escapes(inner, start + 1, hit.start..hit.end, &mut escape);
                    edits.push(Edit { at, marker: hit.marker, is_value: false });
                }
                // With a quote of the string.
                Some(_) => {
                    edits.push(Edit { at: start..end, marker: hit.marker, is_value: true });
                }
                None => {}
            }
            if end < hit.end {
                break;
            }
            next += 1;
        }
    }
    // What is around the whole text is white space.
    edits.extend(wide.into_iter().map(|hit| Edit {
        at: 0..text.len(),
        marker: hit.marker,
        is_value: true,
    }));
    Some(edits)
}

/// The stretch, made longer by the rest of escapes that it begins or ends in. `inner` begins at `offset`. It is read from
/// `known` on, the last place before the stretch where an escape or a character is known to begin.
fn whole_escapes(inner: &str, offset: usize, at: Range<usize>, known: &mut usize) -> Range<usize> {
    let bytes = inner.as_bytes();
    let (mut start, mut end) = (at.start - offset, at.end - offset);
    let mut place = *known;
    while place < end {
        if place <= start {
            *known = place;
        }
        let length = match &bytes[place..] {
            [b'\\', b'u', first, second, ..] => match (first, second) {
                // The first half of a pair.
                (b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B') => 12,
                _ => 6,
            },
            [b'\\', ..] => 2,
            _ => 1,
        };
        let next = (place + length).min(bytes.len());
        if place < start && start < next {
            start = place;
        }
        end = if place < end && end < next { next } else { end };
        place = next;
    }
    start + offset..end + offset
}

fn apply(text: &str, mut edits: Vec<Edit<'_>>) -> String {
    // Of edits that overlap the widest stands, and comes first.
    edits.sort_by_key(|edit| (edit.at.start, usize::MAX - edit.at.end));
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for edit in edits {
        if edit.at.start < copied {
            continue;
        }
        out.push_str(&text[copied..edit.at.start]);
        let quote = if edit.is_value { "\"" } else { "" };
        out.push_str(quote);
        out.push_str(edit.marker);
        out.push_str(quote);
        copied = edit.at.end;
    }
    out.push_str(&text[copied..]);
    out
}
