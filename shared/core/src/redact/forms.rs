//! The spellings of a value in what others write.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::json::{Scanner, Token, decode, escape_into};
use crate::limits::{REDACTED_ENCODED_CHARS_MIN, REDACTED_PART_CHARS_MIN};

/// The forms of a value and of the secrets inside it.
pub(super) fn all(value: &str) -> BTreeSet<String> {
    let mut forms = of(value);
    for sent in as_sent(value) {
        forms.extend(of(&sent));
    }
    if !value.trim_ascii_start().starts_with(['{', '[']) {
        return forms;
    }
    let mut scanner = Scanner::new(value);
    while let Ok(Some(token)) = scanner.token() {
        if let Token::Text(inner) = token {
            let part = decode(inner);
            // The address of a service is no secret, and hiding it would spoil answers.
            let is_address = part.contains("://") && !part.contains('@');
            if !is_address
                && part.chars().take(REDACTED_PART_CHARS_MIN).count() == REDACTED_PART_CHARS_MIN
            {
                forms.extend(of(&part));
            }
        }
    }
    forms
}

/// What this host makes of a value that it sends as it is: in a header without white space around it, and in a multipart
/// body with every line end as CR LF. Values that stay what they are give nothing.
fn as_sent(value: &str) -> Vec<String> {
    let trimmed = value.trim_matches([' ', '\t', '\r', '\n']);
    let lines = trimmed.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    let mut sent = vec![trimmed.to_owned(), lines];
    sent.dedup();
    sent.retain(|sent| sent != value && super::is_searched(sent));
    sent
}

/// The value itself and, when it is long enough, what it looks like encoded; no form twice.
///
/// Encoded are: JSON string contents as common writers escape them, once and twice; percent-encoding by the common
/// sets of characters that stay, in both cases of hex; base64 in both alphabets, alone and inside a longer text at each
/// of three alignments, its slashes also as JSON may escape them; hex in both cases;
/// the lower case, as hosts and the names of headers are written; the bytes of its UTF-8 as characters, as headers are read.
pub(super) fn of(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    if value.chars().take(REDACTED_ENCODED_CHARS_MIN).count() < REDACTED_ENCODED_CHARS_MIN {
        return forms;
    }
    // Errors name hosts and headers.
    forms.insert(value.to_ascii_lowercase());
    // A header has a character for each byte, whatever the vendor meant.
    forms.insert(value.bytes().map(char::from).collect());
    json(value, &mut forms);
    percent(value, &mut forms);
    base64(value.as_bytes(), &mut forms);
    forms.insert(hex::encode(value));
    forms.insert(hex::encode_upper(value));
    forms
}

fn json(value: &str, forms: &mut BTreeSet<String>) {
    let mut plain = String::with_capacity(value.len());
    escape_into(&mut plain, value);
    // Go's writer escapes these for HTML.
    let go = escape_some(&plain, |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'), false);
    let ascii = escape_some(&plain, |c| !c.is_ascii(), false);
    let upper = escape_some(&plain, |c| !c.is_ascii(), true);
    let both = escape_some(&go, |c| !c.is_ascii(), false);
    let mut twice = String::with_capacity(plain.len());
    escape_into(&mut twice, &plain);
    for form in [plain, go, ascii, upper, both, twice] {
        forms.insert(form.replace('/', "\\/"));
        forms.insert(form);
    }
}

/// `text` with some of its characters as `\u` escapes of their UTF-16 units.
fn escape_some(text: &str, escapes: impl Fn(char) -> bool, is_upper: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if !escapes(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let written =
                if is_upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
            written.expect("writing to a String does not fail");
        }
    }
    out
}

/// Bytes beside letters and digits that stay as they are: RFC 3986, JavaScript's component and whole URL, forms,
/// Python's `quote`, Go's path, .NET's `UrlEncode`, what differs from these in one character, and what a WHATWG parser
/// leaves in a path and in a query.
const STAY: [&[u8]; 11] = [
    b"-._~",
    b"-_.!~*'()",
    b"-_.!~*'();/?:@&=+$,#",
    b"*-._",
    b"-._~/",
    b"-._~$&+=:@",
    b"-_.!*()",
    b"-_.",
    b"*-._~",
    b"!$%&'()*+,-./:;=@[]^_|~",
    b"!$%&()*+,-./:;=?@[\\]^_`{|}~",
];

fn percent(value: &str, forms: &mut BTreeSet<String>) {
    for stay in STAY {
        for is_upper in [true, false] {
            let mut out = String::with_capacity(value.len());
            for &byte in value.as_bytes() {
                if byte.is_ascii_alphanumeric() || stay.contains(&byte) {
                    out.push(char::from(byte));
                } else {
                    let written = if is_upper {
                        write!(out, "%{byte:02X}")
                    } else {
                        write!(out, "%{byte:02x}")
                    };
                    written.expect("writing to a String does not fail");
                }
            }
            if value.contains(' ') {
                // Mostly a percent sign is written `%25`, so that every `%20` is a space; where it stays, this form is
                // one too many at worst.
                forms.insert(out.replace("%20", "+"));
            }
            forms.insert(out);
        }
    }
}

fn base64(value: &[u8], forms: &mut BTreeSet<String>) {
    let mut encoded = BTreeSet::new();
    for engine in [&STANDARD, &URL_SAFE] {
        encoded.insert(engine.encode(value));
    }
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        encoded.insert(engine.encode(value));
        for before in 0..3 {
            let mut padded = vec![0; before];
            padded.extend_from_slice(value);
            let text = engine.encode(&padded);
            // Characters that also hold bits of what stands around the value are left out.
            let start = (before * 8).div_ceil(6);
            let end = padded.len() * 8 / 6;
            encoded.insert(text[start..end].to_owned());
        }
    }
    // PHP's writer of JSON escapes the slash.
    let slashed: Vec<String> = encoded
        .iter()
        .filter(|form| form.contains('/'))
        .map(|form| form.replace('/', "\\/"))
        .collect();
    forms.extend(encoded);
    forms.extend(slashed);
}
