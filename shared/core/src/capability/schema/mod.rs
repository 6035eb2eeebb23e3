//! JSON Schemas (2020-12) that partners upload, and what is validated with them.
//!
//! Both come from outside, and either can be made to cost much: references that double at each step, patterns with a
//! thousand states, lists whose elements all hash alike. So a schema is looked at before it is compiled: what of it
//! validates nothing is left out, what never ends or is too large is refused, and the rest gets bounds (`cost`). A
//! value is measured before it is parsed, and one whose validation might take more than [`SCHEMA_STEPS_MAX`] steps or
//! too deep a stack does not fit. `format` is an annotation, as the draft has it: it refuses nothing.
//!
//! Numbers are compared as 64-bit integers or floating-point numbers; a number beyond those fits no schema. The value
//! itself travels as the text it was.

mod cost;
mod graph;
mod keyword;
mod measure;
mod pattern;
mod place;
mod reference;
#[cfg(test)]
mod tests;

use jsonschema::paths::Location;
use jsonschema::{ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value};

use self::cost::Bounds;
use self::graph::Graph;
use self::measure::Measure;
use self::pattern::Patterns;
use crate::json;
use crate::limits::{
    CAPABILITY_INPUT_BYTES_MAX, CAPABILITY_SCHEMA_BYTES_MAX, PATTERN_BYTES_MAX, SCHEMA_STEPS_MAX,
};

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    bounds: Bounds,
    size: Size,
}

/// How much a schema makes of its text: what a manifest has of it is limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Schemas inside it, itself included.
    pub parts: usize,
    /// What its patterns take once compiled, in bytes, at most.
    pub pattern_bytes: usize,
}

impl Schema {
    /// Compiles a schema; an error says what is wrong with it, and where.
    ///
    /// Refused are: more than [`CAPABILITY_SCHEMA_BYTES_MAX`] bytes; references to other schemas; other drafts; references that lead back to themselves on the same value; patterns that need backtracking; and
    /// whatever goes over the limits of schemas in [`crate::limits`].
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.len() > CAPABILITY_SCHEMA_BYTES_MAX {
            return Err(format!("takes more than {CAPABILITY_SCHEMA_BYTES_MAX} bytes"));
        }
        let keys = Measure::of(text).map_err(|fault| fault.to_string())?.keys;
        let mut value = parse(text).ok_or("holds a number that is too large")?;
        if keys != keys_of(&value) {
            return Err("holds a key twice in one object".to_owned());
        }
        reference::settle(&mut value)?;
        keyword::clean(&mut value)?;
        let mut patterns = Patterns::default();
        let graph = Graph::of(&value, &mut patterns)?;
        let bounds = Bounds::of(&graph)?;
        let size = Size { parts: graph.parts.len(), pattern_bytes: patterns.bytes };
        let validator = options(PATTERN_BYTES_MAX).build(&value).map_err(|error| {
            match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            }
        })?;
        Ok(Self { validator, bounds, size })
    }

    /// How much it makes of its text.
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Whether these bytes are a JSON text that fits the schema.
    ///
    /// Never more than [`CAPABILITY_INPUT_BYTES_MAX`] bytes, [`crate::limits::CAPABILITY_JSON_DEPTH_MAX`] levels
    /// (CH-065, CH-066) or [`SCHEMA_STEPS_MAX`] steps; and no object with a key twice, of which the receiver might read the
    /// one that was not validated.
    pub fn accepts(&self, bytes: &[u8]) -> bool {
        self.check(bytes).is_some_and(|value| self.validator.is_valid(&value))
    }

    fn check(&self, bytes: &[u8]) -> Option<Value> {
        if bytes.len() > CAPABILITY_INPUT_BYTES_MAX {
            return None;
        }
        let text = json::utf8(bytes).ok()?;
        let measure = Measure::of(text).ok()?;
        if measure.steps(&self.bounds)? > SCHEMA_STEPS_MAX {
            return None;
        }
        parse(text).filter(|value| keys_of(value) == measure.keys)
    }
}

/// How schemas are compiled: nothing is fetched, formats are annotations, and patterns do not backtrack.
///
/// For the branches of `anyOf` and `oneOf` the library makes tables of the values that a property is fixed to. Making
/// them takes time that grows with the cube of a hostile schema. It makes none where `const` is a keyword of somebody
/// else; so it is here, and what has it says `enum` instead.
fn options(pattern_bytes: usize) -> ValidationOptions<'static> {
    jsonschema::draft202012::options()
        .offline()
        .should_validate_formats(false)
        .with_keyword("const", |_: &Map<String, Value>, _: &Value, _: Location| {
            Err(ValidationError::custom("no cleaned schema has it"))
        })
        .with_pattern_options(pattern::engine(pattern_bytes))
}

/// The value of a checked text; `None` where a number is beyond what floating-point numbers hold.
fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Keys of all objects in a value, which is nested as deep as a checked text at most.
fn keys_of(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(keys_of).sum(),
        Value::Object(members) => members.len() + members.values().map(keys_of).sum::<usize>(),
        _ => 0,
    }
}
