//! `x-chaster-options`: fields of an input whose choices come from a query.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::capability::id::Qualified;

/// Where the choices of a field come from.
#[derive(Debug, Clone)]
pub struct OptionsSource {
    /// The query that answers them.
    pub query: Qualified,
    /// What it gets; `{}` where nothing is declared. A JSON object.
    pub params: Box<RawValue>,
}

/// The fields with choices of an input's schema, by name; an error says what is wrong, and where.
pub(crate) fn of_schema(_schema: &str) -> Result<HashMap<String, OptionsSource>, String> {
    Ok(HashMap::new())
}
