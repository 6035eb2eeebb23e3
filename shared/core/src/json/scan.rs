//! Reads a JSON text token by token, checking it on the way.

use super::JsonFault;
use crate::limits::JSON_DEPTH_MAX;

// The open containers are the bits of one word.
const _: () = assert!(JSON_DEPTH_MAX <= u64::BITS as usize);

/// What can hold other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
}

/// A piece of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A container begins.
    Open(Container),
    /// A container ends.
    Close(Container),
    /// The key of a member: what stands between its quotes, escapes and all.
    Key(&'a str),
    /// A string value: what stands between its quotes, escapes and all.
    Text(&'a str),
    /// A number as it is spelled.
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrClose,
    Key,
    KeyOrClose,
    CommaOrClose,
    End,
}

/// A reader of one JSON text. What it hands out was checked; after a fault it hands out nothing more of use.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    start: usize,
    expect: Expect,
    /// Containers around the text itself.
    outside: usize,
    depth: usize,
    /// Bit 0: whether the innermost open container is an object; bit 1: the one around it, and so on.
    objects: u64,
}

impl<'a> Scanner<'a> {
    /// At the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self::inside(text, 0)
    }

    /// At the start of a value that will stand inside `outside` containers of another text.
    pub fn inside(text: &'a str, outside: usize) -> Self {
        let expect = Expect::Value;
        Self { text, at: 0, start: 0, expect, outside, depth: outside, objects: 0 }
    }

    /// The next token; `None` at the end of a complete text.
    pub fn token(&mut self) -> Result<Option<Token<'a>>, JsonFault> {
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else {
                return if self.expect == Expect::End { Ok(None) } else { Err(JsonFault::Early) };
            };
            self.start = self.at;
            match (self.expect, byte) {
                (Expect::CommaOrClose, b',') => {
                    self.at += 1;
                    self.expect = if self.in_object() { Expect::Key } else { Expect::Value };
                }
                (Expect::CommaOrClose | Expect::KeyOrClose, b'}') if self.in_object() => {
                    return Ok(Some(self.close(Container::Object)));
                }
                (Expect::CommaOrClose | Expect::ValueOrClose, b']') if !self.in_object() => {
                    return Ok(Some(self.close(Container::Array)));
                }
                (Expect::Key | Expect::KeyOrClose, b'"') => return self.key().map(Some),
                (Expect::Value | Expect::ValueOrClose, _) => return self.value(byte).map(Some),
                _ => return self.unexpected(),
            }
        }
    }

    /// Where the last token began.
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Where the last token ended; for a key, behind its colon.
    pub const fn end(&self) -> usize {
        self.at
    }

    /// The whole value that comes next, as it is spelled; `None` where the array ends instead.
    pub fn element(&mut self) -> Result<Option<&'a str>, JsonFault> {
        let first = self.token()?;
        let start = self.start;
        match first {
            None | Some(Token::Close(_)) => return Ok(None),
            Some(Token::Open(_)) => {
                let outside = self.depth - 1;
                while self.depth > outside {
                    self.token()?;
                }
            }
            Some(_) => {}
        }
        Ok(Some(&self.text[start..self.at]))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn unexpected<T>(&self) -> Result<T, JsonFault> {
        Err(if self.at < self.text.len() {
            JsonFault::Syntax { at: self.at }
        } else {
            JsonFault::Early
        })
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn open(&mut self, container: Container) -> Result<Token<'a>, JsonFault> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(JsonFault::Deep { at: self.at });
        }
        self.at += 1;
        self.depth += 1;
        let is_object = container == Container::Object;
        self.objects = self.objects << 1 | u64::from(is_object);
        self.expect = if is_object { Expect::KeyOrClose } else { Expect::ValueOrClose };
        Ok(Token::Open(container))
    }

    fn close(&mut self, container: Container) -> Token<'a> {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        self.after_value();
        Token::Close(container)
    }

    fn after_value(&mut self) {
        self.expect = if self.depth == self.outside { Expect::End } else { Expect::CommaOrClose };
    }

    fn key(&mut self) -> Result<Token<'a>, JsonFault> {
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.unexpected();
        }
        self.at += 1;
        self.expect = Expect::Value;
        Ok(Token::Key(key))
    }

    fn value(&mut self, first: u8) -> Result<Token<'a>, JsonFault> {
        let token = match first {
            b'{' => return self.open(Container::Object),
            b'[' => return self.open(Container::Array),
            b'"' => Token::Text(self.string()?),
            b'-' | b'0'..=b'9' => Token::Number(self.number()?),
            b't' => Token::Word(self.word("true")?),
            b'f' => Token::Word(self.word("false")?),
            b'n' => Token::Word(self.word("null")?),
            _ => return self.unexpected(),
        };
        self.after_value();
        Ok(token)
    }

    fn word(&mut self, word: &'static str) -> Result<&'a str, JsonFault> {
        let start = self.at;
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.unexpected();
            }
            self.at += 1;
        }
        Ok(&self.text[start..self.at])
    }

    fn number(&mut self) -> Result<&'a str, JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if start == self.at { self.unexpected() } else { Ok(()) }
    }

    fn string(&mut self) -> Result<&'a str, JsonFault> {
        self.at += 1;
        let start = self.at;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let stop = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
            self.at += stop.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return self.unexpected(),
            }
        }
        self.at += 1;
        Ok(&self.text[start..self.at - 1])
    }

    fn escape(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                return Ok(());
            }
            Some(b'u') => self.at += 1,
            _ => return self.unexpected(),
        }
        match self.hex()? {
            0xDC00..=0xDFFF => Err(JsonFault::LoneSurrogate { at: start }),
            0xD800..=0xDBFF => {
                if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                    return Err(JsonFault::LoneSurrogate { at: start });
                }
                self.at += 2;
                match self.hex()? {
                    0xDC00..=0xDFFF => Ok(()),
                    _ => Err(JsonFault::LoneSurrogate { at: start }),
                }
            }
            _ => Ok(()),
        }
    }

    fn hex(&mut self) -> Result<u32, JsonFault> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.unexpected();
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }
}
