//! Answers: JSON, and faults as JSON.

use std::panic::AssertUnwindSafe;

use annex_core::fault::{Code, Fault};
use annex_core::ports::Outage;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::Serialize;

use crate::capability::refuses;

/// What a handler answers.
pub type ApiResult = Result<Response, Failure>;

/// A fault on its way to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub Fault);

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl From<Outage> for Failure {
    fn from(outage: Outage) -> Self {
        Self(outage.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status()).expect("codes have statuses");
        let mut response = json_bytes(status, self.0.body());
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// A JSON answer with status 200.
pub fn json<T: Serialize>(value: &T) -> Response {
    let text = serde_json::to_vec(value).expect("answers have text keys and no failing parts");
    json_bytes(StatusCode::OK, text)
}

/// An answer of JSON text.
pub fn json_bytes(status: StatusCode, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// What management calls answer that have nothing to say. Some clients need a member in it, and exactly status 200.
pub(crate) fn success() -> Response {
    json_bytes(StatusCode::OK, r#"{"success":true}"#)
}

pub(crate) async fn no_route(uri: Uri) -> Response {
    let text = format!("there is no route {}", shown(uri.path()));
    refuses(uri.path(), Fault::new(Code::NotFound, text))
}

pub(crate) async fn no_method(method: Method, uri: Uri) -> Response {
    let text = format!("{} does not answer {method}", shown(uri.path()));
    refuses(uri.path(), Fault::new(Code::MethodNotAllowed, text))
}

/// The start of a path: it is as long as the caller likes.
fn shown(path: &str) -> &str {
    &path[..path.floor_char_boundary(200)]
}

/// A bug in one handler costs one request.
pub(crate) async fn catch_panics(request: Request, next: Next) -> Response {
    // Not the path: that of an adapter holds its secret.
    let route = request.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let method = request.method().clone();
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(%method, route, "a handler of the API panicked");
            refuses(route.as_deref().unwrap_or(""), Fault::new(Code::Internal, "internal error"))
        }
    }
}
