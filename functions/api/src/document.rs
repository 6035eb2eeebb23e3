//! The description of the API, served as `GET /openapi.json`: generated from the handlers, but not by the programs. It lies
//! beside the code, and a test says when it is old.

#[cfg(test)]
pub(crate) mod generated;

/// The description, as JSON text: OpenAPI 3.1.
pub fn document() -> &'static str {
    include_str!("../openapi.json")
}
