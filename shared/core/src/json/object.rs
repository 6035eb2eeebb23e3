//! An object whose members' values stay text.

use std::fmt;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::scan::{Container, Scanner, Token};
use super::string::{decode, escape_into};
use super::{JsonFault, KEY_CHARS_SHOWN, quote, utf8};
use crate::limits::JSON_MEMBERS_MAX;

/// A JSON object, taken apart at its top level only: members keep their order, their keys and values their spelling.
///
/// At most [`JSON_MEMBERS_MAX`] members when parsed. White space between members is not kept. Its `Debug` shows no
/// values: they may hold secrets.
#[derive(Clone, Default)]
pub struct Object {
    members: IndexMap<Box<str>, Member>,
}

#[derive(Clone, PartialEq, Eq)]
struct Member {
    /// What stands between the key's quotes, where that is not the key itself.
    key: Option<Box<str>>,
    value: Box<str>,
}

impl Object {
    /// `{}`
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an object apart, and checks it as [`super::check`] does. A key that stands twice at the top level is
    /// refused.
    pub fn parse(text: &str) -> Result<Self, JsonFault> {
        let mut scanner = Scanner::new(text);
        if scanner.token()? != Some(Token::Open(Container::Object)) {
            // An invalid text is reported as that, and not as a valid text of another kind.
            while scanner.token()?.is_some() {}
            return Err(JsonFault::NotObject);
        }
        let mut object = Self::new();
        while let Some(Token::Key(inner)) = scanner.token()? {
            let value = scanner.element()?.ok_or(JsonFault::Early)?;
            object.add(inner, value)?;
        }
        while scanner.token()?.is_some() {}
        Ok(object)
    }

    /// As [`Self::parse`], from bytes; none at all stand for `{}`.
    pub fn read(bytes: &[u8]) -> Result<Self, JsonFault> {
        if bytes.is_empty() { Ok(Self::new()) } else { Self::parse(utf8(bytes)?) }
    }

    fn add(&mut self, inner: &str, value: &str) -> Result<(), JsonFault> {
        let name = decode(inner);
        let key = (name != inner).then(|| inner.into());
        if self.members.len() >= JSON_MEMBERS_MAX {
            return Err(JsonFault::Members);
        }
        match self.members.entry(name.into()) {
            Entry::Occupied(entry) => Err(JsonFault::DoubledKey {
                key: entry.key().chars().take(KEY_CHARS_SHOWN).collect(),
            }),
            Entry::Vacant(entry) => {
                entry.insert(Member { key, value: value.into() });
                Ok(())
            }
        }
    }

    /// The value of a member, as it is spelled.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members.get(name).map(|member| &*member.value)
    }

    /// Whether there is such a member.
    pub fn contains(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Sets a member to a value: in its place where there is one, at the end otherwise. The value must be one valid
    /// JSON text without white space around it that is not too deep inside an object.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), JsonFault> {
        let mut scanner = Scanner::inside(value, 1);
        while scanner.token()?.is_some() {}
        self.insert_checked(name, value.trim_ascii());
        Ok(())
    }

    /// Sets a member to a string.
    pub fn insert_text(&mut self, name: &str, text: &str) {
        self.insert_checked(name, &quote(text));
    }

    /// Sets a member to a value that was checked as part of another text.
    pub(crate) fn insert_checked(&mut self, name: &str, value: &str) {
        match self.members.entry(name.into()) {
            Entry::Occupied(mut entry) => entry.get_mut().value = value.into(),
            Entry::Vacant(entry) => {
                let mut inner = String::new();
                escape_into(&mut inner, name);
                let key = (inner != name).then(|| inner.into());
                entry.insert(Member { key, value: value.into() });
            }
        }
    }

    /// Takes a member out; the others keep their order. Time grows with the count of members: to take out many, use
    /// [`Self::retain`].
    pub fn remove(&mut self, name: &str) -> Option<Box<str>> {
        self.members.shift_remove(name).map(|member| member.value)
    }

    /// Keeps the members for which `keep` says so, of name and value.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        self.members.retain(|name, member| keep(name, &member.value));
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.members.iter().map(|(name, member)| (&**name, &*member.value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The object as JSON text without white space between its members.
    pub fn to_json(&self) -> String {
        let spelled = |name: &str, member: &Member| {
            member.key.as_deref().map_or(name.len(), str::len) + member.value.len() + 4
        };
        let length: usize = self.members.iter().map(|(name, member)| spelled(name, member)).sum();
        let mut out = String::with_capacity(length + 2);
        out.push('{');
        for (index, (name, member)) in self.members.iter().enumerate() {
            out.push_str(if index == 0 { "\"" } else { ",\"" });
            out.push_str(member.key.as_deref().unwrap_or(name));
            out.push_str("\":");
            out.push_str(&member.value);
        }
        out.push('}');
        out
    }
}

impl PartialEq for Object {
    /// The same members in the same order and spelling.
    fn eq(&self, other: &Self) -> bool {
        self.members.iter().eq(other.members.iter())
    }
}

impl Eq for Object {}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.keys()).finish()
    }
}
