//! A JSON text as a tree that keeps the spelling of every value.
//!
//! [`serde_json::Value`] rounds numbers beyond 64 bits and merges doubled keys; what a rule copies from an event into
//! a request keeps its bytes. The text is checked by `serde_json` first, so the walk here only finds boundaries.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::limits::JSON_DEPTH_MAX;

/// A value and its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// The text of the value, without space around it.
    pub raw: &'a str,
    /// What it is.
    pub kind: Kind<'a>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; its spelling is the node's text.
    Number,
    /// A string, decoded. One that holds a lone surrogate stays in its escaped spelling.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Node<'a>>),
    /// An object, its members in their order. Doubled keys stay.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Reads a JSON text; the error says what is wrong with it. At most [`JSON_DEPTH_MAX`] levels.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        Self::inside(text, 0)
    }

    /// Reads a text that wraps another one into this many levels more.
    pub fn inside(text: &'a str, levels: usize) -> Result<Self, String> {
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))?;
        let mut walk = Walk { text: raw.get(), at: 0, depth_max: JSON_DEPTH_MAX + levels };
        walk.value(1)
    }

    /// The member `name` of an object; of doubled keys the last.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Its text, if it is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What an error calls it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// A walk over a text that is valid JSON.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
}

impl<'a> Walk<'a> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self, level: usize) -> Result<Node<'a>, String> {
        self.space();
        let start = self.at;
        let kind = match self.peek() {
            b'{' => self.object(level)?,
            b'[' => self.list(level)?,
            b'"' => Kind::Text(self.string()),
            first => {
                while !matches!(self.peek(), 0 | b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
                {
                    self.at += 1;
                }
                match first {
                    b't' => Kind::Bool(true),
                    b'f' => Kind::Bool(false),
                    b'n' => Kind::Null,
                    _ => Kind::Number,
                }
            }
        };
        Ok(Node { raw: &self.text[start..self.at], kind })
    }

    fn enter(&mut self, level: usize) -> Result<(), String> {
        if level > self.depth_max {
            return Err(format!("JSON is nested more than {} levels deep", self.depth_max));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Whether another element follows; steps over the comma or the closing bracket.
    fn more(&mut self) -> bool {
        self.space();
        let more = self.peek() == b',';
        self.at += 1;
        more
    }

    fn list(&mut self, level: usize) -> Result<Kind<'a>, String> {
        self.enter(level)?;
        let mut elements = Vec::new();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(Kind::List(elements));
        }
        loop {
            elements.push(self.value(level + 1)?);
            if !self.more() {
                return Ok(Kind::List(elements));
            }
        }
    }

    fn object(&mut self, level: usize) -> Result<Kind<'a>, String> {
        self.enter(level)?;
        let mut members = Vec::new();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(Kind::Object(members));
        }
        loop {
            self.space();
            let key = self.string();
            self.space();
            // The colon.
            self.at += 1;
            let value = self.value(level + 1)?;
            members.push((key, value));
            if !self.more() {
                return Ok(Kind::Object(members));
            }
        }
    }

    fn string(&mut self) -> Cow<'a, str> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                b'"' | 0 => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let inner = &self.text[start + 1..self.at - 1];
        if !escaped {
            return Cow::Borrowed(inner);
        }
        match serde_json::from_str::<String>(&self.text[start..self.at]) {
            Ok(decoded) => Cow::Owned(decoded),
            Err(_) => Cow::Borrowed(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn raw(text: &str, path: &[&str]) -> String {
        let root = Node::parse(text).expect("valid");
        let mut at = &root;
        for name in path {
            at = at.member(name).expect("a member");
        }
        at.raw.to_owned()
    }

    #[test]
    fn every_value_keeps_its_spelling() {
        assert_eq!(raw(r#" { "n" : 1.0E+400 , "x":0} "#, &["n"]), "1.0E+400");
        assert_eq!(
            raw(r#"{"a":{"n":123456789012345678901234567890}}"#, &["a", "n"]),
            "123456789012345678901234567890"
        );
        assert_eq!(raw(r#"{"s":"a\u0041\"}"}"#, &["s"]), r#""a\u0041\"}""#);
        assert_eq!(raw(r#"{"l":[ 1, [] ,{} ] }"#, &["l"]), "[ 1, [] ,{} ]");
        assert_eq!(raw(r#"{"k":1,"k":2}"#, &["k"]), "2");
        assert_eq!(raw("[true,false,null]", &[]), "[true,false,null]");
    }

    #[test]
    fn strings_are_decoded_and_lone_surrogates_stay_escaped() {
        let text = r#"["a\n","é","\ud800","\ud83d\ude00",""]"#;
        let node = Node::parse(text).expect("valid");
        let Kind::List(list) = &node.kind else { panic!("a list") };
        let texts: Vec<_> = list.iter().map(|n| n.text().expect("text")).collect();
        assert_eq!(texts, ["a\n", "é", r"\ud800", "😀", ""]);
    }

    #[test]
    fn depth_64_is_read_and_65_is_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Node::parse(&nested(64)).is_ok());
        assert_eq!(
            Node::parse(&nested(65)),
            Err("JSON is nested more than 64 levels deep".to_owned())
        );
        assert!(Node::parse(&nested(100_000)).is_err());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "{\"a\"}", "[1,]", "nul", "1 2", "\"\\x\"", "NaN", "'a'"] {
            assert!(Node::parse(text).is_err(), "{text}");
        }
    }
}
