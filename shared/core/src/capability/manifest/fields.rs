//! Reads an object member by member, and says by its path what is wrong or left over.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{self, Object};
use crate::limits::MANIFEST_ENTRIES_MAX;

/// An object that is being read. Every error is a text that begins with the path of what is wrong.
pub(super) struct Fields {
    place: String,
    object: Object,
}

impl Fields {
    /// Starts on a checked text that stands at `place` and has to be an object without doubled keys. It may have these
    /// members; none of them may be `null`: what is meant to be absent is left out.
    pub(super) fn open(place: &str, raw: &str, known: &[&str]) -> Result<Self, String> {
        let at = |what: &str| {
            if place.is_empty() { what.to_owned() } else { format!("{place}: {what}") }
        };
        let object = Object::parse(raw).map_err(|fault| at(&fault.to_string()))?;
        let fields = Self { place: place.to_owned(), object };
        for (name, value) in fields.object.iter() {
            if !known.contains(&name) {
                return Err(fields.fault(shown(name), "is not known"));
            }
            if value == "null" {
                return Err(fields.fault(name, "is null: leave it out, or give a value"));
            }
        }
        Ok(fields)
    }

    /// Where a member stands.
    pub(super) fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// What is wrong with a member.
    pub(super) fn fault(&self, name: &str, what: &str) -> String {
        format!("{}: {what}", self.place(name))
    }

    /// A member as it is spelled.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        self.object.get(name)
    }

    /// A member that has to be there, as it is spelled.
    pub(super) fn required(&self, name: &str) -> Result<&str, String> {
        self.optional(name).ok_or_else(|| self.fault(name, "is missing"))
    }

    /// A member that is a string.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        let Some(raw) = self.optional(name) else { return Ok(None) };
        json::text(raw).map(Some).ok_or_else(|| self.fault(name, "is not a string"))
    }

    /// A member that is a string of `min` to `max` characters.
    pub(super) fn short_text(
        &self,
        name: &str,
        min: usize,
        max: usize,
    ) -> Result<Option<String>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if (min..=max).contains(&text.chars().count()) {
            return Ok(Some(text.into_owned()));
        }
        Err(self.fault(name, &format!("has not {min} to {max} characters")))
    }

    /// A member that is `true` or `false`; `false` where it is absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.optional(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(self.fault(name, "is neither true nor false")),
        }
    }

    /// The elements of a member that is a list of at most [`MANIFEST_ENTRIES_MAX`], each with its place.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<(String, &str)>>, String> {
        let Some(raw) = self.optional(name) else { return Ok(None) };
        if !raw.starts_with('[') {
            return Err(self.fault(name, "is not a list"));
        }
        let elements: Vec<_> = json::elements(raw)
            .take(MANIFEST_ENTRIES_MAX + 1)
            .enumerate()
            .map(|(index, raw)| (format!("{}[{index}]", self.place(name)), raw))
            .collect();
        if elements.len() > MANIFEST_ENTRIES_MAX {
            let what = format!("has more than {MANIFEST_ENTRIES_MAX} entries");
            return Err(self.fault(name, &what));
        }
        Ok(Some(elements))
    }
}

/// A checked text as a raw value.
pub(super) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("what is a value in a checked text is one")
}

/// Characters of an unknown name that a fault shows.
const NAME_CHARS_SHOWN: usize = 40;

fn shown(name: &str) -> &str {
    name.char_indices().nth(NAME_CHARS_SHOWN).map_or(name, |(end, _)| &name[..end])
}
