//! What only the operator does: dead letters, and sealing anew after a rotation of the key ring.

use annex_core::call::{Summary, summary};
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::ports::QueueName;
use annex_core::reseal;
use axum::extract::State;
use serde::Serialize;
use serde_json::json as object;
use utoipa::ToSchema;

use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

/// Dead letters that one request lists or puts back, at most and unless told.
const LETTERS_MAX: usize = 1_000;

/// Dead letters that are listed unless told.
const LETTERS_LISTED: usize = 100;

pub(crate) fn routes() -> Routes {
    routes!(letters, redrive, reseal_all)
}

fn queue(name: &str) -> Outcome<QueueName> {
    QueueName::ALL
        .iter()
        .copied()
        .find(|queue| queue.name() == name)
        .ok_or_else(|| Fault::new(Code::NotFound, "there is no such queue"))
}

/// A message that was given up.
#[derive(Serialize, ToSchema)]
struct Letter {
    id: String,
    /// How often it was received, where that is known.
    receives: Option<u32>,
    /// What it is about: `kind`, and where there are such `name`, `oid`, `extension`, `invocation`. Never its text, which
    /// may hold a tenant's data.
    #[schema(value_type = Value)]
    about: Summary,
}

/// The dead letters of a queue.
#[derive(Serialize, ToSchema)]
struct Letters {
    dead_letters: Vec<Letter>,
}

/// Messages that were received too often and not worked on: a fault of the platform. Only for the operator.
#[utoipa::path(get, path = "/v1/dead-letters/{queue}", tag = "operations",
    params(
        ("queue" = String, Path, description = "`dispatch`, `resume` or `meter`"),
        ("limit" = Option<usize>, Query, description = "How many, 100 unless given and 1,000 at most")),
    responses((status = 200, description = "The oldest ones", body = Letters)))]
async fn letters(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    caller.require_operator()?;
    let queue = queue(&name)?;
    let limit = fields.number("limit", LETTERS_MAX)?.unwrap_or(LETTERS_LISTED);
    let found = app.ports.dead_letters.list(queue, limit).await?;
    let letter = |letter: annex_core::ports::DeadLetter| Letter {
        about: summary(queue, &letter.body),
        id: letter.id,
        receives: letter.receives,
    };
    Ok(json(&Letters { dead_letters: found.into_iter().map(letter).collect() }))
}

/// Send the dead letters of a queue back to it. Only for the operator.
#[utoipa::path(post, path = "/v1/dead-letters/{queue}/redrive", tag = "operations",
    params(
        ("queue" = String, Path, description = "`dispatch`, `resume` or `meter`"),
        ("limit" = Option<usize>, Query, description = "How many, 1,000 at most and unless given")),
    responses((status = 200, description = "How many it was, as `redriven`", body = Value)))]
async fn redrive(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    caller.require_operator()?;
    let queue = queue(&name)?;
    let limit = fields.number("limit", LETTERS_MAX)?.unwrap_or(LETTERS_MAX);
    let redriven = app.ports.dead_letters.redrive(queue, limit).await?;
    Ok(json(&object!({"redriven": redriven})))
}

/// Seal anew what an older key of the ring has sealed, a page at a time. Only for the operator.
#[utoipa::path(post, path = "/v1/keyring/reseal", tag = "operations",
    params(
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("dry_run" = Option<bool>, Query, description = "Only count what older keys have sealed")),
    responses((status = 200, description = "What the page came to", body = Value)))]
async fn reseal_all(
    State(app): State<App>,
    Authed(caller): Authed,
    Form(fields): Form,
) -> ApiResult {
    caller.require_operator()?;
    let mode = if fields.flag("dry_run")? { reseal::Mode::Count } else { reseal::Mode::Seal };
    let page = reseal::page(&app.calls, fields.get("cursor")?, mode).await?;
    Ok(json(&page))
}
