//! What a JSON string says, and how a text is written as one.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text of a checked string, from what stands between its quotes.
///
/// A text that was not checked gives some text, never a panic.
pub fn decode(inner: &str) -> Cow<'_, str> {
    let Some(first) = inner.find('\\') else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    let mut next = Some(first);
    while let Some(at) = next {
        out.push_str(&rest[..at]);
        let (character, length) = unescape(&rest[at..]);
        out.push(character);
        rest = &rest[at + length..];
        next = rest.find('\\');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character that an escape stands for, and the escape's length in bytes.
fn unescape(escape: &str) -> (char, usize) {
    let simple = match escape.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(escape),
        _ => return ('\\', 1),
    };
    (simple, 2)
}

fn unicode(escape: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    match (unit(2), unit(8)) {
        (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10 | (low - 0xDC00));
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        (None, _) => ('\\', 1),
    }
}

/// The text of a raw value that is a checked string; `None` for any other value.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    raw.strip_prefix('"')?.strip_suffix('"').map(decode)
}

/// Appends `text` as it stands between the quotes of a JSON string: only what must be escaped is.
pub fn escape_into(out: &mut String, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0x00..=0x1F => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}").expect("writing to a String does not fail");
        } else {
            out.push_str(escape);
        }
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(&mut out, text);
    out.push('"');
    out
}
