//! The types that values may have.

use indexmap::IndexSet;
use saphyr_parser::{Event, Parser};
use uuid::Uuid;

use super::{Field, SHOWN_BYTES, shown};
use crate::json::{canonical, check, elements, is_integral, text};
use crate::limits::YAML_BYTES_MAX;

/// A type of values, by what is checked of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Any string: `string`, `code`, `domain`, `tag` and others.
    Text,
    /// A string that can refer to a secret.
    Secret,
    /// A number with an integral value; also `duration` and `time`, in milliseconds.
    Integer,
    /// `true` or `false`.
    Bool,
    /// One of a list of values, in canonical JSON; any string when the list is empty.
    Choice(IndexSet<String>),
    /// A UUID: `sid` or `oid`.
    Id,
    /// A string with `://` in it.
    Url,
    /// A string that holds JSON, or an object or array.
    Json,
    /// A string that holds YAML, or an object or array.
    Yaml,
    /// An object.
    Object,
    /// An object; with `is_list` also a list of objects.
    Record,
    /// A type that the platform does not validate, by its name: no value is accepted (LC-144).
    Unknown(String),
}

/// Why a value does not fit its field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// LC-144.
    UnknownType(String),
    /// LC-145: what it is not, and the Go name of what it is.
    Not(&'static str, &'static str),
    /// None of these.
    NotOneOf(String),
}

impl Misfit {
    /// The text that the caller reads about the field `name`.
    pub(super) fn text(&self, name: &str) -> String {
        let name = shown(name);
        match self {
            Self::UnknownType(kind) => format!("unknown datatype: {}", shown(kind)),
            Self::Not(wanted, found) => {
                format!("invalid value for {name}: not {wanted}, a {found}")
            }
            Self::NotOneOf(choices) => format!("invalid value for {name}: not one of {choices}"),
        }
    }
}

impl Kind {
    /// A type by its name on the wire; `choices` are canonical JSON texts.
    pub(super) fn parse(name: String, choices: IndexSet<String>) -> Self {
        match name.as_str() {
            "string" | "code" | "yara_rule" | "domain" | "tag" | "platform" | "architecture"
            | "sensor_selector" | "yara_rule_name" => Self::Text,
            "secret" => Self::Secret,
            "integer" | "duration" | "time" => Self::Integer,
            "bool" => Self::Bool,
            "enum" | "complex_enum" => Self::Choice(choices),
            "sid" | "oid" => Self::Id,
            "url" => Self::Url,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "object" => Self::Object,
            "record" => Self::Record,
            // `text` and `event_name` too: the contract's validator never learned them.
            _ => Self::Unknown(name),
        }
    }

    /// Checks one checked JSON value.
    fn check(&self, value: &str) -> Result<(), Misfit> {
        let found = go_type(value);
        let is_structured = value.starts_with(['{', '[']);
        let (fits, wanted) = match self {
            Self::Text | Self::Secret => (value.starts_with('"'), "a string"),
            Self::Integer => (found == "float64" && is_integral(value), "an integer"),
            Self::Bool => (found == "bool", "a bool"),
            Self::Choice(choices) => return choice(choices, value),
            Self::Id => (string(value, |text| Uuid::try_parse(text).is_ok()), "a UUID"),
            Self::Url => (string(value, |text| text.contains("://")), "a URL"),
            Self::Json => {
                let holds = |text: &str| check(text.as_bytes()).is_ok();
                (is_structured || string(value, holds), "valid JSON")
            }
            Self::Yaml => (is_structured || string(value, is_yaml), "valid YAML"),
            Self::Object | Self::Record => (value.starts_with('{'), "an object"),
            Self::Unknown(name) => return Err(Misfit::UnknownType(name.clone())),
        };
        if fits { Ok(()) } else { Err(Misfit::Not(wanted, found)) }
    }
}

impl Field {
    /// Checks the checked JSON value of this field.
    pub(super) fn check(&self, value: &str) -> Result<(), Misfit> {
        let is_list = value.starts_with('[');
        match &self.kind {
            Kind::Unknown(_) => self.kind.check(value),
            // The documentation's own sample declares a list and describes a map.
            Kind::Record if self.is_list && !is_list => self.kind.check(value),
            _ if !self.is_list => self.kind.check(value),
            _ if !is_list => Err(Misfit::Not("a list", go_type(value))),
            _ => elements(value).try_for_each(|element| self.kind.check(element)),
        }
    }
}

/// What Go calls the type of a decoded JSON value.
fn go_type(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'{') => "map[string]interface {}",
        Some(b'[') => "[]interface {}",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "<nil>",
        _ => "float64",
    }
}

fn string(value: &str, accepts: impl FnOnce(&str) -> bool) -> bool {
    text(value).is_some_and(|text| accepts(&text))
}

fn choice(choices: &IndexSet<String>, value: &str) -> Result<(), Misfit> {
    let is_text = value.starts_with('"');
    let is_member = || canonical(value).is_some_and(|value| choices.contains(&value));
    if choices.is_empty() && is_text || is_member() {
        return Ok(());
    }
    if !is_text && choices.iter().all(|choice| choice.starts_with('"')) {
        return Err(Misfit::Not("a string", go_type(value)));
    }
    let mut list = String::new();
    for choice in choices {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&text(choice).unwrap_or(choice.into()));
        if list.len() > SHOWN_BYTES {
            break;
        }
    }
    Err(Misfit::NotOneOf(shown(&list).to_owned()))
}

/// Whether the syntax of `text` is YAML. Builds no tree, so that aliases of aliases cost nothing.
fn is_yaml(text: &str) -> bool {
    if text.len() > YAML_BYTES_MAX {
        return false;
    }
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::StreamEnd, _)) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}
