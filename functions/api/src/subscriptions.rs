//! Subscriptions of organizations to extensions.

use annex_core::auth::permission;
use annex_core::extensions;
use annex_core::fault::Outcome;
use annex_core::ids::{ExtensionName, Oid};
use axum::extract::State;
use serde_json::{Map, Value, json as object};

use crate::answer::success;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(list, subscribe, unsubscribe, rekey)
}

/// The subscriptions of an organization, by extension.
#[utoipa::path(get, path = "/v1/orgs/{oid}/subscriptions", tag = "subscriptions",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "An object with a member for each", body = Value)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::EXT_LIST)?;
    let found = extensions::subscriptions(&app.ports, oid).await?;
    let entry = |found: annex_core::model::Subscription| {
        let name = found.extension.to_string();
        let created_at = found.created_at.to_string();
        (name.clone(), object!({"name": name, "created_at": created_at}))
    };
    Ok(json(&found.into_iter().map(entry).collect::<Map<String, Value>>()))
}

fn parse((oid, name): &(String, String)) -> Outcome<(Oid, ExtensionName)> {
    Ok((Oid::parse(oid)?, ExtensionName::parse(name)?))
}

/// Subscribe an organization to an extension. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/orgs/{oid}/subscription/extension/{name}", tag = "subscriptions",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "Done", body = Value)))]
async fn subscribe(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(path): Params<(String, String)>,
) -> ApiResult {
    let (oid, name) = parse(&path)?;
    caller.require(oid, permission::EXT_SUB)?;
    extensions::subscribe(&app.ports, &app.calls, oid, &name, &caller.ident).await?;
    Ok(success())
}

/// Unsubscribe an organization from an extension. Its configuration stays.
#[utoipa::path(delete, path = "/v1/orgs/{oid}/subscription/extension/{name}", tag = "subscriptions",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "Done", body = Value)))]
async fn unsubscribe(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(path): Params<(String, String)>,
) -> ApiResult {
    let (oid, name) = parse(&path)?;
    caller.require(oid, permission::EXT_SUB)?;
    extensions::unsubscribe(&app.ports, &app.calls, oid, &name, &caller.ident).await?;
    Ok(success())
}

/// Refuse every token that the extension got in this organization so far.
#[utoipa::path(patch, path = "/v1/orgs/{oid}/subscription/extension/{name}", tag = "subscriptions",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "Done", body = Value)))]
async fn rekey(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(path): Params<(String, String)>,
) -> ApiResult {
    let (oid, name) = parse(&path)?;
    caller.require(oid, permission::EXT_SUB)?;
    extensions::rekey(&app.ports, oid, &name).await?;
    Ok(success())
}
