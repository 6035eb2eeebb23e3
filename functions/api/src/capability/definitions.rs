//! Capability extensions among the definitions of extensions.

use annex_core::auth::{Caller, CallerKind};
use annex_core::capability::extensions::{self, CONTRACT, ExtensionInput, Registered};
use annex_core::capability::id::Slug;
use annex_core::capability::model::{Extension, Manifest};
use annex_core::fault::{Code, Fault, Outcome};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Body, ContractResult, Developer};
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Params, json};

pub(super) fn routes() -> Routes {
    routes!(new_developer_token, sync)
}

/// A capability extension as callers see it: the password never, URL and username to the operator only.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExtensionView {
    /// `chaster`.
    contract: &'static str,
    /// Its slug.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The username of its Basic credentials, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<UsernameView>,
    description: String,
    platform_owned: bool,
    /// Ids of its commands.
    commands: Vec<String>,
    /// Ids of its queries.
    queries: Vec<String>,
    /// Types of its events.
    events: Vec<String>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
    /// Shown once: when the extension was registered, or got a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_token: Option<String>,
}

/// Basic credentials without the password.
#[derive(Serialize, ToSchema)]
struct UsernameView {
    username: String,
}

fn view(caller: &Caller, extension: Extension) -> ExtensionView {
    let is_operator = caller.kind == CallerKind::Operator;
    let webhook = extension.webhook.filter(|_| is_operator);
    let manifest = extension.manifest;
    let ids = |found: &[annex_core::capability::model::Capability]| {
        found.iter().map(|found| found.id.to_string()).collect()
    };
    ExtensionView {
        contract: CONTRACT,
        name: extension.slug.to_string(),
        url: extension.url.filter(|_| is_operator),
        webhook: webhook.map(|found| UsernameView { username: found.username }),
        description: extension.description,
        platform_owned: extension.platform_owned,
        commands: ids(&manifest.commands),
        queries: ids(&manifest.queries),
        events: manifest.events.iter().map(|found| found.event.to_string()).collect(),
        created_at: extension.created_at.to_string(),
        updated_at: extension.updated_at.to_string(),
        developer_token: None,
    }
}

fn registered(caller: &Caller, made: Registered) -> ExtensionView {
    let developer_token = Some(made.developer_token);
    ExtensionView { developer_token, ..view(caller, made.extension) }
}

/// Registers a capability extension.
pub(crate) async fn create(app: &App, caller: &Caller, json: &[u8]) -> Outcome<ExtensionView> {
    let made = extensions::create(&app.ports, ExtensionInput::parse(json)?).await?;
    Ok(registered(caller, made))
}

/// Replaces what the operator says of a capability extension.
pub(crate) async fn replace(app: &App, caller: &Caller, json: &[u8]) -> Outcome<ExtensionView> {
    let made = extensions::replace(&app.ports, ExtensionInput::parse(json)?).await?;
    Ok(view(caller, made))
}

/// All capability extensions.
pub(crate) async fn list(app: &App, caller: &Caller) -> Outcome<Vec<ExtensionView>> {
    let found = extensions::list(&app.ports).await?;
    Ok(found.into_iter().map(|found| view(caller, found)).collect())
}

/// The capability extension of this name; `None`: there is none.
pub(crate) async fn find(app: &App, caller: &Caller, name: &str) -> Outcome<Option<ExtensionView>> {
    let Ok(slug) = Slug::parse(name) else { return Ok(None) };
    match extensions::require(&app.ports, &slug).await {
        Ok(found) => Ok(Some(view(caller, found))),
        Err(Fault { code: Code::NotFound, .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Withdraws the capability extension of this name; whether there was one.
pub(crate) async fn delete(app: &App, name: &str) -> Outcome<bool> {
    let Ok(slug) = Slug::parse(name) else { return Ok(false) };
    match extensions::delete(&app.ports, &slug).await {
        Ok(()) => Ok(true),
        Err(Fault { code: Code::NotFound, .. }) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Give a capability extension a new developer token, which is shown this once. Only for the operator. The one before is
/// worth nothing any more, at the latest after a minute.
#[utoipa::path(post, path = "/v1/extension/definition/{name}/developer-token", tag = "extensions",
    params(("name" = String, Path, description = "The capability extension")),
    responses((status = 200, description = "The extension, with its token", body = ExtensionView)))]
async fn new_developer_token(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    caller.require_operator()?;
    let made = extensions::new_developer_token(&app.ports, &Slug::parse(&name)?).await?;
    Ok(json(&registered(&caller, made)))
}

/// What an extension declares.
#[derive(Serialize)]
struct Declared<'a> {
    slug: &'a str,
    #[serde(flatten)]
    manifest: &'a Manifest,
}

/// Declare what the extension offers, emits and wants to hear of: `{slug, commands?, queries?, events?, subscriptions?}`.
/// What is left out is kept, an empty list clears it, and null is refused.
#[utoipa::path(put, path = "/api/extensions/manifest", tag = "capability extensions",
    request_body(content = Value),
    responses((status = 200, description = "The whole manifest", body = Value)))]
async fn sync(State(app): State<App>, Developer(caller): Developer, body: Body) -> ContractResult {
    let extension = extensions::sync(&app.ports, &caller.extension.slug, &body.0).await?;
    Ok(json(&Declared { slug: extension.slug.as_str(), manifest: &extension.manifest }))
}
