//! What an extension says of its actions and its configuration, and what of that is enforced.
//!
//! Only the top level of an object is: its names, its requirements, the types of its values (LC-141 to LC-145). What
//! lies inside an `object` or a `record`, and every `filter`, is the extension's own affair.

mod kind;
mod read;
mod secrets;

use std::collections::BTreeMap;

pub use kind::Kind;
pub use secrets::{SECRET_PREFIX, fill_secrets, secret_references};

use crate::json::Object;
use crate::limits::NAME_BYTES_MAX;

/// What an extension answered to a schema request.
#[derive(Debug, Clone)]
pub struct ExtensionSchema {
    /// Its configuration.
    pub config: ObjectSchema,
    /// The events that it wants, as it names them.
    pub required_events: Vec<String>,
    actions: BTreeMap<String, ActionSchema>,
    raw: Box<str>,
}

/// An action that an extension advertises.
#[derive(Debug, Clone, Default)]
pub struct ActionSchema {
    /// For people.
    pub label: String,
    /// For people.
    pub short_description: String,
    /// For people.
    pub long_description: String,
    /// Whether it is the one that a user interface offers first.
    pub is_default: bool,
    /// Whether a user interface shows it. Never a rule of access. True unless the schema says otherwise.
    pub is_user_facing: bool,
    /// Whether it runs with the authority of the calling user.
    pub is_impersonated: bool,
    /// Whether a rule may ask for it and be named to the extension.
    pub allow_automation: bool,
    /// What its request data may hold.
    pub parameters: ObjectSchema,
}

/// The members that an object may have.
#[derive(Debug, Clone, Default)]
pub struct ObjectSchema {
    fields: BTreeMap<String, Field>,
    requirements: Vec<Vec<String>>,
}

/// A member that an object may have.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its type.
    pub kind: Kind,
    /// Whether its value is a list of that type.
    pub is_list: bool,
    /// For people.
    pub description: String,
    /// The raw JSON of the value that stands for an absent one. `false`, `0` and `""` are defaults, `null` is none.
    pub default: Option<Box<str>>,
}

impl ExtensionSchema {
    /// An action by its name, which has at most [`NAME_BYTES_MAX`] bytes.
    pub fn action(&self, name: &str) -> Option<&ActionSchema> {
        self.actions.get(name).filter(|_| name.len() <= NAME_BYTES_MAX)
    }

    /// An action by its name, or the text for one that is not advertised (LC-146).
    pub fn advertised(&self, name: &str) -> Result<&ActionSchema, String> {
        self.action(name).ok_or_else(|| format!("unknown request action: {}", shown(name)))
    }

    /// The actions and their names, sorted.
    pub fn actions(&self) -> impl ExactSizeIterator<Item = (&str, &ActionSchema)> {
        self.actions.iter().map(|(name, action)| (name.as_str(), action))
    }

    /// The JSON text that it was read from.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl ActionSchema {
    /// The data that is sent for a request's `data`: with its defaults, once it is known to fit the schema.
    ///
    /// An error is the text that the caller reads (LC-004); nothing may be sent then (LC-003). It is always the first
    /// of: a requirement that is not met (LC-143), a name that is not declared (LC-141, LC-142), a value of a wrong or
    /// an unknown type (LC-144, LC-145); within each, the first by the order of requirements or of names. A declared
    /// field that is `null` counts as absent and is dropped. A field with a default meets its requirement. Defaults
    /// are added at the end, sorted by name (LC-006).
    pub fn prepare(&self, mut data: Object) -> Result<Object, String> {
        let fields = &self.parameters.fields;
        self.parameters.drop_nulls(&mut data);
        for (name, field) in fields {
            if let Some(default) = &field.default
                && !data.contains(name)
            {
                data.insert_checked(name, default);
            }
        }
        for set in &self.parameters.requirements {
            if !set.is_empty() && !set.iter().any(|name| data.contains(name)) {
                return Err(format!("missing one of {}", shown(&set.join(", "))));
            }
        }
        let undeclared =
            data.iter().map(|(name, _)| name).filter(|name| !fields.contains_key(*name));
        if let Some(name) = undeclared.min() {
            return Err(format!("unknown parameter name: {}", shown(name)));
        }
        self.parameters.check_types(&data)?;
        Ok(data)
    }
}

impl ObjectSchema {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// The fields and their names, sorted.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &Field)> {
        self.fields.iter().map(|(name, field)| (name.as_str(), field))
    }

    /// The configuration that is sent for a stored one: no defaults, no requirements; members that are not declared
    /// and `null`s are dropped without a word, and the types of the rest are checked. An error is the text that the
    /// caller reads.
    pub fn config(&self, data: &Object) -> Result<Object, String> {
        let mut config = data.clone();
        config.retain(|name, value| value != "null" && self.fields.contains_key(name));
        self.check_types(&config)?;
        Ok(config)
    }

    fn drop_nulls(&self, data: &mut Object) {
        if data.iter().any(|(_, value)| value == "null") {
            data.retain(|name, value| value != "null" || !self.fields.contains_key(name));
        }
    }

    fn check_types(&self, data: &Object) -> Result<(), String> {
        for (name, field) in &self.fields {
            if let Some(value) = data.get(name) {
                field.check(value).map_err(|fault| fault.text(name))?;
            }
        }
        Ok(())
    }
}

/// Bytes of names from outside that an error text shows.
const SHOWN_BYTES: usize = 1_024;

/// What an error text shows of a text from outside: all of it, unless it is absurdly long.
pub(crate) fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES)]
}

#[cfg(test)]
mod tests;
