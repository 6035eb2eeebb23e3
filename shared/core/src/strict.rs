//! Requests of untrusted code, read strictly: every problem is found and named by its path (AL-029 to AL-034).
//!
//! A request is read field by field; what was not asked for is a problem of its own, at any depth. Nothing is carried out
//! of a request that has one.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::json::{self, JsonFault, Object};

/// Problems that a refusal shows; of further ones it gives the count.
pub const PROBLEMS_SHOWN_MAX: usize = 20;

/// Characters of a path that a problem shows.
const PATH_CHARS_SHOWN: usize = 200;

/// A field that the contract does not know (AL-034).
const UNKNOWN: &str =
    "unknown field (the app may be built with a newer SDK than this platform runs)";

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// No JSON at all (AL-029).
    #[error("request is not JSON")]
    NotJson,
    /// JSON outside the contract: each problem as `path: message`, separated by `; ` (AL-030, AL-031).
    #[error("invalid request: {0}")]
    Invalid(String),
}

/// Reads one request: `read` asks for its fields, and gives up with `None` where one of them has a problem.
pub fn read<T>(
    request: &[u8],
    read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Result<T, RequestFault> {
    let text = match json::check(request) {
        Ok(text) => text.trim_ascii(),
        Err(fault @ (JsonFault::Deep { .. } | JsonFault::LoneSurrogate { .. })) => {
            return Err(RequestFault::Invalid(format!("request: {fault}")));
        }
        Err(_not_json) => return Err(RequestFault::NotJson),
    };
    let mut problems = Problems::default();
    let value = Value { path: String::new(), raw: text, problems: &mut problems };
    let read = value.object(read);
    match read {
        Some(request) if problems.count == 0 => Ok(request),
        _ => Err(RequestFault::Invalid(problems.text())),
    }
}

#[derive(Debug, Default)]
struct Problems {
    shown: Vec<String>,
    count: usize,
}

impl Problems {
    fn add(&mut self, path: &str, message: &str) {
        self.count += 1;
        if self.shown.len() < PROBLEMS_SHOWN_MAX {
            let path: String = path.chars().take(PATH_CHARS_SHOWN).collect();
            let path = if path.is_empty() { "request" } else { &path };
            self.shown.push(format!("{path}: {message}"));
        }
    }

    fn text(&self) -> String {
        let mut text = self.shown.join("; ");
        if let Some(more) = self.count.checked_sub(self.shown.len()).filter(|more| *more > 0) {
            let _ = write!(text, "; and {more} more");
        }
        text
    }
}

/// The fields of an object, each to be asked for once.
#[derive(Debug)]
pub struct Fields<'p> {
    path: String,
    object: Object,
    asked: HashSet<&'static str>,
    problems: &'p mut Problems,
}

impl Fields<'_> {
    /// A field that has to be there. `None`: it is not, or has a problem.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'_>) -> Option<T>,
    ) -> Option<T> {
        let read = self.optional(name, read)?;
        if read.is_none() {
            self.problems.add(&inside(&self.path, name), "is missing");
        }
        read
    }

    /// A field that may be left out: `Some(None)` then. `None`: it has a problem.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        self.asked.insert(name);
        let Some(raw) = self.object.get(name) else { return Some(None) };
        let value = Value { path: inside(&self.path, name), raw, problems: self.problems };
        read(value).map(Some)
    }

    /// Whether a field is there.
    pub fn has(&self, name: &str) -> bool {
        self.object.contains(name)
    }

    /// A problem of one field, or of what several of them say together.
    pub fn problem(&mut self, name: &str, message: &str) {
        self.problems.add(&inside(&self.path, name), message);
    }

    /// A problem of the object as a whole.
    pub fn problem_here(&mut self, message: &str) {
        self.problems.add(&self.path, message);
    }

    fn finish(self) {
        for (name, _value) in self.object.iter() {
            if !self.asked.contains(name) {
                self.problems.add(&inside(&self.path, name), UNKNOWN);
            }
        }
    }
}

/// A value in a request, with its path.
#[derive(Debug)]
pub struct Value<'v> {
    path: String,
    raw: &'v str,
    problems: &'v mut Problems,
}

impl<'v> Value<'v> {
    /// A problem of this value.
    pub fn problem<T>(self, message: &str) -> Option<T> {
        self.problems.add(&self.path, message);
        None
    }

    /// The value as it is spelled.
    pub fn raw(&self) -> &'v str {
        self.raw
    }

    /// Whether it is a string.
    pub fn is_text(&self) -> bool {
        self.raw.starts_with('"')
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.raw.starts_with('[')
    }

    /// Any string.
    pub fn any_text(self) -> Option<String> {
        match json::text(self.raw) {
            Some(text) => Some(text.into_owned()),
            None => self.problem("expected a string"),
        }
    }

    /// A string of so many characters.
    pub fn text(self, chars: RangeInclusive<usize>) -> Option<String> {
        let Some(text) = json::text(self.raw) else { return self.problem("expected a string") };
        // One more than allowed is enough to know.
        let count = text.chars().take(chars.end().saturating_add(1)).count();
        if chars.contains(&count) {
            return Some(text.into_owned());
        }
        let (least, most) = chars.into_inner();
        self.problem(&format!("expected {least} to {most} characters"))
    }

    /// One of some words.
    pub fn word<T: Copy>(self, words: &[(&str, T)]) -> Option<T> {
        let word = json::text(self.raw);
        let known = words.iter().find(|(known, _)| word.as_deref() == Some(*known));
        match known {
            Some((_, meaning)) => Some(*meaning),
            None => {
                let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                self.problem(&format!("expected one of {}", known.join(", ")))
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(self) -> Option<bool> {
        match self.raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => self.problem("expected true or false"),
        }
    }

    /// A whole number of this range, however it is spelled (`10`, `10.0`, `1e1`).
    pub fn whole(self, range: RangeInclusive<i64>) -> Option<i64> {
        let (least, most) = (*range.start(), *range.end());
        match whole(self.raw).filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => self.problem(&format!("expected a whole number from {least} to {most}")),
        }
    }

    /// An object that is read strictly: a field that `read` does not ask for is a problem.
    pub fn object<T>(self, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        let object = match Object::parse(self.raw) {
            Ok(object) => object,
            Err(JsonFault::NotObject) => return self.problem("expected an object"),
            Err(fault) => return self.problem(&fault.to_string()),
        };
        let asked = HashSet::new();
        let mut fields = Fields { path: self.path, object, asked, problems: self.problems };
        let before = fields.problems.count;
        let read = read(&mut fields);
        debug_assert!(read.is_some() || before < fields.problems.count, "a refusal has a reason");
        fields.finish();
        read
    }

    /// An object whose names are the module's own, as it is spelled. No name may stand twice at its top level.
    pub fn any_object(self) -> Option<Object> {
        match Object::parse(self.raw) {
            Ok(object) => Some(object),
            Err(JsonFault::NotObject) => self.problem("expected an object"),
            Err(fault) => self.problem(&fault.to_string()),
        }
    }

    /// An object whose names are the module's own and whose values are all read alike, at most `count_max` of them.
    pub fn each_member<T>(
        self,
        count_max: usize,
        mut read: impl FnMut(Value<'_>) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        let Value { path, raw, problems } = self;
        let object = Value { path: path.clone(), raw, problems: &mut *problems }.any_object()?;
        if count_max < object.len() {
            problems.add(&path, &format!("expected at most {count_max} fields"));
            return None;
        }
        let read_one = |(name, raw): (&str, &str)| {
            let value = Value { path: inside(&path, name), raw, problems: &mut *problems };
            read(value).map(|value| (name.to_owned(), value))
        };
        // All of them are read before any is given up, so that each problem is named.
        let read: Vec<_> = object.iter().map(read_one).collect();
        read.into_iter().collect()
    }

    /// A name and a value: an array of two strings.
    pub fn pair(self) -> Option<(String, String)> {
        let mut texts = json::elements(self.raw).map(json::text);
        match (self.is_array(), texts.next(), texts.next(), texts.next()) {
            (true, Some(Some(name)), Some(Some(value)), None) => {
                Some((name.into_owned(), value.into_owned()))
            }
            _ => self.problem("expected a [name, value] pair"),
        }
    }

    /// The elements of an array, at most `count_max` of them.
    pub fn elements<T>(
        self,
        count_max: usize,
        mut read: impl FnMut(Value<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if !self.is_array() {
            return self.problem("expected an array");
        }
        let elements: Vec<_> = json::elements(self.raw).take(count_max.saturating_add(1)).collect();
        if count_max < elements.len() {
            return self.problem(&format!("expected at most {count_max} elements"));
        }
        let Value { path, problems, .. } = self;
        let read_one = |(index, raw): (usize, &str)| {
            let path = inside(&path, &index.to_string());
            read(Value { path, raw, problems: &mut *problems })
        };
        let read: Vec<_> = elements.into_iter().enumerate().map(read_one).collect();
        read.into_iter().collect()
    }
}

/// The path of a field; of an element by its number.
fn inside(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The number that a checked JSON value spells, where it is a whole one that fits.
fn whole(raw: &str) -> Option<i64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    let first = raw.bytes().next()?;
    let float: f64 = (first == b'-' || first.is_ascii_digit()).then(|| raw.parse().ok())??;
    // Beyond 2^53 a double no longer says which whole number was meant.
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
    exact.then_some(float as i64)
}

#[cfg(test)]
mod tests;
