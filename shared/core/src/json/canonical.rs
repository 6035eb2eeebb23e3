//! One spelling for all texts of the same structure, for hashing.

use super::scan::{Container, Scanner, Token};
use super::string::{decode, escape_into};

/// Where a member lies in the text written so far.
struct Member {
    start: usize,
    key_end: usize,
    end: usize,
}

/// An open container.
struct Frame {
    start: usize,
    members: Vec<Member>,
}

/// The canonical form of a JSON text: no white space, sorted keys, strings escaped one way, numbers as they are written.
///
/// For hashing only: it orders doubled keys by where they stand, and is never sent. `None` when the text is not valid
/// or too deep.
pub fn canonical(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut frames: Vec<Frame> = Vec::new();
    let mut scanner = Scanner::new(text);
    while let Some(token) = scanner.token().ok()? {
        let is_element = !matches!(token, Token::Key(_) | Token::Close(_));
        if is_element && !out.is_empty() && !out.ends_with(['[', ':']) {
            out.push(',');
        }
        match token {
            Token::Open(container) => {
                out.push(if container == Container::Object { '{' } else { '[' });
                frames.push(Frame { start: out.len(), members: Vec::new() });
            }
            Token::Close(container) => {
                let frame = frames.pop()?;
                sort_members(&mut out, frame);
                out.push(if container == Container::Object { '}' } else { ']' });
            }
            Token::Key(key) => {
                let frame = frames.last_mut()?;
                if let Some(last) = frame.members.last_mut() {
                    last.end = out.len();
                    out.push(',');
                }
                let start = out.len();
                push_string(&mut out, key);
                frame.members.push(Member { start, key_end: out.len(), end: 0 });
                out.push(':');
            }
            Token::Text(inner) => push_string(&mut out, inner),
            Token::Number(raw) | Token::Word(raw) => out.push_str(raw),
        }
    }
    Some(out)
}

fn push_string(out: &mut String, inner: &str) {
    out.push('"');
    escape_into(out, &decode(inner));
    out.push('"');
}

/// Puts the members of the object that ends at the end of `out` in the order of their keys.
fn sort_members(out: &mut String, frame: Frame) {
    let Frame { start, mut members } = frame;
    if let Some(last) = members.last_mut() {
        last.end = out.len();
    }
    let key = |member: &Member| &out[member.start..member.key_end];
    if members.is_sorted_by(|a, b| key(a) <= key(b)) {
        return;
    }
    members.sort_by(|a, b| key(a).cmp(key(b)));
    let mut sorted = String::with_capacity(out.len() - start);
    for member in &members {
        if !sorted.is_empty() {
            sorted.push(',');
        }
        sorted.push_str(&out[member.start..member.end]);
    }
    out.truncate(start);
    out.push_str(&sorted);
}
