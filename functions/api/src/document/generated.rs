//! The description as the handlers' `#[utoipa::path]` have it.

use serde_json::{Value, json};
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::openapi::path::{Operation, Paths};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{HttpMethod, Info, OpenApi, OpenApiBuilder, RefOr, SecurityRequirement};
use utoipa::{OpenApi as _, Path, ToSchema};

use crate::capability::PREFIX;

/// The body of every error answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what Fault::body writes")]
struct Fault {
    /// What went wrong, for people.
    error: String,
    /// Which kind of refusal, for programs: a word that is never renamed.
    code: String,
}

/// The body of every error answer below `/api/extensions/`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what Refusal::body writes")]
struct Refusal {
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
fn base() -> OpenApi {
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

/// What handlers say of themselves.
#[derive(Default)]
pub(crate) struct Described {
    operations: Vec<(String, Vec<HttpMethod>, Operation)>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Described {
    /// Adds a handler.
    pub(crate) fn add<P: Path + Tags<'static> + SchemaReferences>(mut self) -> Self {
        let mut operation = P::operation();
        let tags = P::tags().into_iter().map(str::to_owned);
        operation.tags.get_or_insert_default().extend(tags);
        self.operations.push((P::path(), P::methods(), operation));
        P::schemas(&mut self.schemas);
        self
    }

    /// These and others.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        self.schemas.extend(other.schemas);
        self
    }

    /// The description, as JSON text.
    fn document(self) -> String {
        let mut document = base();
        let mut paths = Paths::new();
        for (path, methods, operation) in self.operations {
            paths.add_path_operation(path, methods, operation);
        }
        document.paths = paths;
        document.components.get_or_insert_default().schemas.extend(self.schemas);
        with_faults(document)
    }
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
    format!("{value:#}\n")
}

#[test]
fn the_description_is_what_the_handlers_say() {
    let generated = crate::routes().described.document();
    if std::env::var_os("ANNEX_WRITE_OPENAPI").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        std::fs::write(path, &generated).expect("the description is written");
        return;
    }
    assert!(
        crate::document() == generated,
        "functions/api/openapi.json is old; write it anew: ANNEX_WRITE_OPENAPI=1 cargo test --workspace --lib description_is_what"
    );
}
