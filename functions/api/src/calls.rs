//! Calls to extensions: requests, their records, and schemas.

use annex_core::auth::{Caller, CallerKind, permission};
use annex_core::call::{CallRequest, ReplayRequest, Reply};
use annex_core::fault::{Code, Fault, Outcome};
use annex_core::ids::{ExtensionName, Oid};
use annex_core::trace::{TRACEPARENT_HEADER, Trace};
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use utoipa::ToSchema;

use crate::extract::header;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Fields, Form, Params, gzdata, json_bytes, prefer};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const INVOCATION_ID: HeaderName = HeaderName::from_static("annex-invocation-id");

pub(crate) fn routes() -> Routes {
    routes!(request, invocation, replay, schema)
}

/// A request to an extension.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct RequestForm {
    /// The organization.
    oid: String,
    /// The action.
    action: String,
    /// The request data: the JSON text of an object.
    data: Option<String>,
    /// The same, as base64 of gzip of it.
    gzdata: Option<String>,
    /// The token of the user on whose behalf an impersonated action runs.
    impersonator_jwt: Option<String>,
    /// An id of an investigation, passed through. Also read as `inv_id`.
    investigation_id: Option<String>,
}

/// Call an action of an extension, and wait for its answer.
#[utoipa::path(post, path = "/v1/extension/request/{name}", tag = "calls",
    params(
        ("name" = String, Path, description = "The extension"),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller's name of this call: a repeat is answered as the first was"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` seconds, at most 25; `respond-async`: do not wait")),
    request_body(content = RequestForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The extension's answer", body = Value),
        (status = 202, description = "The call goes on; `Location` is its record", body = Value)))]
async fn request(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    headers: HeaderMap,
    Form(mut fields): Form,
) -> ApiResult {
    let oid = Oid::parse(fields.require("oid")?)?;
    caller.require(oid, permission::EXT_REQUEST)?;
    let request = CallRequest {
        oid,
        extension: ExtensionName::parse(&name)?,
        action: fields.require("action")?.to_owned(),
        data: data(&mut fields)?,
        caller,
        impersonator: fields.take("impersonator_jwt")?.filter(|token| !token.is_empty()),
        idempotency_key: header(&headers, &IDEMPOTENCY_KEY)?.map(ToOwned::to_owned),
        investigation: investigation(&mut fields)?,
        wait: prefer::wait(&headers),
        trace: trace(&headers),
    };
    Ok(answer(app.calls.request(request).await?))
}

/// The request data: `data` as it came, or `gzdata` decoded; empty where there is neither.
pub(crate) fn data(fields: &mut Fields) -> Outcome<Vec<u8>> {
    match (fields.take("data")?, fields.take("gzdata")?) {
        (Some(_), Some(_)) => {
            Err(Fault::new(Code::BadRequest, "the request has both data and gzdata"))
        }
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(packed)) => gzdata::decode(&packed),
        (None, None) => Ok(Vec::new()),
    }
}

fn investigation(fields: &mut Fields) -> Outcome<String> {
    match fields.take("investigation_id")? {
        Some(id) => Ok(id),
        None => Ok(fields.take("inv_id")?.unwrap_or_default()),
    }
}

/// The trace of the caller. Two headers are as good as none.
fn trace(headers: &HeaderMap) -> Option<Trace> {
    let mut values = headers.get_all(TRACEPARENT_HEADER).iter();
    let (value, more) = (values.next()?, values.next());
    Trace::parse(value.to_str().ok().filter(|_| more.is_none())?)
}

fn answer(reply: Reply) -> Response {
    match reply {
        Reply::Ended { id, status, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            named(json_bytes(status, body), &id)
        }
        Reply::Accepted { id, body } => {
            let mut response = json_bytes(StatusCode::ACCEPTED, body);
            if let Ok(location) = HeaderValue::from_str(&format!("/v1/invocations/{id}")) {
                response.headers_mut().insert(LOCATION, location);
            }
            named(response, &id)
        }
    }
}

fn named(mut response: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(INVOCATION_ID, id);
    }
    response
}

/// The organization that a request without one in its path is about: the one it names, else the one of the token.
pub(crate) fn oid_of(caller: &Caller, fields: &Fields) -> Outcome<Oid> {
    match (fields.get("oid")?, caller.oid) {
        (Some(text), _) if !text.is_empty() => Oid::parse(text),
        (_, Some(oid)) => Ok(oid),
        _ => Err(Fault::new(Code::BadRequest, "the field oid is missing")),
    }
}

/// Read the record of a call.
#[utoipa::path(get, path = "/v1/invocations/{id}", tag = "calls",
    params(
        ("id" = String, Path, description = "The invocation"),
        ("oid" = Option<String>, Query, description = "Its organization; the token's unless given. The operator may name any")),
    responses((status = 200, description = "`{id, status, data?, error?, replay_of?, created_at, finished_at?}`", body = Value)))]
async fn invocation(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(id): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    let oid = oid_of(&caller, &fields)?;
    if caller.kind != CallerKind::Operator {
        caller.require(oid, permission::INVOCATION_GET)?;
    }
    match app.calls.record(oid, &id).await? {
        Some(record) => Ok(json_bytes(StatusCode::OK, record)),
        None => Err(Fault::new(Code::NotFound, "there is no such invocation").into()),
    }
}

/// A replay.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct ReplayForm {
    /// The organization; the token's unless given.
    oid: Option<String>,
    /// The token of the user on whose behalf an impersonated action runs.
    impersonator_jwt: Option<String>,
}

/// Make a call that ended and failed once more, as a new one, and wait for its answer. The old one stays as it is.
#[utoipa::path(post, path = "/v1/invocations/{id}/replay", tag = "calls",
    params(
        ("id" = String, Path, description = "The invocation"),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller's name of this replay: a repeat is answered as the first was"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` seconds, at most 25; `respond-async`: do not wait")),
    request_body(content = ReplayForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The extension's answer", body = Value),
        (status = 202, description = "The call goes on; `Location` is its record", body = Value)))]
async fn replay(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(id): Params<String>,
    headers: HeaderMap,
    Form(mut fields): Form,
) -> ApiResult {
    let oid = oid_of(&caller, &fields)?;
    caller.require(oid, permission::EXT_REQUEST)?;
    let request = ReplayRequest {
        oid,
        id,
        caller,
        impersonator: fields.take("impersonator_jwt")?,
        idempotency_key: header(&headers, &IDEMPOTENCY_KEY)?.map(ToOwned::to_owned),
        wait: prefer::wait(&headers),
        trace: trace(&headers),
    };
    Ok(answer(app.calls.replay(request).await?))
}

/// Read the schema of an extension, as it answers itself, at most a minute old.
#[utoipa::path(get, path = "/v1/extension/schema/{name}", tag = "calls",
    params(
        ("name" = String, Path, description = "The extension"),
        ("oid" = Option<String>, Query, description = "The organization; the token's unless given")),
    responses((status = 200, description = "The schema", body = Value)))]
async fn schema(
    State(app): State<App>,
    Authed(caller): Authed,
    Params(name): Params<String>,
    Form(fields): Form,
) -> ApiResult {
    if caller.kind != CallerKind::Operator {
        caller.require(oid_of(&caller, &fields)?, permission::EXT_REQUEST)?;
    }
    let schema = app.calls.schema(&ExtensionName::parse(&name)?).await?;
    Ok(json_bytes(StatusCode::OK, schema))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn check(form: &str, expected: Result<&str, &str>) {
        let mut fields = Fields::default();
        fields.add_form(form.as_bytes()).unwrap();
        assert_eq!(
            data(&mut fields).map_err(|fault| fault.message),
            expected.map(|text| text.as_bytes().to_vec()).map_err(Into::into),
            "{form}"
        );
    }

    #[test]
    fn data_comes_as_it_is_or_packed_but_not_both_ways() {
        check("data=%7B%22a%22%3A1e16%7D", Ok(r#"{"a":1e16}"#));
        check("", Ok(""));
        check("data=", Ok(""));
        check("data=1&gzdata=1", Err("the request has both data and gzdata"));
        check("data=1&data=1", Err("the field data stands more than once"));
        check("gzdata=%25", Err("gzdata is not base64"));
    }

    #[test]
    fn an_answer_names_its_invocation_and_a_receipt_says_where_to_look() {
        let ended = answer(Reply::Ended { id: "i1".into(), status: 502, body: Bytes::new() });
        assert_eq!(ended.status(), 502);
        assert_eq!(ended.headers()["annex-invocation-id"], "i1");
        assert_eq!(ended.headers()["content-type"], "application/json");
        let accepted = answer(Reply::Accepted { id: "i2".into(), body: Bytes::new() });
        assert_eq!(accepted.status(), 202);
        assert_eq!(accepted.headers()["location"], "/v1/invocations/i2");
        assert_eq!(accepted.headers()["annex-invocation-id"], "i2");
    }
}
