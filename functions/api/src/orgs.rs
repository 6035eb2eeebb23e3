//! Organizations.

use annex_core::auth::permission;
use annex_core::ids::Oid;
use annex_core::model::Org;
use annex_core::orgs;
use axum::extract::State;
use serde::Serialize;
use serde_json::json as object;
use utoipa::ToSchema;

use crate::answer::success;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(create, check_name, info, delete, export, urls, rename)
}

/// A new organization.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct NewOrg {
    /// What people call it.
    name: String,
    /// For people.
    description: Option<String>,
    /// Its id, a UUID; the platform chooses one unless it is given.
    oid: Option<String>,
}

/// Make an organization. Only for the operator.
#[utoipa::path(post, path = "/v1/orgs/new", tag = "organizations",
    request_body(content = NewOrg, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "Its id, as `data.oid`", body = Value)))]
async fn create(State(app): State<App>, Authed(caller): Authed, Form(fields): Form) -> ApiResult {
    caller.require_operator()?;
    let oid = match fields.get("oid")? {
        None | Some("") => None,
        Some(text) => Some(Oid::parse(text)?),
    };
    let description = fields.get("description")?.unwrap_or("");
    let org = orgs::create(&app.ports, fields.require("name")?, description, oid).await?;
    Ok(json(&object!({"success": true, "data": {"oid": org.oid}})))
}

/// Whether a name is free. Names need not be unique, so it always is.
#[utoipa::path(get, path = "/v1/orgs/new", tag = "organizations",
    params(("name" = String, Query, description = "The name")),
    responses((status = 200, description = "Whether it is", body = Value)))]
async fn check_name(Authed(_): Authed) -> ApiResult {
    Ok(json(&object!({"is_available": true})))
}

/// An organization.
#[derive(Serialize, ToSchema)]
struct OrgInfo {
    oid: String,
    name: String,
    description: String,
    /// When it was made, in seconds since the epoch.
    created_at: i64,
    // What clients of the LimaCharlie API look for, of things that there are none of here.
    sensor_quota: u32,
    sensor_version: &'static str,
}

impl From<Org> for OrgInfo {
    fn from(org: Org) -> Self {
        Self {
            oid: org.oid.to_string(),
            name: org.name,
            description: org.description,
            created_at: org.created_at.secs(),
            sensor_quota: 0,
            sensor_version: "",
        }
    }
}

/// Read an organization.
#[utoipa::path(get, path = "/v1/orgs/{oid}", tag = "organizations",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "The organization", body = OrgInfo)))]
async fn info(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::ORG_GET)?;
    Ok(json(&OrgInfo::from(orgs::get(&app.ports, oid).await?)))
}

/// The hosts that an organization's clients use. Needs no token; the same for every organization.
#[utoipa::path(get, path = "/v1/orgs/{oid}/url", tag = "organizations", security(()),
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "Hosts, without a scheme", body = Value)))]
async fn urls(State(app): State<App>, Params(oid): Params<String>) -> ApiResult {
    Oid::parse(&oid)?;
    let url = app.settings.public_url.as_str();
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let hooks = format!("{host}/hook");
    Ok(json(&object!({"url": {"lc": host, "hooks": hooks}, "certs": {}, "site_name": ""})))
}

/// Rename an organization, and change its description where one is given.
#[utoipa::path(post, path = "/v1/orgs/{oid}/name", tag = "organizations",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Query, description = "The new name"),
        ("description" = Option<String>, Query, description = "The new description")),
    responses((status = 200, description = "Done", body = Value)))]
async fn rename(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::ORG_CONF_SET)?;
    let description = fields.get("description")?;
    orgs::rename(&app.ports, oid, fields.require("name")?, description).await?;
    Ok(success())
}

/// Everything that is kept of an organization, a page at a time: `items`, each with a `type`, and the cursor of the `next`
/// page. For the operator, and for whoever may read each part of it.
#[utoipa::path(get, path = "/v1/orgs/{oid}/export", tag = "organizations",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before")),
    responses((status = 200, description = "The page", body = Value)))]
async fn export(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    if caller.require_operator().is_err() {
        orgs::EXPORT_PERMISSIONS.iter().try_for_each(|needed| caller.require(oid, needed))?;
    }
    Ok(json(&orgs::export(&app.calls, oid, fields.get("cursor")?).await?))
}

/// Delete an organization and everything that is kept of it. Its tokens and keys end at once, its extensions get their
/// `unsubscribe` event, and an hour later its data is removed. Only for the operator.
#[utoipa::path(delete, path = "/v1/orgs/{oid}", tag = "organizations",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("confirm" = String, Query, description = "Its name; also read from the body")),
    responses((status = 200, description = "It is deleted, and its data is being removed", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require_operator()?;
    let confirmation = fields.get("confirm")?.unwrap_or("");
    orgs::delete(&app.calls, oid, confirmation, &caller.ident).await?;
    Ok(success())
}
