//! Calls, choices and events between extensions, and calls by the people of a lock.

use std::sync::Arc;

use annex_core::auth::permission;
use annex_core::capability::calls::{Asker, CallRequest, Origin, Reply};
use annex_core::capability::id::LockId;
use annex_core::capability::model::Invoker;
use annex_core::capability::refusal::Refusal;
use annex_core::capability::sessions;
use annex_core::fault::{Code, Fault};
use annex_core::ids::Oid;
use annex_core::limits::LOCK_EVENTS_LISTED_MAX;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;

use crate::extract::Whole;
use crate::routes::{Routes, routes};
use crate::{App, Authed, Fields, Params, json_bytes};

use super::{Body, ContractResult, Developer, MixedResult, Refused};

pub(super) fn routes() -> Routes {
    routes!(
        command,
        query,
        record,
        options,
        emit,
        events,
        capabilities,
        command_as,
        query_as,
        record_as
    )
}

/// The session of a path, which must be of the extension that calls.
async fn origin(app: &App, developer: &Developer, session: &str) -> Result<Origin, Refused> {
    let slug = &developer.0.extension.slug;
    let (session, _) = sessions::find(&app.ports, slug, session).await?;
    Ok(Origin {
        oid: session.oid,
        lock: session.lock,
        session: Some(session.id),
        asker: Asker::Extension(developer.0.clone()),
    })
}

/// The wearer or the keyholder of a lock, on whose behalf an organization calls.
fn person(oid: &str, lock: &str, person: &str) -> Result<Origin, Fault> {
    let kind = match person {
        "wearer" => Invoker::Wearer,
        "keyholder" => Invoker::Keyholder,
        _ => return Err(Fault::new(Code::NotFound, "there are wearer and keyholder")),
    };
    let (oid, lock) = (Oid::parse(oid)?, LockId::parse(lock)?);
    Ok(Origin { oid, lock, session: None, asker: Asker::Person(kind) })
}

/// Runs a call to its end, whether or not its caller waits for that.
async fn run(app: App, origin: Origin, request: CallRequest) -> ContractResult {
    let call = tokio::spawn(async move { app.calls.capabilities().call(&origin, request).await });
    let Reply { json, ended } = call.await.map_err(|_| {
        tracing::error!("a call of a capability panicked");
        Refusal::from(Fault::new(Code::Internal, "internal error"))
    })??;
    let status = if ended { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    Ok(json_bytes(status, json))
}

/// Call a command of an extension on the session's lock, and wait for its end: at most ten seconds.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/commands/{id}",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the calling extension"),
        ("id" = String, Path, description = "`<slug>.<name>`")),
    request_body(content = Value, description = "`{input?, actor?, idempotencyKey?, causationId?}`"),
    responses((status = 201, description = "The invocation record", body = Value),
        (status = 202, description = "The record: a call under this key runs", body = Value)))]
async fn command(
    State(app): State<App>,
    developer: Developer,
    Params((session, capability)): Params<(String, String)>,
    Body(body): Body,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    run(app, origin, CallRequest { capability, query: false, body }).await
}

/// Call a query of an extension on the session's lock, and wait for its end: at most ten seconds.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/queries/{id}",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the calling extension"),
        ("id" = String, Path, description = "`<slug>.<name>`")),
    request_body(content = Value, description = "`{input?, actor?, idempotencyKey?, causationId?}`"),
    responses((status = 201, description = "The invocation record", body = Value),
        (status = 202, description = "The record: a call under this key runs", body = Value)))]
async fn query(
    State(app): State<App>,
    developer: Developer,
    Params((session, capability)): Params<(String, String)>,
    Body(body): Body,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    run(app, origin, CallRequest { capability, query: true, body }).await
}

/// Call a command on a lock as its wearer or its keyholder. Needs `ext.request`.
#[utoipa::path(post, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/{person}/commands/{id}",
    tag = "capability extensions",
    params(("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock"),
        ("person" = String, Path, description = "`wearer` or `keyholder`"),
        ("id" = String, Path, description = "`<slug>.<name>`")),
    request_body(content = Value, description = "`{input?, actor?, idempotencyKey?, causationId?}`"),
    responses((status = 201, description = "The invocation record", body = Value),
        (status = 202, description = "The record: a call under this key runs", body = Value)))]
async fn command_as(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock, who, capability)): Params<(String, String, String, String)>,
    Whole(body): Whole,
) -> MixedResult {
    let origin = person(&oid, &lock, &who)?;
    caller.require(origin.oid, permission::EXT_REQUEST)?;
    Ok(run(app, origin, CallRequest { capability, query: false, body }).await?)
}

/// Call a query on a lock as its wearer or its keyholder. Needs `ext.request`.
#[utoipa::path(post, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/{person}/queries/{id}",
    tag = "capability extensions",
    params(("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock"),
        ("person" = String, Path, description = "`wearer` or `keyholder`"),
        ("id" = String, Path, description = "`<slug>.<name>`")),
    request_body(content = Value, description = "`{input?, actor?, idempotencyKey?, causationId?}`"),
    responses((status = 201, description = "The invocation record", body = Value),
        (status = 202, description = "The record: a call under this key runs", body = Value)))]
async fn query_as(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock, who, capability)): Params<(String, String, String, String)>,
    Whole(body): Whole,
) -> MixedResult {
    let origin = person(&oid, &lock, &who)?;
    caller.require(origin.oid, permission::EXT_REQUEST)?;
    Ok(run(app, origin, CallRequest { capability, query: true, body }).await?)
}

/// Read the record of a call that the extension made or received.
#[utoipa::path(get, path = "/api/extensions/sessions/{sessionId}/invocations/{invocationId}",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the extension"),
        ("invocationId" = String, Path, description = "The call")),
    responses((status = 200, description = "The invocation record", body = Value)))]
async fn record(
    State(app): State<App>,
    developer: Developer,
    Params((session, id)): Params<(String, String)>,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    let found = app.calls.capabilities().record(&origin, &id).await?;
    let found = found.ok_or_else(|| Fault::new(Code::NotFound, "there is no such invocation"))?;
    Ok(json_bytes(StatusCode::OK, found))
}

/// Read the record of a call on a lock, whoever made it. Needs `invocation.get`.
#[utoipa::path(get, path = "/v1/orgs/{oid}/scopes/lock/{lockId}/invocations/{invocationId}",
    tag = "scopes",
    params(("oid" = String, Path, description = "The organization"),
        ("lockId" = String, Path, description = "The lock"),
        ("invocationId" = String, Path, description = "The call")),
    responses((status = 200, description = "The invocation record", body = Value)))]
async fn record_as(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, lock, id)): Params<(String, String, String)>,
) -> MixedResult {
    let origin = person(&oid, &lock, Invoker::Wearer.word())?;
    caller.require(origin.oid, permission::INVOCATION_GET)?;
    let found = app.calls.capabilities().record(&origin, &id).await?;
    let found = found.ok_or_else(|| Fault::new(Code::NotFound, "there is no such invocation"))?;
    Ok(json_bytes(StatusCode::OK, found))
}

/// Ask for the choices of a field of an input.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/options",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the calling extension")),
    request_body(content = Value, description = "`{id, field, input?, search?}`"),
    responses((status = 200, description = "`{options: [{value, label, description?}]}`", body = Value)))]
async fn options(
    State(app): State<App>,
    developer: Developer,
    Params(session): Params<String>,
    Body(body): Body,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    let choices: Arc<str> = app.calls.capabilities().options(&origin, &body).await?;
    Ok(json_bytes(StatusCode::OK, choices.to_string()))
}

/// Emit an event on the session's lock.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/events",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the calling extension")),
    request_body(content = Value, description = "`{type, payload?, actor?, causationId?}`"),
    responses((status = 201, description = "The event", body = Value)))]
async fn emit(
    State(app): State<App>,
    developer: Developer,
    Params(session): Params<String>,
    Body(body): Body,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    Ok(json_bytes(StatusCode::CREATED, app.calls.capabilities().emit(&origin, &body).await?))
}

/// Read the events of the session's lock, oldest first: the visible ones, the extension's own, and those that it wants.
#[utoipa::path(get, path = "/api/extensions/sessions/{sessionId}/events",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the extension"),
        ("after" = Option<String>, Query, description = "Id of the last event that was read"),
        ("limit" = Option<u32>, Query, description = "1 to 100; 100 unless given")),
    responses((status = 200, description = "`{results, hasMore, lastId?}`: `lastId` is the `after` of the next page", body = Value)))]
async fn events(
    State(app): State<App>,
    developer: Developer,
    Params(session): Params<String>,
    RawQuery(query): RawQuery,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    let mut fields = Fields::default();
    fields.add_query(&query.unwrap_or_default())?;
    let limit = match fields.get("limit")? {
        None => LOCK_EVENTS_LISTED_MAX,
        Some(text) => {
            let known = text.parse().ok().filter(|n| (1..=LOCK_EVENTS_LISTED_MAX).contains(n));
            let most = LOCK_EVENTS_LISTED_MAX;
            let bad = || format!("limit is not a number from 1 to {most}");
            known.ok_or_else(|| Fault::new(Code::BadRequest, bad()))?
        }
    };
    let after = fields.get("after")?.map(str::to_owned);
    let found = app.calls.capabilities().events(&origin, after.as_deref(), limit).await?;
    Ok(json_bytes(StatusCode::OK, found))
}

/// What may be called on the session's lock, and by whom.
#[utoipa::path(get, path = "/api/extensions/sessions/{sessionId}/capabilities",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "A session of the extension")),
    responses((status = 200, description = "`{commands, queries, events}`", body = Value)))]
async fn capabilities(
    State(app): State<App>,
    developer: Developer,
    Params(session): Params<String>,
) -> ContractResult {
    let origin = origin(&app, &developer, &session).await?;
    Ok(json_bytes(StatusCode::OK, app.calls.capabilities().listing(&origin).await?))
}
