//! Placeholders: `${name}` in what is sent stands for a known value, and in what is expected it binds the value that is
//! found, which must then be the same wherever the name stands, and another than that of every other name.
//!
//! `${any}` is any text that is not empty, and `${time}` any time.

use std::collections::BTreeMap;

use annex_core::time::Timestamp;
use serde_json::Value;

/// Values by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bindings(BTreeMap<String, String>);

impl Bindings {
    /// Binds a name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Puts known values in place.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in &self.0 {
            out = out.replace(&format!("${{{name}}}"), value);
        }
        out
    }

    /// Compares; the text says where and how the found value differs.
    pub(crate) fn check(
        &mut self,
        expected: &Value,
        found: &Value,
        at: &str,
    ) -> Result<(), String> {
        match (expected, found) {
            (Value::String(expected), found) if expected.contains("${") => {
                self.check_text(expected, found, at)
            }
            (Value::Object(expected), Value::Object(found)) => {
                let filled = expected.iter().map(|(name, value)| (self.fill(name), value.clone()));
                let expected: serde_json::Map<String, Value> = filled.collect();
                if let Some(name) = found.keys().find(|name| !expected.contains_key(*name)) {
                    return Err(format!("{at}.{name} is not expected: {}", short(&found[name])));
                }
                expected.iter().try_for_each(|(name, value)| match found.get(name) {
                    Some(found) => self.check(value, found, &format!("{at}.{name}")),
                    None => Err(format!("{at}.{name} is missing")),
                })
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
                let mut pairs = expected.iter().zip(found).enumerate();
                pairs.try_for_each(|(n, (e, f))| self.check(e, f, &format!("{at}[{n}]")))
            }
            (expected, found) if expected == found => Ok(()),
            _ => Err(format!("{at} is {}, not {}", short(found), short(expected))),
        }
    }

    fn check_text(&mut self, expected: &str, found: &Value, at: &str) -> Result<(), String> {
        let Value::String(found) = found else {
            return Err(format!("{at} is {}, no text", short(found)));
        };
        let filled = self.fill(expected);
        // A name at the end of a text stands for the rest of what is found.
        let (start, name) = match filled.strip_suffix('}').and_then(|rest| rest.split_once("${")) {
            Some((start, name)) => (start, Some(name)),
            None => ("", None),
        };
        let Some(found) = found.strip_prefix(start).map(str::to_owned) else {
            return Err(format!("{at} is {found:?}, not {filled:?}"));
        };
        let fits = match name {
            Some("any") => !found.is_empty(),
            Some("time") => found.ends_with('Z') && Timestamp::parse(&found).is_some(),
            Some(name) => {
                if let Some((other, _)) = self.0.iter().find(|(_, value)| **value == found) {
                    return Err(format!("{at}: ${{{name}}} is the same as ${{{other}}}: {found}"));
                }
                self.0.insert(name.to_owned(), found.clone());
                !found.is_empty()
            }
            None => found == filled,
        };
        if fits { Ok(()) } else { Err(format!("{at} is {found:?}, not {filled:?}")) }
    }
}

/// The start of a value's JSON.
fn short(value: &Value) -> String {
    let text = value.to_string();
    text[..text.floor_char_boundary(600)].to_owned()
}
