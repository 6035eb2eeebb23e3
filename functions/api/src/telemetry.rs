//! Telemetry: adapters of extensions, installation keys, deliveries to adapters, and the search of events.

use annex_core::auth::{Caller, CallerKind, permission};
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::ids::{ExtensionName, Oid};
use annex_core::limits::{API_BODY_BYTES_MAX, EVENTS_PER_PAGE_MAX, TAGS_MAX};
use annex_core::telemetry::installation_keys::{self, InstallationKeyInput};
use annex_core::telemetry::{Delivery, EventQuery};
use annex_core::time::Timestamp;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderName, StatusCode};
use serde::Serialize;
use serde_json::{Value, json as object};
use utoipa::ToSchema;

use crate::answer::success;
use crate::extract::{collect, header};
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, Params, json, json_bytes};

/// Where a delivery may name its secret, beside the URL.
const LC_SECRET: HeaderName = HeaderName::from_static("lc-secret");

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(crate) fn routes() -> Routes {
    routes!(
        provision,
        unprovision,
        list_keys,
        create_key,
        delete_key,
        get_key,
        events,
        hook,
        hook_with_header
    )
}

/// An adapter that was provisioned.
#[derive(Serialize, ToSchema)]
struct ProvisionedView {
    /// Where events are posted to; it holds the secret.
    url: String,
    /// The id of the adapter's installation key.
    installation_key: String,
    /// The tags of adapter and key.
    tags: Vec<String>,
}

/// What an adapter may be told.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct AdapterForm {
    /// A JSON object that says where events hold their type, time and host: `event_type_path`, `event_time_path`,
    /// `sensor_hostname_path`.
    mapping: Option<String>,
}

/// The extension itself, or who may write both an adapter and an installation key.
fn require_adapter(
    caller: &Caller,
    oid: Oid,
    extension: &ExtensionName,
    permissions: [&str; 2],
) -> Outcome<()> {
    match &caller.kind {
        CallerKind::Extension { name, .. } if name == extension && caller.oid == Some(oid) => {
            Ok(())
        }
        _ => permissions.iter().try_for_each(|needed| caller.require(oid, needed)),
    }
}

/// Provision the telemetry adapter of an extension. A repeat restores it, and keeps its installation key.
#[utoipa::path(post, path = "/v1/orgs/{oid}/adapters/{extension}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization"),
        ("extension" = String, Path, description = "The extension")),
    request_body(content = AdapterForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The adapter", body = ProvisionedView)))]
async fn provision(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, extension)): Params<(String, String)>,
    Form(fields): Form,
) -> ApiResult {
    let (oid, extension) = (Oid::parse(&oid)?, ExtensionName::parse(&extension)?);
    let needed = [permission::CLOUDSENSOR_SET, permission::IKEY_SET];
    require_adapter(&caller, oid, &extension, needed)?;
    let mapping = fields.get("mapping")?.filter(|text| !text.is_empty());
    let made = app.telemetry.provision(oid, &extension, mapping, &caller.ident).await?;
    Ok(json(&ProvisionedView {
        url: format!("{}{}", app.settings.public_url, made.path),
        installation_key: made.installation_key,
        tags: made.tags,
    }))
}

/// Remove the telemetry adapter of an extension and its installation key. Events that came stay.
#[utoipa::path(delete, path = "/v1/orgs/{oid}/adapters/{extension}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization"),
        ("extension" = String, Path, description = "The extension")),
    responses((status = 200, description = "It is gone", body = Value)))]
async fn unprovision(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, extension)): Params<(String, String)>,
) -> ApiResult {
    let (oid, extension) = (Oid::parse(&oid)?, ExtensionName::parse(&extension)?);
    let needed = [permission::CLOUDSENSOR_DEL, permission::IKEY_DEL];
    require_adapter(&caller, oid, &extension, needed)?;
    app.telemetry.unprovision(oid, &extension).await?;
    Ok(success())
}

/// The installation keys of an organization, by id, under the organization's id.
#[utoipa::path(get, path = "/v1/installationkeys/{oid}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization")),
    responses((status = 200, description = "The keys", body = Value)))]
async fn list_keys(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::IKEY_LIST)?;
    let keys = installation_keys::list(&app.ports, oid).await?;
    Ok(json(&installation_keys::view_all(oid, &keys)))
}

/// One installation key.
#[utoipa::path(get, path = "/v1/installationkeys/{oid}/{iid}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization"),
        ("iid" = String, Path, description = "The key's id")),
    responses((status = 200, description = "The key", body = Value)))]
async fn get_key(
    State(app): State<App>,
    Authed(caller): Authed,
    Params((oid, iid)): Params<(String, String)>,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::IKEY_LIST)?;
    let key = installation_keys::get(&app.ports, oid, &iid).await?;
    Ok(json(&installation_keys::view(oid, &key)))
}

/// An installation key to make or to change.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct KeyForm {
    /// For people.
    desc: Option<String>,
    /// Tags with commas between, or the field more than once.
    tags: Option<String>,
    /// Kept and shown.
    use_public_root_ca: Option<bool>,
    /// The key to change.
    iid: Option<String>,
}

/// Make an installation key, or change the one that `iid` names.
#[utoipa::path(post, path = "/v1/installationkeys/{oid}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization")),
    request_body(content = KeyForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The key's id", body = Value)))]
async fn create_key(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::IKEY_SET)?;
    let input = InstallationKeyInput {
        iid: fields.get("iid")?.filter(|iid| !iid.is_empty()).map(str::to_owned),
        desc: fields.get("desc")?.unwrap_or("").to_owned(),
        tags: fields.all("tags").take(TAGS_MAX + 1).map(str::to_owned).collect(),
        use_public_root_ca: fields.flag("use_public_root_ca")?,
    };
    let iid = installation_keys::create(&app.ports, oid, input).await?;
    Ok(json(&object!({ "oid": oid.to_string(), "iid": iid })))
}

/// Delete an installation key; `iid` is a field of the form or of the query.
#[utoipa::path(delete, path = "/v1/installationkeys/{oid}", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization"),
        ("iid" = Option<String>, Query, description = "The key's id")),
    responses((status = 200, description = "It is gone", body = Value)))]
async fn delete_key(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::IKEY_DEL)?;
    installation_keys::delete(&app.ports, oid, fields.require("iid")?).await?;
    Ok(success())
}

/// A page of events.
#[derive(Serialize, ToSchema)]
struct EventsView {
    /// `{"event": as it came, "routing": {…}, "ts": when it came}` each.
    events: Vec<Value>,
    /// `cursor` of the next page; null: that was all. A page may be short and have a next one.
    next_cursor: Option<String>,
}

/// The events of an organization by the time they came and by type, the newest first.
#[utoipa::path(get, path = "/v1/orgs/{oid}/events", tag = "Telemetry",
    params(("oid" = String, Path, description = "The organization"),
        ("from" = Option<String>, Query, description = "This time or later: RFC 3339, or seconds since 1970"),
        ("to" = Option<String>, Query, description = "Before this time"),
        ("type" = Option<String>, Query, description = "Of this type"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 if not given"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("order" = Option<String>, Query, description = "`desc` (the newest first) or `asc`")),
    responses((status = 200, description = "A page of events", body = EventsView)))]
async fn events(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(oid): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = Oid::parse(&oid)?;
    caller.require(oid, permission::INSIGHT_EVT_GET)?;
    let given =
        |name| -> Outcome<Option<&str>> { Ok(fields.get(name)?.filter(|text| !text.is_empty())) };
    let time = |name| match given(name)? {
        None => Ok(None),
        Some(text) => Timestamp::parse(text).map(Some).ok_or_else(|| {
            bad(format!("{name} is neither RFC 3339 nor a number of seconds since 1970"))
        }),
    };
    let query = EventQuery {
        from: time("from")?,
        to: time("to")?,
        event_type: given("type")?.map(str::to_owned),
        limit: fields.number("limit", EVENTS_PER_PAGE_MAX + 1)?,
        cursor: given("cursor")?.map(str::to_owned),
        oldest_first: match given("order")? {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(bad("order is neither asc nor desc").into()),
        },
    };
    let page = app.telemetry.events(oid, &query).await?;
    Ok(json_bytes(StatusCode::OK, page.json()))
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

/// What came of a delivery.
#[derive(Serialize, ToSchema)]
struct ReceivedView {
    success: bool,
    /// Events in the delivery.
    events: usize,
}

/// Deliver events to an adapter: one JSON object, a list of them, or one a line; also gzip.
#[utoipa::path(post, path = "/hook/{oid}/{adapter}/{secret}", tag = "Telemetry", security(()),
    params(("oid" = String, Path, description = "The organization"),
        ("adapter" = String, Path, description = "The name of the adapter"),
        ("secret" = String, Path, description = "Its secret"),
        ("idempotency-key" = Option<String>, Header, description = "A repeat within a day stores nothing twice")),
    request_body(content = Value, content_type = "application/json"),
    responses((status = 200, description = "Every event is stored", body = ReceivedView)))]
async fn hook(
    State(app): State<App>,
    Params((oid, adapter, secret)): Params<(String, String, String)>,
    request: Request,
) -> ApiResult {
    receive(&app, [&oid, &adapter, &secret], request).await
}

/// Deliver events to an adapter whose secret stands in the header `lc-secret`.
#[utoipa::path(post, path = "/hook/{oid}/{adapter}", tag = "Telemetry", security(()),
    params(("oid" = String, Path, description = "The organization"),
        ("adapter" = String, Path, description = "The name of the adapter"),
        ("lc-secret" = String, Header, description = "Its secret"),
        ("idempotency-key" = Option<String>, Header, description = "A repeat within a day stores nothing twice")),
    request_body(content = Value, content_type = "application/json"),
    responses((status = 200, description = "Every event is stored", body = ReceivedView)))]
async fn hook_with_header(
    State(app): State<App>,
    Params((oid, adapter)): Params<(String, String)>,
    request: Request,
) -> ApiResult {
    let secret = header(request.headers(), &LC_SECRET)?.unwrap_or_default().to_owned();
    receive(&app, [&oid, &adapter, &secret], request).await
}

async fn receive(app: &App, to: [&str; 3], request: Request) -> ApiResult {
    let [oid, adapter, secret] = to;
    let (parts, body) = request.into_parts();
    let delivery = Delivery {
        oid,
        adapter,
        secret,
        encoding: header(&parts.headers, &CONTENT_ENCODING)?,
        body: &[],
        idempotency_key: header(&parts.headers, &IDEMPOTENCY_KEY)?,
    };
    let received = app.telemetry.receive_from(delivery, collect(body, API_BODY_BYTES_MAX)).await?;
    // Real senders take nothing but 200 for success.
    Ok(json(&ReceivedView { success: true, events: received.events }))
}
