//! What handlers take from a request.

use std::time::Duration;

use annex_core::auth::{self, Caller};
use annex_core::fault::{Code, Fault};
use annex_core::limits::{API_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::capability::refuses;
use crate::fields::Fields;
use crate::{App, Failure};

/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The caller: its token was verified.
#[derive(Debug)]
pub struct Authed(pub Caller);

impl FromRequestParts<App> for Authed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let token = bearer(&parts.headers)?;
        Ok(Self(auth::verify(&app.ports, token).await?))
    }
}

/// The token of `Authorization: Bearer <token>`, the scheme in any case.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Fault> {
    let refused = |text| Fault::new(Code::Unauthenticated, text);
    let value = headers.get(AUTHORIZATION).ok_or_else(|| refused("a token is needed"))?;
    let text = value.to_str().map_err(|_| refused("the token is not valid"))?;
    match text.trim().split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim_start()),
        _ => Err(refused("the Authorization header is not `Bearer <token>`")),
    }
}

/// Parts of the path, each decoded once.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        match Path::<T>::from_request_parts(parts, app).await {
            Ok(Path(params)) => Ok(Self(params)),
            Err(_) => Err(refuses(parts.uri.path(), bad("the path is not valid UTF-8"))),
        }
    }
}

/// The fields of a request: of its form or its JSON body, and of its query.
#[derive(Debug)]
pub struct Form(pub Fields);

impl FromRequest<App> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &App) -> Result<Self, Failure> {
        let (mut fields, query) = fields(request, API_BODY_BYTES_MAX).await?;
        fields.add_query(&query)?;
        Ok(Self(fields))
    }
}

/// The fields of a small body, for whoever has shown no token yet, and for secrets. The query is not read: what stands
/// there ends up in logs on its way.
#[derive(Debug)]
pub(crate) struct SmallForm(pub(crate) Fields);

impl FromRequest<App> for SmallForm {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &App) -> Result<Self, Failure> {
        Ok(Self(fields(request, SMALL_BODY_BYTES_MAX).await?.0))
    }
}

/// The fields of a body, and the query.
async fn fields(request: Request, bytes_max: usize) -> Result<(Fields, String), Fault> {
    let (parts, body) = request.into_parts();
    let body = collect(body, bytes_max).await?;
    let mut fields = Fields::default();
    if is_json(&parts.headers) {
        fields.add_json(&body)?;
    } else {
        fields.add_form(&body)?;
    }
    Ok((fields, parts.uri.query().unwrap_or("").to_owned()))
}

/// A whole body of any kind.
#[derive(Debug)]
pub(crate) struct Whole(pub(crate) Bytes);

impl FromRequest<App> for Whole {
    type Rejection = Response;

    async fn from_request(request: Request, _: &App) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let whole = collect(body, API_BODY_BYTES_MAX).await;
        whole.map(Self).map_err(|fault| refuses(parts.uri.path(), fault))
    }
}

/// A whole body of at most `bytes_max` bytes.
pub(crate) async fn collect(body: axum::body::Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let reading = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Fault::new(
            Code::TooLarge,
            format!("the request body is larger than {bytes_max} bytes"),
        )),
        Ok(Err(_)) => Err(bad("the request body ended early")),
        Err(_) => Err(bad("the request body did not arrive in time")),
    }
}

/// Whether the body says it is JSON. Everything else is read as a form: real clients put the form's content type on
/// every request, GET and DELETE too.
fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// The text of a header, if it is there.
pub(crate) fn header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Fault> {
    headers
        .get(name)
        .map(|value| value.to_str().map_err(|_| bad(format!("the header {name} is not ASCII"))))
        .transpose()
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(value: &'static str, token: Option<&str>) {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
        assert_eq!(bearer(&headers).ok(), token, "{value}");
    }

    #[test]
    fn the_scheme_of_a_token_is_read_in_any_case() {
        check("Bearer a.b.c", Some("a.b.c"));
        check("bearer a.b.c", Some("a.b.c"));
        check("BEARER  a.b.c ", Some("a.b.c"));
        check("Basic a", None);
        check("Bearer", None);
        check("a.b.c", None);
        assert!(bearer(&HeaderMap::new()).is_err());
    }

    #[test]
    fn only_json_is_json() {
        let is_json = |value| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, value)]));
        assert!(is_json(HeaderValue::from_static("application/json")));
        assert!(is_json(HeaderValue::from_static("Application/JSON; charset=utf-8")));
        assert!(!is_json(HeaderValue::from_static("application/x-www-form-urlencoded")));
        assert!(!is_json(HeaderValue::from_static("application/jsonl")));
        assert!(!is_json(HeaderValue::from_bytes(b"\xff").unwrap()));
    }
}
