//! Records of hives.

use annex_core::auth::Caller;
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::hive::{self, Change, EXTENSION_CONFIG, Hive, Record};
use annex_core::ids::{ExtensionName, Oid};
use annex_core::limits::{HIVE_PAGE_BYTES_MAX, HIVE_PAGE_RECORDS_MAX};
use annex_core::{extensions, json as text};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json as object};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use crate::answer::success;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Fields, Form, Params, gzdata, json, json_bytes};

pub(crate) fn routes() -> Routes {
    routes!(schema, list, delete, get_data, set_data, get_metadata, set_metadata, validate, rename)
}

/// A record.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `view` writes")]
struct RecordView {
    /// The data, byte for byte as it was written; null where only the metadata was asked for.
    data: Option<Value>,
    /// What the user set: `enabled`, `tags`, `comment`, `expiry` in milliseconds (0: never).
    usr_mtd: Value,
    /// What the platform knows: `etag`, `guid`, `created_at`, `created_by`, `last_mod`, `last_author`.
    sys_mtd: Value,
}

/// The JSON of a record. Put together as text, so that its data stays as it was written.
fn view(record: &Record, with_data: bool) -> String {
    let user = object!({
        "enabled": record.user.enabled, "expiry": record.user.expiry,
        "tags": record.user.tags, "comment": record.user.comment,
    });
    let system = object!({
        "etag": record.etag, "guid": record.guid,
        "created_by": record.created_by, "created_at": record.created_at,
        "last_author": record.last_author, "last_mod": record.last_mod,
        "last_error": "", "last_error_ts": 0,
    });
    let data = if with_data { record.data.as_str() } else { "null" };
    format!(r#"{{"data":{data},"usr_mtd":{user},"sys_mtd":{system}}}"#)
}

/// The place of a record, and whether the caller may use it so.
fn place(
    caller: &Caller,
    (hive, oid): (&str, &str),
    permission: impl FnOnce(&'static Hive) -> &'static str,
) -> Outcome<(&'static Hive, Oid)> {
    let oid = Oid::parse(oid)?;
    let hive = Hive::parse(hive)?;
    caller.require(oid, permission(hive))?;
    Ok((hive, oid))
}

/// The JSON schema of a hive's data.
#[utoipa::path(get, path = "/v1/hive/{hive}/schema", tag = "hives",
    params(("hive" = String, Path, description = "The hive")),
    responses((status = 200, description = "It, as `schema`", body = Value)))]
async fn schema(Authed(_): Authed, Params(hive): Params<String>) -> ApiResult {
    let schema = match Hive::parse(&hive)?.name {
        "secret" => object!({
            "type": "object", "required": ["secret"], "properties": {"secret": {"type": "string"}},
        }),
        "dr-general" => object!({
            "type": "object", "required": ["detect", "respond"],
            "properties": {"detect": {"type": "object"}, "respond": {"type": "array"}},
        }),
        _ => object!({"type": "object"}),
    };
    Ok(json(&object!({"schema": schema})))
}

/// List the records of a hive: all of them as `{name: record}`, or with `limit` or `cursor` a page of them as
/// `{"records": {name: record}, "next_cursor": text}`.
#[utoipa::path(get, path = "/v1/hive/{hive}/{oid}", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("limit" = Option<usize>, Query, description = "Records of a page, at most 500"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("max_bytes" = Option<usize>, Query, description = "Bytes of data of a page"),
        ("tag_prefix" = Option<String>, Query, description = "Start of a tag that a record must have"),
        ("mtd_only" = Option<bool>, Query, description = "Leave the data out")),
    responses((status = 200, description = "The records", body = Value)))]
async fn list(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid)): Params<(String, String)>,
    Form(fields): Form,
) -> ApiResult {
    // Who may read the records may list them; who may only list them gets no data.
    let may_read = |hive: &'static Hive| caller.holds(hive.get);
    let needs = |hive: &'static Hive| if may_read(hive) { hive.get } else { hive.list };
    let (hive, oid) = place(&caller, (&hive, &oid), needs)?;
    let with_data = may_read(hive) && !fields.flag("mtd_only")?;
    let limit = fields.number("limit", HIVE_PAGE_RECORDS_MAX)?;
    let cursor = fields.get("cursor")?.unwrap_or("");
    let paged = limit.is_some() || !cursor.is_empty();
    let after = match cursor.strip_prefix("after:") {
        Some(after) => after,
        None if cursor.is_empty() => "",
        None => return Err(invalid_cursor().into()),
    };
    let paging = hive::Paging {
        after,
        tag: fields.get("tag_prefix")?.unwrap_or(""),
        records_max: limit.filter(|&limit| limit != 0).unwrap_or(HIVE_PAGE_RECORDS_MAX),
        bytes_max: fields.number("max_bytes", HIVE_PAGE_BYTES_MAX)?.unwrap_or(HIVE_PAGE_BYTES_MAX),
    };
    let found = hive::list(&app.ports, oid, hive, paging).await?;
    let records = listed(&found.records, with_data);
    match (paged, found.next) {
        (true, next) => {
            // Never empty, never the name itself: a name may be anything.
            let next = next.map_or_else(String::new, |name| format!("after:{name}"));
            let next = text::quote(&next);
            let page = format!(r#"{{"records":{records},"next_cursor":{next}}}"#);
            Ok(json_bytes(StatusCode::OK, page))
        }
        (false, None) => Ok(json_bytes(StatusCode::OK, records)),
        (false, Some(_)) => Err(listing_too_large().into()),
    }
}

/// The JSON of records by name.
fn listed(records: &[(String, Record)], with_data: bool) -> String {
    let mut out = String::from("{");
    for (index, (name, record)) in records.iter().enumerate() {
        if index != 0 {
            out.push(',');
        }
        out.push_str(&text::quote(name));
        out.push(':');
        out.push_str(&view(record, with_data));
    }
    out.push('}');
    out
}

/// Real clients look for the word, and go on page by page.
fn listing_too_large() -> Fault {
    Fault::new(
        Code::TooLarge,
        "lc_error_code:HIVE_LISTING_TOO_LARGE - the hive is too large for one answer: ask with limit and cursor",
    )
}

fn invalid_cursor() -> Fault {
    Fault::new(Code::BadRequest, "lc_error_code:INVALID_CURSOR - the cursor is not one of ours")
}

/// Read a record.
#[utoipa::path(get, path = "/v1/hive/{hive}/{oid}/{name}/data", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    responses((status = 200, description = "The record", body = RecordView)))]
async fn get_data(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.get)?;
    read(&app, hive, oid, &name, true).await
}

/// Read a record's metadata.
#[utoipa::path(get, path = "/v1/hive/{hive}/{oid}/{name}/mtd", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    responses((status = 200, description = "The record, its data null", body = RecordView)))]
async fn get_metadata(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
) -> ApiResult {
    let needs = |hive: &'static Hive| if caller.holds(hive.get) { hive.get } else { hive.list };
    let (hive, oid) = place(&caller, (&hive, &oid), needs)?;
    read(&app, hive, oid, &name, false).await
}

async fn read(app: &App, hive: &Hive, oid: Oid, name: &str, with_data: bool) -> ApiResult {
    let record = hive::require(&app.ports, oid, hive, name).await?;
    Ok(json_bytes(StatusCode::OK, view(&record, with_data)))
}

/// A record to write.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handlers read")]
struct RecordForm {
    /// The data: the JSON text of an object.
    data: Option<String>,
    /// The same, as base64 of gzip of it.
    gzdata: Option<String>,
    /// The metadata, whole: the JSON text of `{enabled, tags, comment, expiry}`. Absent: what it was, or enabled.
    usr_mtd: Option<String>,
    /// The version that is to be replaced.
    etag: Option<String>,
}

/// Write a record. A configuration is written when its extension takes it.
#[utoipa::path(post, path = "/v1/hive/{hive}/{oid}/{name}/data", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    request_body(content = RecordForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "Its guid and its place", body = Value)))]
async fn set_data(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
    Form(mut fields): Form,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.set)?;
    let data = data(&mut fields)?;
    let change = Change { data: Some(data.clone()), ..metadata(&fields)? };
    check(&app, &caller, (hive, oid, &name), &data).await?;
    let record = hive::set(&app.ports, oid, hive, &name, change, &caller.ident).await?;
    Ok(written(hive, oid, &name, &record))
}

/// Write a record's metadata; its data stays.
#[utoipa::path(post, path = "/v1/hive/{hive}/{oid}/{name}/mtd", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    request_body(content = RecordForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "Its guid and its place", body = Value)))]
async fn set_metadata(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
    Form(fields): Form,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.set)?;
    // Some clients send the data they have, null: it is not looked at.
    let change = metadata(&fields)?;
    let record = hive::set(&app.ports, oid, hive, &name, change, &caller.ident).await?;
    Ok(written(hive, oid, &name, &record))
}

/// Check a record without writing it.
#[utoipa::path(post, path = "/v1/hive/{hive}/{oid}/{name}/validate", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    request_body(content = RecordForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "It is fine: an empty object", body = Value)))]
async fn validate(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
    Form(mut fields): Form,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.set)?;
    let data = data(&mut fields)?;
    metadata(&fields)?;
    check(&app, &caller, (hive, oid, &name), &data).await?;
    Ok(json_bytes(StatusCode::OK, "{}"))
}

/// Move a record to a new name.
#[utoipa::path(post, path = "/v1/hive/{hive}/{oid}/{name}/rename", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record"),
        ("new_name" = String, Query, description = "Its new name")),
    responses((status = 200, description = "Its guid and its place", body = Value)))]
async fn rename(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
    Form(fields): Form,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.set)?;
    let to = fields.require("new_name")?;
    // A configuration under another name is another extension's.
    let record = hive::require(&app.ports, oid, hive, &name).await?;
    check(&app, &caller, (hive, oid, to), &record.data).await?;
    let record = hive::rename(&app.ports, oid, hive, &name, to, &caller.ident).await?;
    Ok(written(hive, oid, to, &record))
}

/// Delete a record.
#[utoipa::path(delete, path = "/v1/hive/{hive}/{oid}/{name}", tag = "hives",
    params(
        ("hive" = String, Path, description = "The hive"),
        ("oid" = String, Path, description = "The organization"),
        ("name" = String, Path, description = "The record")),
    responses((status = 200, description = "Done", body = Value)))]
async fn delete(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((hive, oid, name)): Params<(String, String, String)>,
) -> ApiResult {
    let (hive, oid) = place(&caller, (&hive, &oid), |hive| hive.del)?;
    hive::delete(&app.ports, oid, hive, &name).await?;
    Ok(success())
}

/// The data of a record that is written.
fn data(fields: &mut Fields) -> Outcome<Zeroizing<String>> {
    if fields.get("arl")?.is_some_and(|arl| !arl.is_empty()) {
        return Err(Fault::new(Code::BadRequest, "data from an external place (arl) is not taken"));
    }
    match (fields.take("data")?, fields.take("gzdata")?) {
        (Some(data), None) => Ok(Zeroizing::new(data)),
        (None, Some(packed)) => String::from_utf8(gzdata::decode(&packed)?)
            .map(Zeroizing::new)
            .map_err(|_| Fault::new(Code::InvalidJson, "gzdata is not valid UTF-8")),
        (Some(_), Some(_)) => {
            Err(Fault::new(Code::BadRequest, "the request has both data and gzdata"))
        }
        (None, None) => Err(Fault::new(Code::BadRequest, "the field data is missing")),
    }
}

/// The metadata and the condition of a write. Some clients send the condition in a `sys_mtd`.
fn metadata(fields: &Fields) -> Outcome<Change> {
    let user = fields.get("usr_mtd")?.map(hive::read_metadata).transpose()?;
    let etag = match fields.get("etag")? {
        Some(etag) => Some(etag.to_owned()),
        None => fields.get("sys_mtd")?.and_then(|system| {
            let system: Value = serde_json::from_str(system).ok()?;
            Some(system.get("etag")?.as_str()?.to_owned())
        }),
    };
    Ok(Change { data: None, user, etag })
}

/// Checks what is to be written; of a configuration also that its extension takes it.
async fn check(
    app: &App,
    caller: &Caller,
    (hive, oid, name): (&Hive, Oid, &str),
    data: &str,
) -> Outcome<()> {
    hive::check_name(name)?;
    hive::check(hive, data)?;
    if *hive != *EXTENSION_CONFIG {
        return Ok(());
    }
    let extension = ExtensionName::parse(name)?;
    extensions::require_definition(&app.ports, &extension).await?;
    extensions::require_subscription(&app.ports, oid, &extension).await?;
    app.calls.validate_config(oid, &extension, data, &caller.ident).await
}

fn written(hive: &Hive, oid: Oid, name: &str, record: &Record) -> Response {
    json(&object!({
        "guid": record.guid, "hive": {"name": hive.name, "partition": oid}, "name": name,
    }))
}
