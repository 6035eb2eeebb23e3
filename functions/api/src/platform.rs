//! What the platform says about itself.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::routes::{Routes, routes};
use crate::{App, document, json_bytes};

pub(crate) fn routes() -> Routes {
    routes!(healthz, openapi)
}

/// Whether the platform answers.
#[utoipa::path(get, path = "/healthz", tag = "platform", security(()), responses(
    (status = 200, description = "It does", body = Value)))]
async fn healthz(State(_): State<App>) -> Response {
    json_bytes(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "platform", security(()), responses(
    (status = 200, description = "OpenAPI 3.1", body = Value)))]
async fn openapi() -> Response {
    json_bytes(StatusCode::OK, document())
}
