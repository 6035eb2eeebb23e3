//! Sessions, as the extensions see them.

use annex_core::capability::availability;
use annex_core::capability::history::{self, ActionLog, Role};
use annex_core::capability::id::Slug;
use annex_core::capability::locks;
use annex_core::capability::members::Members;
use annex_core::capability::model::{Lock, LockStatus, Session};
use annex_core::capability::operations;
use annex_core::capability::sessions::{self, Patch, is_id};
use annex_core::capability::view::SessionView;
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::limits::{
    LINES_PER_PAGE, LINES_PER_PAGE_MAX, SESSION_OBJECT_BYTES_MAX, SESSIONS_PER_PAGE,
    SESSIONS_PER_PAGE_MAX,
};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

use super::{Body, ContractResult, Developer};
use crate::routes::{Routes, routes};
use crate::{App, Params, json, json_bytes};

/// Longest word that a member of a request holds, in characters.
const WORD_CHARS_MAX: usize = 64;

pub(super) fn routes() -> Routes {
    routes!(search, get, patch, log, search_logs, push_availability)
}

/// A session, and its lock.
#[derive(Serialize)]
struct One<'a> {
    session: SessionView<'a>,
}

/// A page of sessions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    /// How many there are in this page.
    count: usize,
    /// Whether there are more behind the last.
    has_more: bool,
    results: Vec<SessionView<'a>>,
}

pub(super) fn bad(text: &str) -> Fault {
    Fault::new(Code::BadRequest, text)
}

/// The id that a page goes on behind.
pub(super) fn before(body: &Members, name: &str) -> Outcome<Option<String>> {
    match body.text(name, WORD_CHARS_MAX)? {
        Some(id) if !is_id(&id) => Err(bad(&format!("{name} is no id of a page before"))),
        found => Ok(found),
    }
}

/// How many things a page holds at most.
pub(super) fn limit(body: &Members, unless_told: usize, most: usize) -> Outcome<usize> {
    let found = body.number("limit", 1, i64::from(u32::MAX))?;
    Ok(found.map_or(unless_told, |limit| usize::try_from(limit).unwrap_or(most).min(most)))
}

/// Find sessions of the extension, newest first: `{status?, extensionSlug?, limit?, paginationLastId?}`. The status is
/// that of the lock: `locked` unless given, `unlocked`, `deserted`, `all`. At most 50 results, 15 unless `limit` says
/// otherwise; `paginationId` of the last one goes on with the next page.
#[utoipa::path(post, path = "/api/extensions/sessions/search", tag = "capability extensions",
    request_body(content = Value),
    responses((status = 200, description = "The sessions", body = Value)))]
async fn search(
    State(app): State<App>,
    Developer(caller): Developer,
    body: Body,
) -> ContractResult {
    let body = body.members()?;
    let slug = &caller.extension.slug;
    if let Some(other) = body.text("extensionSlug", WORD_CHARS_MAX)?
        && other != slug.as_str()
    {
        return Err(Fault::new(Code::NotFound, "the token is not one of that extension").into());
    }
    let status = match body.text("status", WORD_CHARS_MAX)?.as_deref() {
        None => Some(LockStatus::Locked),
        Some("all") => None,
        Some(word) => Some(
            LockStatus::parse(word)
                .ok_or_else(|| bad("status is none of locked, unlocked, deserted, all"))?,
        ),
    };
    let search = sessions::Search {
        status,
        limit: limit(&body, SESSIONS_PER_PAGE, SESSIONS_PER_PAGE_MAX)?,
        before: before(&body, "paginationLastId")?,
    };
    let found = sessions::search(&app.ports, slug, search).await?;
    let results: Vec<_> = found.sessions.iter().map(paged).collect();
    Ok(json(&Page { count: results.len(), has_more: found.has_more, results }))
}

fn paged((session, lock): &(Session, Lock)) -> SessionView<'_> {
    let mut view = SessionView::new(session, lock);
    view.pagination_id = Some(&session.id);
    view
}

/// The session of a path, which is one of the caller's own.
pub(super) async fn find(app: &App, slug: &Slug, id: &str) -> Outcome<Session> {
    Ok(sessions::find(&app.ports, slug, id).await?.0)
}

/// Read a session.
#[utoipa::path(get, path = "/api/extensions/sessions/{sessionId}", tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    responses((status = 200, description = "The session", body = Value)))]
async fn get(
    State(app): State<App>,
    Developer(caller): Developer,
    Params(id): Params<String>,
) -> ContractResult {
    let session = find(&app, &caller.extension.slug, &id).await?;
    let (lock, _) = locks::require(&app.ports, session.oid, &session.lock).await?;
    Ok(json(&One { session: SessionView::new(&session, &lock) }))
}

/// Change `config`, `data` and `metadata` of a session, each a JSON object of at most 64 KiB, which is kept byte for
/// byte; what is left out stays.
#[utoipa::path(patch, path = "/api/extensions/sessions/{sessionId}", tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    request_body(content = Value),
    responses((status = 200, description = "The session", body = Value)))]
async fn patch(
    State(app): State<App>,
    Developer(caller): Developer,
    Params(id): Params<String>,
    body: Body,
) -> ContractResult {
    let body = body.members()?;
    let object = |name| body.object(name, SESSION_OBJECT_BYTES_MAX);
    let patch =
        Patch { config: object("config")?, data: object("data")?, metadata: object("metadata")? };
    let slug = &caller.extension.slug;
    let (session, lock) = sessions::patch(&app.ports, slug, &id, patch).await?;
    Ok(json(&One { session: SessionView::new(&session, &lock) }))
}

/// Add a line to the history of a session's lock: `{title, description?, role?, icon?, color?}`. The role is `extension`
/// unless it is given.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/logs/custom",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    request_body(content = Value),
    responses((status = 201, description = "The line", body = Value)))]
async fn log(
    State(app): State<App>,
    Developer(caller): Developer,
    Params(id): Params<String>,
    body: Body,
) -> ContractResult {
    let session = find(&app, &caller.extension.slug, &id).await?;
    let rates = app.calls.capabilities().rates();
    rates.take_line(session.oid, &session.lock, &session.extension).await?;
    let line = operations::log(&app.ports, &session, &body.members()?).await?;
    let text = serde_json::to_vec(&ActionLog::new(&session.lock, &line))
        .map_err(|_| Fault::new(Code::Internal, "a line cannot be shown"))?;
    Ok(json_bytes(StatusCode::CREATED, text))
}

/// A page of a lock's history.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lines<'a> {
    /// How many there are in this page.
    count: usize,
    /// Whether there are more: then `lastId` goes on with the next page, which may be empty.
    has_more: bool,
    results: Vec<ActionLog<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_id: Option<&'a str>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(
        lock: &'a annex_core::capability::id::LockId,
        found: &'a history::Lines,
    ) -> Self {
        Self {
            count: found.lines.len(),
            has_more: found.next.is_some(),
            results: found.lines.iter().map(|line| ActionLog::new(lock, line)).collect(),
            last_id: found.next.as_deref(),
        }
    }
}

/// Read the history of a session's lock, newest first: `{role?, limit?, lastId?, showOnlyExtensionActions?}`. At most 100
/// lines, 50 unless `limit` says otherwise.
#[utoipa::path(post, path = "/api/extensions/sessions/{sessionId}/logs/search",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    request_body(content = Value),
    responses((status = 200, description = "The lines", body = Value)))]
async fn search_logs(
    State(app): State<App>,
    Developer(caller): Developer,
    Params(id): Params<String>,
    body: Body,
) -> ContractResult {
    let session = find(&app, &caller.extension.slug, &id).await?;
    let body = body.members()?;
    let role = match body.text("role", WORD_CHARS_MAX)?.as_deref() {
        None | Some("all") => None,
        Some(word) => Some(Role::parse(word).ok_or_else(|| bad("role is not known"))?),
    };
    let own = body.flag("showOnlyExtensionActions")?.unwrap_or(false);
    let search = history::Search {
        role,
        extension: own.then(|| session.extension.clone()),
        before: before(&body, "lastId")?,
        limit: limit(&body, LINES_PER_PAGE, LINES_PER_PAGE_MAX)?,
        ..history::Search::default()
    };
    let found = history::search(&app.ports, session.oid, &session.lock, search).await?;
    Ok(json(&Lines::new(&session.lock, &found)))
}

/// Say which of the extension's own capabilities may be called on a session's lock, and by whom:
/// `{commands: {<id>: {available, reason?, invocableBy?}}}`. It narrows what the manifest says (422
/// `invocable-by-widened`), and replaces what was said before.
#[utoipa::path(put, path = "/api/extensions/sessions/{sessionId}/availability",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    request_body(content = Value),
    responses((status = 200, description = "Done", body = Value)))]
async fn push_availability(
    State(app): State<App>,
    Developer(caller): Developer,
    Params(id): Params<String>,
    body: Body,
) -> ContractResult {
    let extension = &caller.extension;
    find(&app, &extension.slug, &id).await?;
    availability::push(&app.ports, extension, &id, &body.members()?).await?;
    Ok(crate::answer::success())
}
