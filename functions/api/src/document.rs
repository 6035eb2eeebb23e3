//! The description of the API: generated from the handlers, served as `GET /openapi.json`.

use std::sync::LazyLock;

use serde_json::{Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Info, OpenApi, OpenApiBuilder, SecurityRequirement};
use utoipa::{OpenApi as _, ToSchema};

use crate::capability::PREFIX;

/// The body of every error answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what Fault::body writes")]
pub(crate) struct Fault {
    /// What went wrong, for people.
    error: String,
    /// Which kind of refusal, for programs: a word that is never renamed.
    code: String,
}

/// The body of every error answer below `/api/extensions/`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what Refusal::body writes")]
pub(crate) struct Refusal {
    /// The HTTP status.
    status_code: u16,
    /// Which kind of refusal, for programs: a word that is never renamed.
    code: String,
    /// The code again, or what went wrong, for people.
    message: String,
    /// There for some codes only.
    details: Option<Value>,
}

#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(Fault, Refusal)))]
struct Base;

/// What the description starts from.
pub(crate) fn base() -> OpenApi {
    let mut info = Info::new("Annex", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "An extension platform. Bodies are forms, or JSON objects with the same members. Sign in with \
         `POST /jwt` and send the token as `Authorization: Bearer <token>`."
            .to_owned(),
    );
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let mut components = Base::openapi().components.unwrap_or_default();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some([SecurityRequirement::new("token", Vec::<String>::new())]))
        .build()
}

/// The description, as JSON text.
pub fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| with_faults(crate::routes().to_openapi()));
    &TEXT
}

/// Every operation answers faults the same way, so that is said once, here.
fn with_faults(document: OpenApi) -> String {
    let mut value = serde_json::to_value(document).expect("a description is JSON");
    for (path, item) in value["paths"].as_object_mut().into_iter().flatten() {
        let shape = if path.starts_with(PREFIX) { "Refusal" } else { "Fault" };
        let operations = item.as_object_mut().into_iter().flat_map(|item| item.values_mut());
        for operation in operations.filter(|operation| operation.get("responses").is_some()) {
            let schema = json!({"$ref": format!("#/components/schemas/{shape}")});
            operation["responses"]["default"] = json!({
                "description": "A fault",
                "content": {"application/json": {"schema": schema}},
            });
        }
    }
    value.to_string()
}
