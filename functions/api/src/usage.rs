//! What an organization used.

use std::collections::BTreeMap;
use std::time::Duration;

use annex_core::auth::permission;
use annex_core::ids::Oid;
use annex_core::time::Timestamp;
use annex_core::usage::{self, Entry, Grain, Range};
use axum::extract::State;
use serde::Serialize;
use serde_json::json as object;
use utoipa::ToSchema;

use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json};

/// How far back the daily overview goes.
const OVERVIEW: Duration = Duration::from_secs(30 * 86_400);

pub(crate) fn routes() -> Routes {
    routes!(report, overview)
}

/// A usage report.
#[derive(Serialize, ToSchema)]
struct Report {
    usage: Vec<Line>,
}

/// What was recorded of a SKU in a time. Each recorded unit stands in exactly one line of a report.
#[derive(Serialize, ToSchema)]
struct Line {
    /// `<extension>:<sku>`.
    sku: String,
    /// The sum.
    value: u64,
    /// Its start, included: RFC 3339.
    from: String,
    /// Its end, excluded: RFC 3339.
    to: String,
}

/// Sums that clients read as 64 bits.
fn clamped(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}

/// What an organization used in a range of whole hours: the last 24 hours unless told, one line per SKU, or one per
/// SKU and hour or day.
#[utoipa::path(get, path = "/v1/orgs/{oid}/usage", tag = "usage",
    params(
        ("oid" = String, Path, description = "The organization"),
        ("from" = Option<String>, Query, description = "Start: RFC 3339, or seconds since the epoch"),
        ("to" = Option<String>, Query, description = "End, excluded; now unless given"),
        ("by" = Option<String>, Query, description = "`hour` or `day` (in UTC)")),
    responses((status = 200, description = "The report", body = Report)))]
async fn report(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::USAGE_GET)?;
    let range = Range::parse(fields.get("from")?, fields.get("to")?, app.ports.clock.now())?;
    let grain = Grain::parse(fields.get("by")?)?;
    let line = |entry: Entry| Line {
        sku: entry.sku,
        value: clamped(entry.value),
        from: entry.from.to_string(),
        to: entry.to.to_string(),
    };
    let entries = usage::report(&app.ports, oid, range, grain).await?;
    Ok(json(&Report { usage: entries.into_iter().map(line).collect() }))
}

/// What an organization used in the last 30 days, as `{"usage": {day: {SKU: sum}}}`.
#[utoipa::path(get, path = "/v1/usage/{oid}", tag = "usage",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "Days in UTC", body = Value)))]
async fn overview(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::USAGE_GET)?;
    let now = app.ports.clock.now();
    let to = now.hour().plus(Duration::from_secs(3_600));
    let from = now.minus(OVERVIEW).max(Timestamp::default()).hour();
    let mut days: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for entry in usage::report(&app.ports, oid, Range { from, to }, Grain::Day).await? {
        let day = entry.from.to_string().chars().take(10).collect();
        days.entry(day).or_default().insert(entry.sku, clamped(entry.value));
    }
    Ok(json(&object!({"oid": oid, "usage": days})))
}
