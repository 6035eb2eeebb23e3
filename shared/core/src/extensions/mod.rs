//! What is published, and who uses it: definitions of extensions, and subscriptions to them.

mod definitions;
mod subscriptions;

pub(crate) use definitions::resealed;
pub use definitions::{
    DefinitionInput, create, definition, delete, list, replace, require_definition, secret,
};
pub use subscriptions::{
    rekey, require_subscription, subscribe, subscription, subscriptions, unsubscribe,
};
