//! Locks and their sessions, as their organization sees them.

use annex_core::auth::{Caller, permission};
use annex_core::capability::history::{self, Role};
use annex_core::capability::id::{LockId, Slug};
use annex_core::capability::locks::{self, LockPatch};
use annex_core::capability::members::Members;
use annex_core::capability::model::{LockStatus, Session};
use annex_core::capability::sessions::{self, NewSession, is_id};
use annex_core::capability::view::LockView;
use annex_core::fault::Outcome;
use annex_core::ids::Oid;
use annex_core::limits::{LINES_PER_PAGE, LINES_PER_PAGE_MAX, SESSION_OBJECT_BYTES_MAX};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json as object;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::sessions::{Lines, bad};
use crate::answer::success;
use crate::extract::Whole;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json, json_bytes};

/// Longest name of an extension that a request holds, in characters.
const NAME_CHARS_MAX: usize = 64;

pub(super) fn routes() -> Routes {
    routes!(get, patch, list, create, delete, history_of)
}

fn scope(caller: &Caller, oid: &str, lock: &str, permission: &str) -> Outcome<(Oid, LockId)> {
    let oid = Oid::parse(oid)?;
    caller.require(oid, permission)?;
    Ok((oid, LockId::parse(lock)?))
}

/// Read a lock: whether it is active, frozen, and has a keyholder.
#[utoipa::path(get, path = "/v1/orgs/{oid}/scopes/lock/{lockId}", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock")),
    responses((status = 200, description = "The lock", body = Value)))]
async fn get(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock)): Params<(String, String)>,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::EXT_LIST)?;
    let (lock, _) = locks::require(&app.ports, oid, &id).await?;
    Ok(json(&LockView::new(&id, &lock)))
}

/// Change a lock: `{status?, hasKeyholder?}`. The status is `locked`, `unlocked` or `deserted`.
#[utoipa::path(patch, path = "/v1/orgs/{oid}/scopes/lock/{lockId}", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock")),
    request_body(content = Value),
    responses((status = 200, description = "The lock", body = Value)))]
async fn patch(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock)): Params<(String, String)>,
    Whole(body): Whole,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::EXT_SUB)?;
    let body = Members::read(&body)?;
    body.only(&["status", "hasKeyholder"])?;
    let status = body.text("status", NAME_CHARS_MAX)?;
    let status = status.map(|word| {
        LockStatus::parse(&word).ok_or_else(|| bad("status is none of locked, unlocked, deserted"))
    });
    let patch =
        LockPatch { status: status.transpose()?, has_keyholder: body.flag("hasKeyholder")? };
    let lock = locks::patch(&app.ports, oid, &id, patch).await?;
    Ok(json(&LockView::new(&id, &lock)))
}

/// A session as its organization sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionEntry {
    session_id: String,
    lock_id: String,
    /// The extension's slug.
    extension: String,
    #[schema(value_type = Value)]
    config: Box<RawValue>,
    #[schema(value_type = Value)]
    data: Box<RawValue>,
    #[schema(value_type = Value)]
    metadata: Box<RawValue>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
}

impl From<Session> for SessionEntry {
    fn from(session: Session) -> Self {
        Self {
            session_id: session.id,
            lock_id: session.lock.to_string(),
            extension: session.extension.to_string(),
            config: session.config,
            data: session.data,
            metadata: session.metadata,
            created_at: session.created_at.to_string(),
            updated_at: session.updated_at.to_string(),
        }
    }
}

/// The sessions of a lock.
#[derive(Serialize, ToSchema)]
struct Sessions {
    /// By extension.
    sessions: Vec<SessionEntry>,
}

/// The sessions of a lock: what extensions it has. At most 20.
#[utoipa::path(get, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/sessions", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock")),
    responses((status = 200, description = "The sessions", body = Sessions)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock)): Params<(String, String)>,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::EXT_LIST)?;
    locks::require(&app.ports, oid, &id).await?;
    let found = sessions::list(&app.ports, oid, &id).await?;
    Ok(json(&Sessions { sessions: found.into_iter().map(Into::into).collect() }))
}

/// Install a capability extension on a lock: `{extension, hasKeyholder?, config?}`. A lock that is not there is made. A
/// second session of an extension on a lock is a 409.
#[utoipa::path(post, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/sessions", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock")),
    request_body(content = Value),
    responses((status = 201, description = "Its ids, as `sessionId` and `lockId`", body = Value)))]
async fn create(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock)): Params<(String, String)>,
    Whole(body): Whole,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::EXT_SUB)?;
    let body = Members::read(&body)?;
    body.only(&["extension", "hasKeyholder", "config"])?;
    let new = NewSession {
        extension: Slug::parse(&body.require("extension", NAME_CHARS_MAX)?)?,
        has_keyholder: body.flag("hasKeyholder")?,
        config: body.object("config", SESSION_OBJECT_BYTES_MAX)?,
    };
    let made = sessions::create(&app.ports, oid, &id, new).await?;
    let text = object!({"sessionId": made.id, "lockId": made.lock}).to_string();
    Ok(json_bytes(StatusCode::CREATED, text))
}

/// Remove an extension from a lock. Its session ends; the lock and its history stay.
#[utoipa::path(delete, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/sessions/{sessionId}", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock"),
        ("sessionId" = String, Path, description = "The session")),
    responses((status = 200, description = "Done", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock, session)): Params<(String, String, String)>,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::EXT_SUB)?;
    sessions::delete(&app.ports, oid, &id, &session).await?;
    Ok(success())
}

/// Read the history of a lock, newest first.
#[utoipa::path(get, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/history", tag = "scopes",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock"),
        ("role" = Option<String>, Query, description = "Only lines of `wearer`, `keyholder`, `extension` or `admin`"),
        ("limit" = Option<usize>, Query, description = "How many, 50 unless given and 100 at most"),
        ("lastId" = Option<String>, Query, description = "`lastId` of the page before")),
    responses((status = 200, description = "The lines", body = Value)))]
async fn history_of(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock)): Params<(String, String)>,
    Form(fields): Form,
) -> ApiResult {
    let (oid, id) = scope(&caller, &oid, &lock, permission::INVOCATION_GET)?;
    let role = fields.get("role")?.filter(|word| !word.is_empty());
    let role = role.map(|word| Role::parse(word).ok_or_else(|| bad("role is not known")));
    let before = fields.get("lastId")?.filter(|id| !id.is_empty());
    if before.is_some_and(|id| !is_id(id)) {
        return Err(bad("lastId is no id of a page before").into());
    }
    let limit = fields.number("limit", LINES_PER_PAGE_MAX)?.unwrap_or(LINES_PER_PAGE).max(1);
    let search = history::Search {
        role: role.transpose()?,
        before: before.map(Into::into),
        limit,
        ..history::Search::default()
    };
    locks::require(&app.ports, oid, &id).await?;
    let found = history::search(&app.ports, oid, &id, search).await?;
    Ok(json(&Lines::new(&id, &found)))
}
