//! Reads a schema as leniently as the SDKs of the extensions differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{ActionSchema, ExtensionSchema, Field, Kind, ObjectSchema, shown};
use crate::json::{self, canonical};
use crate::limits::SCHEMA_TOKENS_MAX;

impl ExtensionSchema {
    /// Reads the `data` of an answer to a schema request.
    ///
    /// Every list and map may be `null` or absent, and what is not known is not looked at. Refused are texts that are
    /// not valid JSON, have a member of a wrong type, or more than [`SCHEMA_TOKENS_MAX`] keys and values; the caller
    /// checks [`crate::limits::SCHEMA_BYTES_MAX`].
    pub fn parse(raw: &[u8]) -> Result<Self, String> {
        let checked = json::utf8(raw).and_then(|text| Ok((text, json::count(text)?)));
        let (text, count) = checked.map_err(|fault| format!("the schema is {fault}"))?;
        if count > SCHEMA_TOKENS_MAX {
            return Err(format!("the schema has more than {SCHEMA_TOKENS_MAX} keys and values"));
        }
        let wire: Schema = serde_json::from_str(text).map_err(|error| {
            // The error can quote a whole value.
            format!("the schema is not as agreed: {}", shown(&error.to_string()))
        })?;
        let actions = wire.request_schema.into_iter();
        Ok(Self {
            config: wire.config_schema.into(),
            required_events: wire.required_events,
            actions: actions
                .map(|(name, action)| (name, action.unwrap_or_default().into()))
                .collect(),
            raw: text.into(),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Schema {
    #[serde(deserialize_with = "or_default")]
    config_schema: Members,
    #[serde(deserialize_with = "or_default")]
    request_schema: BTreeMap<String, Option<Action>>,
    #[serde(deserialize_with = "or_default")]
    required_events: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Action {
    #[serde(deserialize_with = "or_default")]
    label: String,
    #[serde(deserialize_with = "or_default")]
    short_description: String,
    #[serde(deserialize_with = "or_default")]
    long_description: String,
    #[serde(deserialize_with = "or_default")]
    is_default: bool,
    is_user_facing: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    is_impersonated: bool,
    #[serde(deserialize_with = "or_default")]
    allow_automation: bool,
    #[serde(deserialize_with = "or_default")]
    parameters: Members,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Members {
    #[serde(deserialize_with = "or_default")]
    fields: BTreeMap<String, Option<Element>>,
    #[serde(deserialize_with = "or_default")]
    requirements: Vec<Option<Vec<String>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Element {
    #[serde(deserialize_with = "or_default")]
    data_type: String,
    #[serde(deserialize_with = "or_default")]
    is_list: bool,
    #[serde(deserialize_with = "or_default")]
    description: String,
    default_value: Option<Box<RawValue>>,
    #[serde(deserialize_with = "or_default")]
    enum_values: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "or_default")]
    complex_enum_values: Vec<Option<Choice>>,
}

#[derive(Deserialize)]
struct Choice {
    value: Option<Box<RawValue>>,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl From<Action> for ActionSchema {
    fn from(wire: Action) -> Self {
        Self {
            label: wire.label,
            short_description: wire.short_description,
            long_description: wire.long_description,
            is_default: wire.is_default,
            is_user_facing: wire.is_user_facing.unwrap_or(true),
            is_impersonated: wire.is_impersonated,
            allow_automation: wire.allow_automation,
            parameters: wire.parameters.into(),
        }
    }
}

impl From<Members> for ObjectSchema {
    fn from(wire: Members) -> Self {
        let fields = wire.fields.into_iter();
        Self {
            fields: fields.map(|(name, field)| (name, field.unwrap_or_default().into())).collect(),
            requirements: wire.requirements.into_iter().flatten().collect(),
        }
    }
}

impl From<Element> for Field {
    fn from(wire: Element) -> Self {
        let choices = match wire.data_type.as_str() {
            "enum" => wire.enum_values,
            "complex_enum" => {
                let choices = wire.complex_enum_values.into_iter().flatten();
                choices.filter_map(|choice| choice.value).collect()
            }
            _ => Vec::new(),
        };
        let choices = choices.iter().filter_map(|choice| canonical(choice.get())).collect();
        Self {
            kind: Kind::parse(wire.data_type, choices),
            is_list: wire.is_list,
            description: wire.description,
            default: wire.default_value.map(|value| value.get().into()),
        }
    }
}
