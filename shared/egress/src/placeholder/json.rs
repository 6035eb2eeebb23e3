//! Placeholders inside the strings of a JSON text.

use std::borrow::Cow;

use annex_core::json::{Container, Scanner, Token, decode, escape_into};

use super::{FillFault, Place, Secrets};

impl Secrets {
    /// A `json` body: the value without white space, its strings as `JSON.stringify` writes them, placeholders filled in
    /// strings and keys before (AL-071, AL-072). The order of keys and the spelling of numbers are the value's own.
    ///
    /// The text must be checked JSON.
    pub fn fill_json(&self, value: &str, place: Place) -> Result<String, FillFault> {
        let mut out = String::with_capacity(value.len());
        let mut scanner = Scanner::new(value);
        // What came last: a comma stands between two values, none behind an opening or a key.
        let mut follows = false;
        while let Some(token) = scanner.token().map_err(|_unchecked| FillFault::NotJson)? {
            if follows && !matches!(token, Token::Close(_)) {
                out.push(',');
            }
            follows = !matches!(token, Token::Open(_) | Token::Key(_));
            match token {
                Token::Open(Container::Object) => out.push('{'),
                Token::Open(Container::Array) => out.push('['),
                Token::Close(Container::Object) => out.push('}'),
                Token::Close(Container::Array) => out.push(']'),
                Token::Number(raw) | Token::Word(raw) => out.push_str(raw),
                Token::Key(inner) => {
                    self.push_string(&mut out, inner, place)?;
                    out.push(':');
                }
                Token::Text(inner) => self.push_string(&mut out, inner, place)?,
            }
        }
        Ok(out)
    }

    fn push_string(&self, out: &mut String, inner: &str, place: Place) -> Result<(), FillFault> {
        out.push('"');
        escape_into(out, &self.fill(&decode(inner), place)?);
        out.push('"');
        Ok(())
    }

    /// A `jsonText` body: byte for byte, but for placeholders inside strings, whose values are escaped for a JSON string
    /// (AL-073, AL-235 to AL-238).
    pub fn fill_json_text<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, FillFault> {
        if self.tag_outside_strings(text) {
            return Err(FillFault::Misplaced(Place::JsonOutsideString));
        }
        let mut out = String::new();
        let mut copied = 0;
        let mut scanner = Scanner::new(text);
        while let Some(token) = scanner.token().map_err(|_fault| FillFault::NotJson)? {
            let (Token::Key(inner) | Token::Text(inner)) = token else { continue };
            let start = scanner.start() + 1;
            if let Cow::Owned(filled) = self.fill_inner(inner)? {
                out.push_str(&text[copied..start]);
                out.push_str(&filled);
                copied = start + inner.len();
            }
        }
        if copied == 0 {
            return Ok(Cow::Borrowed(text));
        }
        out.push_str(&text[copied..]);
        Ok(Cow::Owned(out))
    }

    /// Fills what stands between the quotes of a JSON string. A string that spells a placeholder with escapes is written
    /// anew as a whole; of all others only the placeholders change.
    fn fill_inner<'t>(&self, inner: &'t str) -> Result<Cow<'t, str>, FillFault> {
        let text = decode(inner);
        if !self.holds_tag(&text) {
            return Ok(Cow::Borrowed(inner));
        }
        let plainly = inner.matches(self.tag()).count() == text.matches(self.tag()).count();
        let raw = plainly.then(|| self.fill_with(inner, Place::Body, escape_into));
        match raw {
            Some(Err(_)) | None => {
                let filled = self.fill(&text, Place::Body)?;
                let mut out = String::with_capacity(filled.len());
                escape_into(&mut out, &filled);
                Ok(Cow::Owned(out))
            }
            Some(filled) => filled,
        }
    }

    /// Whether the tag stands outside the strings of a text that may not be JSON at all.
    fn tag_outside_strings(&self, text: &str) -> bool {
        if !self.holds_tag(text) {
            return false;
        }
        let mut rest = text;
        loop {
            let (outside, string) = rest.split_once('"').unwrap_or((rest, ""));
            if self.holds_tag(outside) {
                return true;
            }
            let Some(end) = string_end(string) else { return false };
            rest = &string[end..];
        }
    }
}

/// Behind the quote that ends a string, of what follows its first quote.
fn string_end(string: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in string.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}
