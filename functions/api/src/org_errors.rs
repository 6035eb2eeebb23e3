//! Errors of an organization.

use annex_core::auth::permission;
use annex_core::ids::Oid;
use annex_core::org_errors;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::success;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(list, dismiss)
}

/// The errors of an organization.
#[derive(Serialize, ToSchema)]
struct Errors {
    errors: Vec<Entry>,
}

/// A failure, however often it happened.
#[derive(Serialize, ToSchema)]
struct Entry {
    /// What failed; what dismissing takes.
    component: String,
    /// What it said.
    error: String,
    /// When it was first seen, in seconds since the epoch.
    ts: i64,
    /// When it was last seen, in seconds since the epoch.
    last_ts: i64,
    /// How often it was seen.
    count: u64,
    oid: String,
}

/// What went wrong in an organization: one entry for each failure, however often it happened, and 1,000 at most.
#[utoipa::path(get, path = "/v1/errors/{oid}", tag = "errors",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "The errors, by component", body = Errors)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::ORG_ERRORS_GET)?;
    let entry = |found: org_errors::OrgError| Entry {
        component: found.component,
        error: found.error,
        ts: found.first_seen.secs(),
        last_ts: found.last_seen.secs(),
        count: u64::try_from(found.count).unwrap_or(u64::MAX),
        oid: oid.to_string(),
    };
    let errors = org_errors::list(&app.ports, oid).await?;
    Ok(json(&Errors { errors: errors.into_iter().map(entry).collect() }))
}

/// Dismiss every error of a component.
#[utoipa::path(delete, path = "/v1/errors/{oid}/{component}", tag = "errors",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("component" = String, Path, description = "The component")),
    responses((status = 200, description = "Done", body = Value)))]
async fn dismiss(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, component)): Params<(String, String)>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::ORG_ERRORS_DEL)?;
    org_errors::dismiss(&app.ports, oid, &component).await?;
    Ok(success())
}
