//! API keys.

use annex_core::auth::permission;
use annex_core::ids::Oid;
use annex_core::model::ApiKey;
use annex_core::orgs;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value, json as object};
use utoipa::ToSchema;

use crate::answer::success;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(list, create, delete)
}

/// The API keys of an organization, by hash, as `api_keys`.
#[utoipa::path(get, path = "/v1/orgs/{oid}/keys", tag = "API keys",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "The keys' names and permissions", body = Value)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::APIKEY_CTRL)?;
    let keys = orgs::list_api_keys(&app.ports, oid).await?;
    let keys: Map<String, Value> = keys.into_iter().map(|(hash, key)| (hash, view(&key))).collect();
    Ok(json(&object!({"api_keys": keys})))
}

/// A key under each of the names that clients have used for its parts over time.
fn view(key: &ApiKey) -> Value {
    let created = key.created_at.secs();
    object!({
        "name": key.name, "key_name": key.name, "priv": key.permissions,
        "created": created, "created_at": created, "created_by": key.created_by,
    })
}

/// A new API key.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct NewKey {
    /// What people call it.
    key_name: Option<String>,
    /// Its permissions with commas between, or `*`. Nobody grants what they do not hold.
    perms: String,
}

/// An API key that was just made.
#[derive(Serialize, ToSchema)]
struct Made {
    success: bool,
    /// The key. It is shown this once.
    api_key: String,
    /// What names it from now on.
    key_hash: String,
}

/// Make an API key.
#[utoipa::path(post, path = "/v1/orgs/{oid}/keys", tag = "API keys",
    params(("oid" = String, Path, description = "The organization")),
    request_body(content = NewKey, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The key", body = Made)))]
async fn create(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::APIKEY_CTRL)?;
    let name = match fields.get("key_name")? {
        Some(name) => name,
        None => fields.get("name")?.unwrap_or("api key"),
    };
    let words: Vec<&str> = fields
        .all("perms")
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let made = orgs::create_api_key(&app.ports, oid, &caller, name, &words).await?;
    Ok(json(&Made { success: true, api_key: made.key, key_hash: made.hash }))
}

/// Delete an API key. Tokens that were made with it end at once.
#[utoipa::path(delete, path = "/v1/orgs/{oid}/keys", tag = "API keys",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("key_hash" = String, Query, description = "The key's hash; also read from a form body")),
    responses((status = 200, description = "Done", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::APIKEY_CTRL)?;
    orgs::delete_api_key(&app.ports, oid, fields.require("key_hash")?).await?;
    Ok(success())
}
