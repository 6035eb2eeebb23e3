//! JSON bodies of the endpoints of capability extensions.

use annex_core::capability::members::Members;
use annex_core::fault::Outcome;
use annex_core::limits::SCOPE_BODY_BYTES_MAX;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;

use super::Refused;
use crate::App;
use crate::extract::collect;

/// A JSON body, whatever its content type says. It is read by the handler: what is counted against a rate is counted
/// whatever the body holds.
pub(crate) struct Body(pub(crate) Bytes);

impl Body {
    /// The members of its object; an empty body has none.
    pub(crate) fn members(&self) -> Outcome<Members> {
        Members::read(&self.0)
    }
}

impl FromRequest<App> for Body {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &App) -> Result<Self, Refused> {
        Ok(Self(collect(request.into_body(), SCOPE_BODY_BYTES_MAX).await?))
    }
}
