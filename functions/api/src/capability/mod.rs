//! Capability extensions: what the operator and the organizations do with them, and the endpoints of the contract, which
//! extensions call with their developer tokens.
//!
//! **Invariant:** whatever goes wrong below `/api/extensions/` is answered in the contract's own shape.

mod bodies;
mod calls;
mod definitions;
mod operations;
mod rates;
mod refused;
mod scopes;
mod sessions;

use crate::routes::Routes;

pub(crate) use bodies::Body;
pub(crate) use definitions::{ExtensionView, create, delete, find, list, replace};
#[cfg(test)]
pub(crate) use refused::PREFIX;
pub(crate) use refused::{ContractResult, Developer, MixedResult, Refused, refuses};

pub(crate) fn routes() -> Routes {
    definitions::routes()
        .merge(calls::routes())
        .merge(scopes::routes())
        .merge(sessions::routes())
        .merge(operations::routes())
}
