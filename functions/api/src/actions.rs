//! The actions that a user interface offers.

use annex_core::auth::{CallerKind, permission};
use annex_core::ids::ExtensionName;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::calls::oid_of;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(list)
}

/// The actions of an extension that are for people.
#[derive(Serialize, ToSchema)]
struct Actions {
    actions: Vec<Action>,
}

/// An action.
#[derive(Serialize, ToSchema)]
struct Action {
    name: String,
    label: String,
    short_description: String,
    long_description: String,
    /// Whether it is the one to offer first.
    is_default: bool,
    /// Whether it runs with the authority of the calling user.
    is_impersonated: bool,
}

/// List the actions of an extension that a user interface offers, by name. Those that it declares as not for people are
/// left out, and stay callable (LC-086).
#[utoipa::path(get, path = "/v1/extension/actions/{name}", tag = "calls",
    params(
        ("name" = String, Path, description = "The extension"),
        ("oid" = Option<String>, Query, description = "The organization; the token's unless given")),
    responses((status = 200, description = "The actions", body = Actions)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    if caller.kind != CallerKind::Operator {
        caller.require(oid_of(&caller, &fields)?, permission::EXT_REQUEST)?;
    }
    let schema = app.calls.extension_schema(&ExtensionName::parse(&name)?).await?;
    let offered = schema.actions().filter(|(_, action)| action.is_user_facing);
    let actions = offered.map(|(name, action)| Action {
        name: name.to_owned(),
        label: action.label.clone(),
        short_description: action.short_description.clone(),
        long_description: action.long_description.clone(),
        is_default: action.is_default,
        is_impersonated: action.is_impersonated,
    });
    Ok(json(&Actions { actions: actions.collect() }))
}
