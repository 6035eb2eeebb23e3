//! The routes as such: they are all described, and what is no route is a fault like any other.

use std::collections::BTreeSet;

use annex_core::limits::{API_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX};
use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use super::platform::Platform;

/// Every route. A new one is added here, so that nobody adds or loses one unawares.
const ROUTES: &[&str] = &[
    "POST /v1/orgs/{oid}/scopes/lock/{lockId}/{person}/queries/{id}",
    "POST /v1/orgs/{oid}/scopes/lock/{lockId}/{person}/commands/{id}",
    "POST /api/extensions/sessions/{sessionId}/queries/{id}",
    "POST /api/extensions/sessions/{sessionId}/options",
    "POST /api/extensions/sessions/{sessionId}/events",
    "POST /api/extensions/sessions/{sessionId}/commands/{id}",
    "GET /api/extensions/sessions/{sessionId}/invocations/{invocationId}",
    "GET /api/extensions/sessions/{sessionId}/events",
    "GET /api/extensions/sessions/{sessionId}/capabilities",
    "DELETE /v1/orgs/{oid}/scopes/lock/{lockId}/sessions/{sessionId}",
    "GET /api/extensions/sessions/{sessionId}",
    "GET /api/extensions/sessions/{sessionId}/pillory/status",
    "GET /v1/orgs/{oid}/scopes/lock/{lockId}",
    "GET /v1/orgs/{oid}/scopes/lock/{lockId}/history",
    "GET /v1/orgs/{oid}/scopes/lock/{lockId}/invocations/{invocationId}",
    "GET /v1/orgs/{oid}/scopes/lock/{lockId}/sessions",
    "PATCH /api/extensions/sessions/{sessionId}",
    "PATCH /v1/orgs/{oid}/scopes/lock/{lockId}",
    "POST /api/extensions/sessions/search",
    "POST /api/extensions/sessions/{sessionId}/action",
    "POST /api/extensions/sessions/{sessionId}/logs/custom",
    "POST /api/extensions/sessions/{sessionId}/logs/search",
    "POST /api/extensions/sessions/{sessionId}/penalties/increment",
    "POST /api/extensions/sessions/{sessionId}/penalties/time-limit/cancel",
    "POST /api/extensions/sessions/{sessionId}/penalties/time-limit/create",
    "POST /api/extensions/sessions/{sessionId}/tasks/assign",
    "POST /api/extensions/sessions/{sessionId}/tasks/complete",
    "POST /api/extensions/sessions/{sessionId}/tasks/start-timer",
    "POST /api/extensions/sessions/{sessionId}/temporary-opening/open",
    "POST /api/extensions/sessions/{sessionId}/verification-picture/request",
    "POST /v1/extension/definition/{name}/developer-token",
    "POST /v1/orgs/{oid}/scopes/lock/{lockId}/sessions",
    "PUT /api/extensions/manifest",
    "PUT /api/extensions/sessions/{sessionId}/availability",
    "DELETE /v1/errors/{oid}/{component}",
    "DELETE /v1/extension/definition/{name}",
    "DELETE /v1/extension/definition/{name}/rotate-secret",
    "DELETE /v1/hive/{hive}/{oid}/{name}",
    "DELETE /v1/installationkeys/{oid}",
    "DELETE /v1/orgs/{oid}",
    "DELETE /v1/orgs/{oid}/adapters/{extension}",
    "DELETE /v1/orgs/{oid}/keys",
    "DELETE /v1/orgs/{oid}/subscription/extension/{name}",
    "GET /healthz",
    "GET /openapi.json",
    "GET /v1/dead-letters/{queue}",
    "GET /v1/errors/{oid}",
    "GET /v1/extension/definition",
    "GET /v1/extension/definition/{name}",
    "GET /v1/extension/diagnose/{name}",
    "GET /v1/extension/actions/{name}",
    "GET /v1/extension/schema/{name}",
    "GET /v1/hive/{hive}/schema",
    "GET /v1/hive/{hive}/{oid}",
    "GET /v1/hive/{hive}/{oid}/{name}/data",
    "GET /v1/hive/{hive}/{oid}/{name}/mtd",
    "GET /v1/installationkeys/{oid}",
    "GET /v1/installationkeys/{oid}/{iid}",
    "GET /v1/invocations/{id}",
    "GET /v1/orgs/new",
    "GET /v1/orgs/{oid}",
    "GET /v1/orgs/{oid}/events",
    "GET /v1/orgs/{oid}/export",
    "GET /v1/orgs/{oid}/keys",
    "GET /v1/orgs/{oid}/subscriptions",
    "GET /v1/orgs/{oid}/url",
    "GET /v1/orgs/{oid}/usage",
    "GET /v1/usage/{oid}",
    "GET /v1/user/orgs",
    "GET /v1/who",
    "PATCH /v1/orgs/{oid}/subscription/extension/{name}",
    "POST /hook/{oid}/{adapter}",
    "POST /hook/{oid}/{adapter}/{secret}",
    "POST /jwt",
    "POST /v1/dead-letters/{queue}/redrive",
    "POST /v1/extension/definition",
    "POST /v1/extension/definition/{name}/rotate-secret",
    "POST /v1/extension/request/{name}",
    "POST /v1/hive/{hive}/{oid}/{name}/data",
    "POST /v1/hive/{hive}/{oid}/{name}/mtd",
    "POST /v1/hive/{hive}/{oid}/{name}/rename",
    "POST /v1/hive/{hive}/{oid}/{name}/validate",
    "POST /v1/installationkeys/{oid}",
    "POST /v1/invocations/{id}/replay",
    "POST /v1/keyring/reseal",
    "POST /v1/orgs/new",
    "POST /v1/orgs/{oid}/adapters/{extension}",
    "POST /v1/orgs/{oid}/keys",
    "POST /v1/orgs/{oid}/name",
    "POST /v1/orgs/{oid}/subscription/extension/{name}",
    "PUT /v1/extension/definition",
];

/// The routes that need no token.
const OPEN: &[&str] = &[
    "GET /healthz",
    "GET /openapi.json",
    "GET /v1/orgs/{oid}/url",
    "POST /hook/{oid}/{adapter}",
    "POST /hook/{oid}/{adapter}/{secret}",
    "POST /jwt",
];

fn described() -> Value {
    serde_json::from_str(crate::document()).unwrap()
}

/// Method and path of every described operation.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    found
}

#[test]
fn the_description_lists_the_routes_and_no_others() {
    let document = described();
    let found: BTreeSet<String> =
        operations(&document).iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let expected: BTreeSet<String> = ROUTES.iter().map(|&route| route.to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_operation_says_what_it_does_answers_and_faults_with() {
    let document = described();
    for (method, path, operation) in operations(&document) {
        let route = format!("{method} {path}");
        assert!(operation["summary"].is_string(), "{route} has no summary");
        let answers = ["200", "201"].map(|status| operation["responses"][status].is_object());
        assert!(answers.contains(&true), "{route} has no answer");
        let fault = "/responses/default/content/application~1json/schema/$ref";
        let shape = if path.starts_with("/api/extensions/") { "Refusal" } else { "Fault" };
        let shape = format!("#/components/schemas/{shape}");
        assert_eq!(operation.pointer(fault).unwrap(), &shape, "{route}");
        for name in path.split('{').skip(1).filter_map(|part| part.split('}').next()) {
            let params = operation["parameters"].as_array().unwrap();
            assert!(params.iter().any(|param| param["name"] == name), "{route} lacks {name}");
        }
        // An empty requirement means that no token is needed.
        let open = operation.get("security").is_some_and(|needs| needs[0] == serde_json::json!({}));
        assert_eq!(open, OPEN.contains(&route.as_str()), "{route}");
    }
}

#[tokio::test]
async fn the_router_answers_every_described_operation_and_asks_for_a_token() {
    let platform = Platform::new();
    for (method, path, _) in operations(&described()) {
        let route = format!("{method} {path}");
        let uri =
            path.replace("{oid}", "8cbe27f4-0000-4000-8000-138cd51389cd").replace(['{', '}'], "");
        let answer = platform.call("", &method, &uri, &[]).await;
        if OPEN.contains(&route.as_str()) {
            assert!(!answer.text.contains("there is no route"), "{route}");
            assert!([200, 400, 404].contains(&answer.status.as_u16()), "{route}: {answer:?}");
        } else if path.starts_with("/api/extensions/") {
            let text = r#"{"statusCode":401,"code":"unauthorized","message":"a token is needed"}"#;
            assert_eq!((answer.status.as_u16(), answer.text.as_str()), (401, text), "{route}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        } else {
            assert_eq!(
                answer.fault(),
                ("unauthenticated".into(), "a token is needed".into()),
                "{route}"
            );
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
}

#[tokio::test]
async fn what_is_no_route_or_no_method_is_a_fault() {
    let platform = Platform::new();
    let fault = |method: &'static str, path: &'static str| {
        let platform = &platform;
        async move { platform.call("", method, path, &[]).await.fault() }
    };
    assert_eq!(fault("GET", "/nope").await, ("not-found".into(), "there is no route /nope".into()));
    assert_eq!(fault("GET", "/").await.0, "not-found");
    assert_eq!(fault("GET", "/v1/orgs/a/b/c").await.0, "not-found");
    let text = "/jwt does not answer GET".to_owned();
    assert_eq!(fault("GET", "/jwt").await, ("method-not-allowed".into(), text));
    assert_eq!(fault("PATCH", "/v1/who").await.0, "method-not-allowed");
}

#[tokio::test]
async fn the_platform_says_that_it_is_there_and_what_it_can() {
    let platform = Platform::new();
    assert_eq!(platform.get("", "/healthz").await.ok()["status"], "ok");
    let document = platform.get("", "/openapi.json").await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[tokio::test]
async fn a_path_that_is_no_text_and_a_body_that_is_too_large_are_faults() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    assert_eq!(platform.get(&operator, "/v1/orgs/%ff").await.code(), "bad-request");
    let sized = |path: &'static str, token: &str, bytes: usize| {
        let request = Request::post(path).header("authorization", format!("Bearer {token}"));
        platform.send(request.body(Body::from("&".repeat(bytes))).unwrap())
    };
    for (path, limit) in [("/jwt", SMALL_BODY_BYTES_MAX), ("/v1/orgs/new", API_BODY_BYTES_MAX)] {
        assert_eq!(sized(path, &operator, limit).await.code(), "bad-request", "{path}");
        assert_eq!(sized(path, &operator, limit + 1).await.code(), "too-large", "{path}");
    }
    // Without a token nothing of it is read.
    let answer = sized("/v1/orgs/new", "x", API_BODY_BYTES_MAX + 1).await;
    assert_eq!(answer.code(), "unauthenticated");
}

#[tokio::test]
async fn a_panic_of_a_handler_is_one_fault_without_detail() {
    async fn broken() -> String {
        panic!("secret detail")
    }
    let router: axum::Router = axum::Router::new()
        .route("/", axum::routing::get(broken))
        .layer(axum::middleware::from_fn(crate::answer::catch_panics));
    let request = Request::get("/").body(Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(router, request).await.unwrap();
    assert_eq!(response.status(), 500);
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert_eq!(body, r#"{"error":"internal error","code":"internal"}"#);
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_more() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    platform.store.refuse_writes(true);
    let answer = platform.call(&operator, "POST", "/v1/orgs/new", &[("name", "x")]).await;
    let text = "the platform cannot write at the moment".to_owned();
    assert_eq!(answer.fault(), ("unavailable".into(), text));
    platform.store.refuse_writes(false);
    platform.call(&operator, "POST", "/v1/orgs/new", &[("name", "x")]).await.ok();
}
