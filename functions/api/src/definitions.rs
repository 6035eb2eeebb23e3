//! Definitions of extensions.

use annex_core::auth::{Caller, CallerKind};
use annex_core::extensions::{self, DefinitionInput};
use annex_core::ids::ExtensionName;
use annex_core::model::Definition;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::success;
use crate::extract::Whole;
use crate::{ApiResult, App, Authed, Params, json};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create, replace)).routes(routes!(get, delete))
}

/// A definition as the operator writes it. Unknown members are refused.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the JSON that the core reads")]
struct DefinitionBody {
    /// Its name: 1 to 128 letters, digits, dots, dashes or underscores.
    name: String,
    /// Where its webhooks go.
    url: String,
    /// Signs its webhooks: at least 32 characters. Kept where a replacement leaves it out.
    secret: Option<String>,
    description: Option<String>,
    /// What its own tokens may do.
    permissions: Option<Vec<String>>,
    /// Extensions that an organization must be subscribed to first.
    required_extensions: Option<Vec<String>>,
    /// Labels such as `segment` or `bulk`.
    flairs: Option<Vec<String>>,
    /// The events it wants; absent: what its schema says.
    events: Option<Vec<String>>,
}

/// A definition as callers see it. The secret is never shown, and the URL to the operator only.
#[derive(Serialize, ToSchema)]
struct DefinitionView {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    description: String,
    /// The description again, under the name that clients of the LimaCharlie API know.
    short_desc: String,
    permissions: Vec<String>,
    required_extensions: Vec<String>,
    flairs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<String>>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
}

fn view(caller: &Caller, definition: Definition) -> DefinitionView {
    let required = definition.required_extensions.iter().map(ToString::to_string);
    DefinitionView {
        name: definition.name.to_string(),
        url: (caller.kind == CallerKind::Operator).then_some(definition.url),
        short_desc: definition.description.clone(),
        description: definition.description,
        permissions: definition.permissions,
        required_extensions: required.collect(),
        flairs: definition.flairs,
        events: definition.events,
        created_at: definition.created_at.to_string(),
        updated_at: definition.updated_at.to_string(),
    }
}

/// The extensions that there are.
#[utoipa::path(get, path = "/v1/extension/definition", tag = "extensions",
    responses((status = 200, description = "The definitions, by name", body = Vec<DefinitionView>)))]
async fn list(State(app): State<App>, Authed(caller): Authed) -> ApiResult {
    let found = extensions::list(&app.ports).await?;
    let views: Vec<_> = found.into_iter().map(|found| view(&caller, found)).collect();
    Ok(json(&views))
}

/// Register an extension. Only for the operator.
#[utoipa::path(post, path = "/v1/extension/definition", tag = "extensions",
    request_body(content = DefinitionBody),
    responses((status = 200, description = "The definition", body = DefinitionView)))]
async fn create(State(app): State<App>, Authed(caller): Authed, Whole(body): Whole) -> ApiResult {
    caller.require_operator()?;
    let made = extensions::create(&app.ports, DefinitionInput::parse(&body)?).await?;
    Ok(json(&view(&caller, made)))
}

/// Replace the definition of an extension. Only for the operator. What is left out is emptied, but for the secret.
#[utoipa::path(put, path = "/v1/extension/definition", tag = "extensions",
    request_body(content = DefinitionBody),
    responses((status = 200, description = "The definition", body = DefinitionView)))]
async fn replace(State(app): State<App>, Authed(caller): Authed, Whole(body): Whole) -> ApiResult {
    caller.require_operator()?;
    let made = extensions::replace(&app.ports, DefinitionInput::parse(&body)?).await?;
    Ok(json(&view(&caller, made)))
}

/// Read the definition of an extension.
#[utoipa::path(get, path = "/v1/extension/definition/{name}", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "The definition", body = DefinitionView)))]
async fn get(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    let name = ExtensionName::parse(&name)?;
    let found = extensions::require_definition(&app.ports, &name).await?;
    Ok(json(&view(&caller, found)))
}

/// Withdraw an extension. Only for the operator. Subscriptions stay, and calls fail until it is registered again.
#[utoipa::path(delete, path = "/v1/extension/definition/{name}", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "Done", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    caller.require_operator()?;
    extensions::delete(&app.ports, &ExtensionName::parse(&name)?).await?;
    Ok(success())
}
