//! Signing in, and what a token is good for.

use std::time::Duration;

use annex_core::auth;
use annex_core::ids::ExtensionName;
use annex_core::model::{Definition, Subscription};
use annex_core::testkit::FixedKeyring;
use annex_core::{extensions, keys, stored};
use axum::body::Body;
use axum::http::Request;

use super::platform::Platform;

const UNKNOWN: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";

async fn refused(platform: &Platform, form: &[(&str, &str)]) -> (String, String) {
    platform.call("", "POST", "/jwt", form).await.fault()
}

#[tokio::test]
async fn the_root_key_signs_in_with_and_without_an_organization() {
    let platform = Platform::new();
    let (oid, token) = platform.org().await;
    let who = platform.get(&token, "/v1/who").await.ok();
    assert_eq!(who["ident"], "operator");
    assert_eq!(who["orgs"], serde_json::json!([oid.to_string()]));
    // Clients look for single permissions.
    assert!(who["perms"].as_array().unwrap().iter().any(|perm| perm == "org.get"));
    for form in [vec![("oid", "-")], vec![("oid", "")], vec![]] {
        let form = [vec![("secret", FixedKeyring::OPERATOR)], form].concat();
        let token = platform.call("", "POST", "/jwt", &form).await.ok();
        let who = platform.get(token["jwt"].as_str().unwrap(), "/v1/who").await.ok();
        assert_eq!(who["orgs"], serde_json::json!([]));
    }
}

#[tokio::test]
async fn the_root_key_may_name_who_acts_and_an_api_key_may_not() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let form = [("secret", FixedKeyring::OPERATOR), ("oid", "-"), ("uid", "ann@example.com")];
    let token = platform.call("", "POST", "/jwt", &form).await.ok();
    let who = platform.get(token["jwt"].as_str().unwrap(), "/v1/who").await.ok();
    assert_eq!(who["ident"], "ann@example.com");
    let path = format!("/v1/orgs/{oid}/keys");
    let made = platform.call(&owner, "POST", &path, &[("perms", "org.get")]).await.ok();
    let key = made["api_key"].as_str().unwrap();
    let form = [("secret", key), ("oid", &oid.to_string()), ("uid", "ann@example.com")];
    let token = platform.call("", "POST", "/jwt", &form).await.ok();
    let who = platform.get(token["jwt"].as_str().unwrap(), "/v1/who").await.ok();
    assert_eq!(who["ident"], format!("key:{}", made["key_hash"].as_str().unwrap()));
    assert_eq!(who["perms"], serde_json::json!(["org.get"]));
}

#[tokio::test]
async fn a_sign_in_that_is_wrong_is_refused_with_its_reason() {
    let platform = Platform::new();
    let wrong = ("unauthenticated".to_owned(), "the secret is not valid".to_owned());
    assert_eq!(refused(&platform, &[("secret", "x"), ("oid", UNKNOWN)]).await, wrong);
    assert_eq!(refused(&platform, &[("secret", "x"), ("oid", "-")]).await, wrong);
    assert_eq!(refused(&platform, &[("secret", UNKNOWN)]).await, wrong);
    assert_eq!(refused(&platform, &[]).await.1, "the field secret is missing");
    let root = ("secret", FixedKeyring::OPERATOR);
    assert_eq!(refused(&platform, &[root, ("oid", "nope")]).await.1, "oid is not a UUID");
    assert_eq!(refused(&platform, &[root, ("oid", UNKNOWN)]).await.0, "not-found");
    assert_eq!(refused(&platform, &[root, ("expiry", "0")]).await.1, "expiry is in the past");
    let long = "x".repeat(annex_core::limits::UID_BYTES_MAX + 1);
    assert_eq!(refused(&platform, &[root, ("uid", &long)]).await.0, "bad-request");
    assert_eq!(refused(&platform, &[root, root]).await.1, "the field secret stands more than once");
}

#[tokio::test]
async fn an_api_key_works_in_its_own_organization_until_it_is_deleted() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let (other, _) = platform.org().await;
    let path = format!("/v1/orgs/{oid}/keys");
    let form = [("key_name", "ci"), ("perms", "org.get, secret.get")];
    let made = platform.call(&owner, "POST", &path, &form).await.ok();
    let (key, hash) = (made["api_key"].as_str().unwrap(), made["key_hash"].as_str().unwrap());
    let form = [("secret", key), ("oid", &other.to_string())];
    assert_eq!(refused(&platform, &form).await.0, "unauthenticated");

    let token = platform.sign_in(key, &oid.to_string()).await;
    platform.get(&token, &format!("/v1/orgs/{oid}")).await.ok();
    assert_eq!(platform.get(&token, &format!("/v1/orgs/{other}")).await.code(), "forbidden");
    // Without an organization it only tells whose it is.
    let minimal = platform.sign_in(key, "-").await;
    assert_eq!(platform.get(&minimal, "/v1/who").await.ok()["perms"], serde_json::json!([]));
    let orgs = platform.get(&minimal, "/v1/user/orgs").await.ok();
    assert_eq!(
        (orgs["total"].as_u64(), orgs["orgs"][0]["oid"].as_str()),
        (Some(1), Some(&*oid.to_string()))
    );

    let listed = platform.get(&owner, &path).await.ok();
    assert_eq!(listed["api_keys"][hash]["name"], "ci");
    assert_eq!(listed["api_keys"][hash]["priv"], serde_json::json!(["org.get", "secret.get"]));
    assert!(!listed.to_string().contains(key));

    platform.call(&owner, "DELETE", &path, &[("key_hash", hash)]).await.ok();
    assert_eq!(
        refused(&platform, &[("secret", key), ("oid", &oid.to_string())]).await.0,
        "unauthenticated"
    );
    assert_eq!(platform.get(&token, "/v1/who").await.code(), "unauthenticated");
    let again = platform.call(&owner, "DELETE", &path, &[("key_hash", hash)]).await;
    assert_eq!(again.code(), "not-found");
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let user = platform.user(oid, &owner, "apikey.ctrl,org.get").await;
    let path = format!("/v1/orgs/{oid}/keys");
    platform.call(&user, "POST", &path, &[("perms", "org.get")]).await.ok();
    for perms in ["*", "secret.get"] {
        let answer = platform.call(&user, "POST", &path, &[("perms", perms)]).await;
        assert_eq!(answer.code(), "forbidden", "{perms}");
    }
    assert_eq!(
        platform.call(&owner, "POST", &path, &[("perms", " , ")]).await.code(),
        "bad-request"
    );
    assert_eq!(
        platform.call(&owner, "POST", &path, &[("perms", "a b")]).await.code(),
        "bad-request"
    );
}

#[tokio::test]
async fn a_token_ends_at_its_time_on_the_wall_clock() {
    let platform = Platform::new();
    let token = platform.operator().await;
    platform.clock.advance(Duration::from_secs(3_599));
    platform.get(&token, "/v1/who").await.ok();
    platform.clock.advance(Duration::from_secs(1));
    let expired = ("unauthenticated".to_owned(), "the token has expired".to_owned());
    assert_eq!(platform.get(&token, "/v1/who").await.fault(), expired);
}

#[tokio::test]
async fn a_token_that_we_did_not_sign_is_refused() {
    let platform = Platform::new();
    let token = platform.operator().await;
    let parts: Vec<&str> = token.split('.').collect();
    let (head, claims, signature) = (parts[0], parts[1], parts[2]);
    // {"alg":"none","kid":"1"} and {"alg":"HS512","kid":"1"}, and a key that is not in the ring.
    for forged in [
        format!("eyJhbGciOiJub25lIiwia2lkIjoiMSJ9.{claims}."),
        format!("eyJhbGciOiJub25lIiwia2lkIjoiMSJ9.{claims}.{signature}"),
        format!("eyJhbGciOiJIUzUxMiIsImtpZCI6IjEifQ.{claims}.{signature}"),
        format!("eyJhbGciOiJIUzI1NiIsImtpZCI6IjkifQ.{claims}.{signature}"),
        format!("{head}.{claims}x.{signature}"),
        format!("{head}.{claims}"),
        "x".repeat(annex_core::limits::TOKEN_BYTES_MAX + 1),
        String::from("..."),
    ] {
        let answer = platform.get(&forged, "/v1/who").await;
        let fault = ("unauthenticated".to_owned(), "the token is not valid".to_owned());
        assert_eq!(answer.fault(), fault, "{forged:.80}");
    }
    let basic = Request::get("/v1/who").header("authorization", "Basic x").body(Body::empty());
    assert_eq!(platform.send(basic.unwrap()).await.code(), "unauthenticated");
    let lower = Request::get("/v1/who").header("authorization", format!("bearer {token}"));
    platform.send(lower.body(Body::empty()).unwrap()).await.ok();
}

/// An extension's token for an organization that is subscribed to it.
async fn extension_token(platform: &Platform, oid: annex_core::ids::Oid) -> String {
    let name = ExtensionName::parse("ext").unwrap();
    let ports = &platform.app.ports;
    let definition: Definition = extensions::require_definition(ports, &name).await.unwrap();
    let install: Subscription =
        stored::load(ports, &keys::subscription(oid, &name)).await.unwrap().unwrap().0;
    auth::extension_token(ports, oid, &definition, &install, 3)
}

#[tokio::test]
async fn an_extension_acts_with_the_permissions_of_its_definition() {
    // LC-133, LC-134
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let token = extension_token(&platform, oid).await;
    let who = platform.get(&token, "/v1/who").await.ok();
    assert_eq!(who["ident"], "ext:ext");
    assert_eq!(who["perms"], serde_json::json!(["org.get"]));
    platform.get(&token, &format!("/v1/orgs/{oid}")).await.ok();
    assert_eq!(platform.get(&token, &format!("/v1/errors/{oid}")).await.code(), "forbidden");
    let caller = auth::verify(&platform.app.ports, &token).await.unwrap();
    let name = ExtensionName::parse("ext").unwrap();
    assert_eq!(caller.kind, auth::CallerKind::Extension { name, depth: 3 });
}

#[tokio::test]
async fn a_rekey_ends_an_extensions_tokens_and_an_unsubscribe_does_after_an_hour() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let path = format!("/v1/orgs/{oid}/subscription/extension/ext");
    let before = extension_token(&platform, oid).await;
    platform.call(&owner, "PATCH", &path, &[]).await.ok();
    assert_eq!(platform.get(&before, "/v1/who").await.code(), "unauthenticated");
    let after = extension_token(&platform, oid).await;
    platform.get(&after, "/v1/who").await.ok();

    platform.call(&owner, "DELETE", &path, &[]).await.ok();
    platform.get(&after, "/v1/who").await.ok();
    // Subscribed again, it is another install.
    platform.subscribe(&owner, oid, "ext").await.ok();
    assert_eq!(platform.get(&after, "/v1/who").await.code(), "unauthenticated");

    platform.call(&owner, "DELETE", &path, &[]).await.ok();
    platform.clock.advance(annex_core::limits::REMOVED_INSTALL_GRACE - Duration::from_secs(60));
    let name = ExtensionName::parse("ext").unwrap();
    let late = extension_token(&platform, oid).await;
    platform.get(&late, "/v1/who").await.ok();
    platform.clock.advance(Duration::from_secs(60));
    assert_eq!(platform.get(&late, "/v1/who").await.code(), "unauthenticated");
    let gone = platform.app.ports.store.get(&keys::subscription(oid, &name)).await.unwrap();
    assert_eq!(gone, None);
}
