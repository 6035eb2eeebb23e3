//! Errors in the shape of the contract, and who calls its endpoints.

use std::sync::Arc;

use annex_core::capability::Known;
use annex_core::capability::refusal::Refusal;
use annex_core::fault::Fault;
use annex_core::ports::Outage;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::extract::bearer;
use crate::{App, Failure, json_bytes};

/// What the path of every endpoint of the contract begins with.
pub(crate) const PREFIX: &str = "/api/extensions/";

/// What a handler of the contract answers.
pub(crate) type ContractResult = Result<Response, Refused>;

/// A refusal on its way to the caller.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self(fault.into())
    }
}

impl From<Outage> for Refused {
    fn from(outage: Outage) -> Self {
        Self(outage.into())
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(failure.0.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status()).expect("refusals have statuses");
        let mut response = json_bytes(status, self.0.body());
        if let Some(seconds) = self.0.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// What a handler answers that calls for an organization.
pub(crate) type MixedResult = Result<Response, Mixed>;

/// A refusal outside of the contract's endpoints: only the contract's own codes have its shape there.
#[derive(Debug)]
pub(crate) struct Mixed(Refused);

impl<T: Into<Refused>> From<T> for Mixed {
    fn from(refused: T) -> Self {
        Self(refused.into())
    }
}

impl IntoResponse for Mixed {
    fn into_response(self) -> Response {
        match self.0.0 {
            Refusal::Other(fault) => Failure(fault).into_response(),
            refusal => Refused(refusal).into_response(),
        }
    }
}

/// A fault of no handler in the shape that belongs to the path.
pub(crate) fn refuses(path: &str, fault: Fault) -> Response {
    match path.starts_with(PREFIX) {
        true => Refused::from(fault).into_response(),
        false => Failure(fault).into_response(),
    }
}

/// The extension that calls: its developer token was verified.
pub(crate) struct Developer(pub(crate) Arc<Known>);

impl FromRequestParts<App> for Developer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        let token = bearer(&parts.headers)?;
        Ok(Self(app.calls.capabilities().authenticate(token).await?))
    }
}
