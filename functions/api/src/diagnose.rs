//! Why an extension is not called (LC-150).

use utoipa_axum::router::OpenApiRouter;

use crate::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}
