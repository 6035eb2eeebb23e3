//! JSON bodies of the endpoints of capability extensions.

use annex_core::capability::members::Members;
use annex_core::limits::SCOPE_BODY_BYTES_MAX;
use axum::extract::{FromRequest, Request};

use super::Refused;
use crate::App;
use crate::extract::collect;

/// The members of a JSON body, whatever its content type says; an empty body has none.
pub(crate) struct Body(pub(crate) Members);

impl FromRequest<App> for Body {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &App) -> Result<Self, Refused> {
        let bytes = collect(request.into_body(), SCOPE_BODY_BYTES_MAX).await?;
        Ok(Self(Members::read(&bytes)?))
    }
}
