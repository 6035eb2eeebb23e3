//! Lock actions, and the platform's own operations on a lock. All of them count against the rates (CH-054, CH-055).

use annex_core::capability::members::Members;
use annex_core::capability::model::Session;
use annex_core::capability::operations::{self, Operation};
use annex_core::fault::Outcome;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::json as object;

use super::sessions::find;
use super::{Body, ContractResult, Developer, Refused, rates};
use crate::routes::{Routes, routes};
use crate::{App, Params, json};

pub(super) fn routes() -> Routes {
    routes!(
        act,
        assign_task,
        start_timer,
        complete_task,
        increment_penalty,
        create_time_limit,
        cancel_time_limit,
        open_temporarily,
        request_verification,
        pillory_status
    )
}

/// The session of a request, once the request was counted.
async fn counted(app: &App, caller: &Developer, id: &str) -> Result<Session, Refused> {
    let session = find(app, &caller.0.extension.slug, id).await?;
    rates::take(app, &session).await?;
    Ok(session)
}

/// Counts, reads and does an operation: 201 without a body.
async fn perform(
    app: &App,
    caller: &Developer,
    id: &str,
    body: &Body,
    read: impl Fn(&Members) -> Outcome<Operation>,
) -> ContractResult {
    let session = counted(app, caller, id).await?;
    let operation = read(&body.members()?)?;
    operations::perform(&app.ports, &session, &operation).await?;
    Ok(done())
}

fn done() -> Response {
    StatusCode::CREATED.into_response()
}

macro_rules! operations {
    ($($(#[doc = $doc:literal])+ $name:ident $path:literal $read:expr;)*) => {
        $($(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "capability extensions",
            params(("sessionId" = String, Path, description = "The session")),
            request_body(content = Value),
            responses((status = 201, description = "Done")))]
        async fn $name(
            State(app): State<App>,
            caller: Developer,
            Params(id): Params<String>,
            body: Body,
        ) -> ContractResult {
            perform(&app, &caller, &id, &body, $read).await
        })*
    };
}

operations! {
    /// Act on a session's lock: `{action: {name, params?}}`. The names: `add_time` and `remove_time` (seconds), `freeze`,
    /// `unfreeze`, `toggle_freeze`, `pillory` (`{duration, reason?}`), `set_display_remaining_time` (true or false).
    act "/api/extensions/sessions/{sessionId}/action" Operation::action;
    /// Assign a task: `{task: {task, points, verificationRequired?, duration?}, actor}`.
    assign_task "/api/extensions/sessions/{sessionId}/tasks/assign" Operation::assign_task;
    /// Start the timer of the task.
    start_timer "/api/extensions/sessions/{sessionId}/tasks/start-timer"
        |_: &Members| Ok(Operation::start_task_timer());
    /// End the task: `{actor, isCompleted}`.
    complete_task "/api/extensions/sessions/{sessionId}/tasks/complete" Operation::complete_task;
    /// Count a habit: `{habitName, count?}`.
    increment_penalty "/api/extensions/sessions/{sessionId}/penalties/increment"
        Operation::increment_penalty;
    /// Begin a time limit for a habit: `{habitName}`.
    create_time_limit "/api/extensions/sessions/{sessionId}/penalties/time-limit/create"
        Operation::create_time_limit;
    /// Cancel a time limit for a habit: `{habitName}`.
    cancel_time_limit "/api/extensions/sessions/{sessionId}/penalties/time-limit/cancel"
        Operation::cancel_time_limit;
    /// Begin a temporary opening: `{actor}`.
    open_temporarily "/api/extensions/sessions/{sessionId}/temporary-opening/open"
        Operation::open_temporarily;
    /// Ask for a verification picture: `{actor}`.
    request_verification "/api/extensions/sessions/{sessionId}/verification-picture/request"
        Operation::request_verification;
}

/// The pillories of a session's lock that have not ended.
#[utoipa::path(get, path = "/api/extensions/sessions/{sessionId}/pillory/status",
    tag = "capability extensions",
    params(("sessionId" = String, Path, description = "The session")),
    responses((status = 200, description = "They are in `votes`", body = Value)))]
async fn pillory_status(
    State(app): State<App>,
    caller: Developer,
    Params(id): Params<String>,
) -> ContractResult {
    let session = counted(&app, &caller, &id).await?;
    let votes = operations::pillories(&app.ports, &session).await?;
    Ok(json(&object!({"votes": votes})))
}
