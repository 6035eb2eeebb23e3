//! JSON Schemas (2020-12) that partners upload, and what is validated with them.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
}

impl Schema {
    /// Compiles a schema; an error says what is wrong with it, and where.
    pub fn compile(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|_| "is not valid JSON")?;
        let validator = jsonschema::draft202012::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex())
            .build(&value)
            .map_err(|error| error.to_string())?;
        Ok(Self { validator })
    }

    /// Whether a JSON text fits the schema.
    pub fn accepts(&self, text: &[u8]) -> bool {
        serde_json::from_slice(text).is_ok_and(|value: Value| self.validator.is_valid(&value))
    }
}
