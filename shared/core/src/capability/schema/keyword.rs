//! What of a schema is looked at: the keywords of JSON Schema 2020-12 that validate, and nothing else.

use serde_json::{Map, Value, json};

use super::place::Place;

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A schema.
    Schema,
    /// A list of schemas.
    List,
    /// An object of schemas.
    Map,
    /// Something else.
    Plain,
    /// Nothing that is taken: it belongs to another draft, or makes one schema several.
    Refused,
    /// An annotation, or a word of somebody else.
    Ignored,
}

impl Kind {
    pub(super) fn of(keyword: &str) -> Self {
        match keyword {
            "additionalProperties"
            | "contains"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Self::Schema,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::List,
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
                Self::Map
            }
            "$dynamicAnchor" | "$dynamicRef" | "$ref" | "const" | "dependentRequired" | "enum"
            | "exclusiveMaximum" | "exclusiveMinimum" | "maxContains" | "maxItems"
            | "maxLength" | "maxProperties" | "maximum" | "minContains" | "minItems"
            | "minLength" | "minProperties" | "minimum" | "multipleOf" | "pattern" | "required"
            | "type" | "uniqueItems" => Self::Plain,
            "$recursiveAnchor" | "$recursiveRef" | "$schema" | "$vocabulary"
            | "additionalItems" | "dependencies" => Self::Refused,
            _ => Self::Ignored,
        }
    }
}

/// The names of the draft in `$schema`.
const DRAFTS: [&str; 2] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema#",
];

/// Whether the value of `$schema` names the draft that this is.
pub(super) fn is_known_draft(draft: &Value) -> bool {
    draft.as_str().is_some_and(|draft| DRAFTS.contains(&draft))
}

/// Leaves of a schema only what validates, so that nothing that is compiled was not looked at here.
pub(super) fn clean(schema: &mut Value) -> Result<(), String> {
    if let Value::Object(members) = schema
        && let Some(draft) = members.shift_remove("$schema")
        && !is_known_draft(&draft)
    {
        return Err("$schema: only the draft 2020-12 is known".to_owned());
    }
    clean_inside(schema, &Place::default())
}

fn clean_inside(schema: &mut Value, place: &Place) -> Result<(), String> {
    let members = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(members) => members,
        _ => return Err(place.fault("is not a schema: neither an object nor true nor false")),
    };
    if let Some(word) = members.keys().find(|word| Kind::of(word) == Kind::Refused) {
        return Err(place.within(word).fault("is not supported here"));
    }
    members.retain(|word, _| Kind::of(word) != Kind::Ignored);
    // Said in the other way, see `super::options`.
    if let Some(value) = members.shift_remove("const") {
        let only = Value::Array(vec![value]);
        if members.contains_key("enum") {
            let also = json!({ "enum": only });
            match members.entry("allOf").or_insert_with(|| json!([])) {
                Value::Array(schemas) => schemas.push(also),
                _ => return Err(place.within("allOf").fault("is not a list")),
            }
        } else {
            members.insert("enum".to_owned(), only);
        }
    }
    clean_members(members, place)
}

fn clean_members(members: &mut Map<String, Value>, place: &Place) -> Result<(), String> {
    for (word, value) in members.iter_mut() {
        let place = place.within(word);
        match (Kind::of(word), value) {
            (Kind::Schema, value) => clean_inside(value, &place)?,
            (Kind::List, Value::Array(schemas)) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    clean_inside(schema, &place.within(&index.to_string()))?;
                }
            }
            (Kind::Map, Value::Object(schemas)) => {
                for (name, schema) in schemas.iter_mut() {
                    clean_inside(schema, &place.within(name))?;
                }
            }
            (Kind::List, _) => return Err(place.fault("is not a list")),
            (Kind::Map, _) => return Err(place.fault("is not an object")),
            _ => {}
        }
    }
    Ok(())
}
