//! The HTTP entry of Annex: one router for every contract.
//!
//! A route group is a file; a handler reads its input, asks the core, and writes the answer. **Invariant:** nothing is
//! decided here that is not about HTTP. **Invariant:** every error answer is the JSON of a [`annex_core::fault::Fault`],
//! and no answer is a redirect, a 504, or compressed: real clients send again on a 504, turn a redirected POST into a
//! GET, and cannot read the third.

mod actions;
mod answer;
mod calls;
mod capability;
mod definitions;
mod diagnose;
mod document;
mod extract;
mod fields;
mod gzdata;
mod hive;
mod keys;
mod operations;
mod org_errors;
mod orgs;
mod platform;
mod prefer;
mod routes;
mod subscriptions;
mod telemetry;
mod tokens;
mod usage;

use std::sync::Arc;

use annex_core::call::Calls;
use annex_core::ports::Ports;
use annex_core::telemetry::Telemetry;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;

pub use answer::{ApiResult, Failure, json, json_bytes};
pub use document::document;
pub use extract::{Authed, Form, Params};
pub use fields::Fields;
use routes::Routes;

/// What the handlers work with.
#[derive(Clone)]
pub struct App {
    /// The outside.
    pub ports: Ports,
    /// The life of calls.
    pub calls: Calls,
    /// The events of organizations.
    pub telemetry: Telemetry,
    /// How this deployment is reached.
    pub settings: Arc<Settings>,
}

/// How this deployment is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL under which clients reach this API, without a slash at its end: `http://127.0.0.1:8080`.
    pub public_url: String,
}

/// Every route.
fn routes() -> Routes {
    tokens::routes()
        .merge(orgs::routes())
        .merge(keys::routes())
        .merge(org_errors::routes())
        .merge(usage::routes())
        .merge(definitions::routes())
        .merge(subscriptions::routes())
        .merge(calls::routes())
        .merge(actions::routes())
        .merge(diagnose::routes())
        .merge(hive::routes())
        .merge(platform::routes())
        .merge(telemetry::routes())
        .merge(operations::routes())
        .merge(capability::routes())
}

/// The router.
pub fn router(app: App) -> Router {
    routes()
        .router
        .fallback(answer::no_route)
        .method_not_allowed_fallback(answer::no_method)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(answer::catch_panics))
        .with_state(app)
}

#[cfg(test)]
mod tests;
