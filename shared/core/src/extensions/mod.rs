//! What is published, and who uses it: definitions of extensions, and subscriptions to them.

mod definitions;
mod rotation;
mod subscriptions;

pub(crate) use definitions::resealed;
pub use definitions::{
    DefinitionInput, create, definition, delete, list, replace, require_definition, secret,
};
pub use rotation::{Rotation, finish_rotation, previous_of, previous_secret, rotate_secret};
pub use subscriptions::{
    rekey, require_subscription, subscribe, subscription, subscriptions, unsubscribe,
};
