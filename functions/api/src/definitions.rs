//! Definitions of extensions.

use std::time::Duration;

use annex_core::auth::{Caller, CallerKind};
use annex_core::capability::extensions::CONTRACT;
use annex_core::extensions::{self, DefinitionInput, Rotation};
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::ids::ExtensionName;
use annex_core::json::{self as text, Object};
use annex_core::limits::SECRET_OVERLAP;
use annex_core::model::Definition;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::success;
use crate::capability::{self, ExtensionView};
use crate::extract::{SmallForm, Whole};
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Params, json};

pub(crate) fn routes() -> Routes {
    routes!(list, create, replace, get, delete, rotate_secret, finish_rotation)
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
    /// Until when the shared secret before verifies as well, RFC 3339; shown to the operator, while that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<String>,
}

fn view(app: &App, caller: &Caller, definition: Definition) -> DefinitionView {
    let is_operator = caller.kind == CallerKind::Operator;
    let previous = extensions::previous_of(&definition, app.ports.clock.now());
    let previous_secret_until = previous.map(|found| found.until.to_string());
    let required = definition.required_extensions.iter().map(ToString::to_string);
    DefinitionView {
        name: definition.name.to_string(),
        previous_secret_until: previous_secret_until.filter(|_| is_operator),
        url: is_operator.then_some(definition.url),
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

/// A definition of either kind. That of a capability extension has a member `contract`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum View {
    Webhook(DefinitionView),
    Capability(ExtensionView),
}

/// The contract that a definition names, and the definition without that member; capability extensions keep theirs.
fn contract(body: &[u8]) -> Outcome<Kind> {
    // What cannot be read is refused where the whole definition is read.
    let Ok(mut object) = Object::read(body) else { return Ok(Kind::Webhook(None)) };
    match object.get("contract") {
        None => Ok(Kind::Webhook(None)),
        Some(raw) if text::text(raw).as_deref() == Some(CONTRACT) => Ok(Kind::Capability),
        Some(raw) if text::text(raw).as_deref() == Some("limacharlie") => {
            object.remove("contract");
            Ok(Kind::Webhook(Some(object.to_json())))
        }
        Some(_) => Err(bad("contract is neither limacharlie nor chaster")),
    }
}

/// What kind of extension a definition is of.
enum Kind {
    /// The JSON that is read instead of the body, if it is another.
    Webhook(Option<String>),
    Capability,
}

/// The extensions that there are: those of webhooks by name, and then the capability extensions by name.
#[utoipa::path(get, path = "/v1/extension/definition", tag = "extensions",
    responses((status = 200, description = "The definitions", body = Vec<View>)))]
async fn list(State(app): State<App>, Authed(caller): Authed) -> ApiResult {
    let found = extensions::list(&app.ports).await?;
    let mut views: Vec<_> =
        found.into_iter().map(|found| View::Webhook(view(&app, &caller, found))).collect();
    views.extend(capability::list(&app, &caller).await?.into_iter().map(View::Capability));
    Ok(json(&views))
}

/// Register an extension. Only for the operator. With `"contract": "chaster"` it is a capability extension, which has the
/// members `name`, `url`, `webhook` (`username`, `password`), `platform_owned` and `description`; the answer shows its
/// `developer_token` this once.
#[utoipa::path(post, path = "/v1/extension/definition", tag = "extensions",
    request_body(content = DefinitionBody),
    responses((status = 200, description = "The definition", body = View)))]
async fn create(State(app): State<App>, Authed(caller): Authed, Whole(body): Whole) -> ApiResult {
    caller.require_operator()?;
    match contract(&body)? {
        Kind::Capability => Ok(json(&capability::create(&app, &caller, &body).await?)),
        Kind::Webhook(other) => {
            let text = other.as_ref().map_or(&body[..], |text| text.as_bytes());
            let made = extensions::create(&app.ports, DefinitionInput::parse(text)?).await?;
            Ok(json(&view(&app, &caller, made)))
        }
    }
}

/// Replace the definition of an extension. Only for the operator. What is left out is emptied, but for the secret; of a
/// capability extension manifest and developer token stay, and the password where the username is the same.
#[utoipa::path(put, path = "/v1/extension/definition", tag = "extensions",
    request_body(content = DefinitionBody),
    responses((status = 200, description = "The definition", body = View)))]
async fn replace(State(app): State<App>, Authed(caller): Authed, Whole(body): Whole) -> ApiResult {
    caller.require_operator()?;
    match contract(&body)? {
        Kind::Capability => Ok(json(&capability::replace(&app, &caller, &body).await?)),
        Kind::Webhook(other) => {
            let text = other.as_ref().map_or(&body[..], |text| text.as_bytes());
            let made = extensions::replace(&app.ports, DefinitionInput::parse(text)?).await?;
            Ok(json(&view(&app, &caller, made)))
        }
    }
}

/// Read the definition of an extension.
#[utoipa::path(get, path = "/v1/extension/definition/{name}", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "The definition", body = View)))]
async fn get(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    let name = ExtensionName::parse(&name)?;
    if let Some(found) = capability::find(&app, &caller, name.as_str()).await? {
        return Ok(json(&found));
    }
    let found = extensions::require_definition(&app.ports, &name).await?;
    Ok(json(&view(&app, &caller, found)))
}

/// Withdraw an extension. Only for the operator. Subscriptions and sessions stay, and calls fail until it is registered again.
#[utoipa::path(delete, path = "/v1/extension/definition/{name}", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "Done", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    caller.require_operator()?;
    let name = ExtensionName::parse(&name)?;
    if !capability::delete(&app, name.as_str()).await? {
        extensions::delete(&app.ports, &name).await?;
    }
    Ok(success())
}

/// A rotation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct RotationForm {
    /// The new secret: at least 32 characters.
    secret: String,
    /// Seconds for which the old one verifies as well, at most 2,592,000; 86,400 unless given.
    overlap: Option<u64>,
    /// Begin although a rotation is under way: the oldest secret is worth nothing from then on.
    force: Option<bool>,
}

/// Give an extension a new shared secret. Only for the operator. Until the overlap ends, messages are signed with the
/// old one too.
#[utoipa::path(post, path = "/v1/extension/definition/{name}/rotate-secret", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    request_body(content = RotationForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The definition", body = DefinitionView)))]
async fn rotate_secret(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    SmallForm(mut fields): SmallForm,
) -> ApiResult {
    caller.require_operator()?;
    let secret = fields.take("secret")?.ok_or_else(|| bad("the field secret is missing"))?;
    let overlap = match fields.get("overlap")? {
        None => SECRET_OVERLAP,
        Some(text) => Duration::from_secs(
            text.parse().map_err(|_| bad("overlap is not a number of seconds"))?,
        ),
    };
    let rotation = Rotation { secret: secret.into(), overlap, force: fields.flag("force")? };
    let name = ExtensionName::parse(&name)?;
    let made = extensions::rotate_secret(&app.ports, &name, rotation).await?;
    Ok(json(&view(&app, &caller, made)))
}

/// End the overlap of a rotation now: the old shared secret is worth nothing from the next call on. Only for the
/// operator. Where there is no overlap nothing changes.
#[utoipa::path(delete, path = "/v1/extension/definition/{name}/rotate-secret", tag = "extensions",
    params(("name" = String, Path, description = "The extension")),
    responses((status = 200, description = "The definition", body = DefinitionView)))]
async fn finish_rotation(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
) -> ApiResult {
    caller.require_operator()?;
    let name = ExtensionName::parse(&name)?;
    let made = extensions::finish_rotation(&app.ports, &name).await?;
    Ok(json(&view(&app, &caller, made)))
}

fn bad(text: &str) -> Fault {
    Fault::new(Code::BadRequest, text)
}
