//! Definitions and subscriptions.

use std::time::Duration;

use annex_core::ids::ExtensionName;
use annex_core::keys;
use serde_json::{Value, json};

use super::platform::Platform;

const PATH: &str = "/v1/extension/definition";

fn definition(change: Value) -> String {
    let mut body =
        json!({"name": "ext", "url": "https://e.example/hook", "secret": "s".repeat(32)});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[tokio::test]
async fn an_operator_registers_replaces_and_withdraws_an_extension() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    let full = json!({
        "description": "d", "permissions": ["org.get"], "required_extensions": ["base"],
        "flairs": ["segment"], "events": ["update"],
    });
    let made = platform.json(&operator, "POST", PATH, &definition(full)).await.ok();
    assert_eq!(made["url"], "https://e.example/hook");
    assert_eq!(made["required_extensions"], json!(["base"]));
    assert!(made.get("secret").is_none());
    let again = platform.json(&operator, "POST", PATH, &definition(json!({}))).await;
    assert_eq!(again.fault(), ("conflict".into(), "the extension ext exists already".into()));
    let list = platform.get(&operator, PATH).await.ok();
    assert_eq!(list, json!([made]));

    // A replacement empties what it leaves out, and keeps the secret.
    let body = r#"{"name":"ext","url":"https://f.example"}"#;
    let replaced = platform.json(&operator, "PUT", PATH, body).await.ok();
    assert_eq!((&replaced["url"], &replaced["flairs"]), (&json!("https://f.example"), &json!([])));
    assert_eq!(replaced["created_at"], made["created_at"]);
    let name = ExtensionName::parse("ext").unwrap();
    let stored =
        annex_core::extensions::require_definition(&platform.app.ports, &name).await.unwrap();
    let secret = annex_core::extensions::secret(&platform.app.ports, &stored).unwrap();
    assert_eq!(secret.as_str(), "s".repeat(32));

    let one = format!("{PATH}/ext");
    assert_eq!(platform.get(&operator, &one).await.ok(), replaced);
    platform.call(&operator, "DELETE", &one, &[]).await.ok();
    assert_eq!(platform.get(&operator, &one).await.code(), "not-found");
    assert_eq!(platform.call(&operator, "DELETE", &one, &[]).await.code(), "not-found");
    assert_eq!(platform.json(&operator, "PUT", PATH, body).await.code(), "not-found");
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_refused_by_name() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    for (change, text) in [
        (json!({"token": 1}), "unknown field `token`"),
        (json!({"name": "a b"}), "an extension name has"),
        // LC-011
        (json!({"url": "http://e.example"}), "url is refused: it is not https"),
        (json!({"secret": "s".repeat(31)}), "secret is shorter than 32 characters"),
        (json!({"secret": null}), "secret is missing"),
        (json!({"permissions": ["a b"]}), "a permission is"),
        (json!({"required_extensions": ["ext"]}), "an extension cannot require itself"),
    ] {
        let answer = platform.json(&operator, "POST", PATH, &definition(change)).await;
        let (code, error) = answer.fault();
        assert_eq!(code, "bad-request");
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(platform.json(&operator, "POST", PATH, "{").await.code(), "invalid-json");
    assert_eq!(platform.get(&operator, PATH).await.ok(), json!([]));
}

#[tokio::test]
async fn only_the_operator_writes_definitions_and_sees_where_they_go() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    let user = platform.user(oid, &owner, "*").await;
    for (method, path) in
        [("POST", PATH), ("PUT", PATH), ("DELETE", "/v1/extension/definition/ext")]
    {
        let answer = platform.json(&user, method, path, &definition(json!({}))).await;
        assert_eq!(answer.code(), "forbidden", "{method}");
    }
    let list = platform.get(&user, PATH).await.ok();
    assert_eq!(list[0]["name"], "ext");
    assert!(list[0].get("url").is_none());
}

/// The events that were sent, and to which queue.
fn sent(platform: &Platform) -> Vec<String> {
    platform.store.take_sent().into_iter().map(|message| message.body).collect()
}

#[tokio::test]
async fn a_subscription_and_its_end_each_send_one_event() {
    // LC-104, LC-105
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    let name = ExtensionName::parse("ext").unwrap();
    let index = keys::install(&name, oid);
    let path = format!("/v1/orgs/{oid}/subscription/extension/ext");
    assert_eq!(platform.call(&owner, "DELETE", &path, &[]).await.code(), "not-found");
    assert_eq!(platform.call(&owner, "PATCH", &path, &[]).await.code(), "not-found");

    assert_eq!(platform.subscribe(&owner, oid, "ext").await.ok(), json!({"success": true}));
    platform.subscribe(&owner, oid, "ext").await.ok();
    let first = sent(&platform);
    assert_eq!(first.len(), 1);
    assert!(first[0].contains("\"subscribe\""), "{first:?}");
    assert!(platform.app.ports.store.get(&index).await.unwrap().is_some());
    let list = format!("/v1/orgs/{oid}/subscriptions");
    assert_eq!(platform.get(&owner, &list).await.ok()["ext"]["name"], "ext");

    platform.call(&owner, "DELETE", &path, &[]).await.ok();
    let ended = sent(&platform);
    assert_eq!(ended.len(), 1);
    assert!(ended[0].contains("\"unsubscribe\""), "{ended:?}");
    // LC-107: the daily update reads this index.
    assert_eq!(platform.app.ports.store.get(&index).await.unwrap(), None);
    assert_eq!(platform.get(&owner, &list).await.ok(), json!({}));
    assert_eq!(platform.call(&owner, "DELETE", &path, &[]).await.code(), "not-found");

    platform.clock.advance(Duration::from_secs(1));
    platform.subscribe(&owner, oid, "ext").await.ok();
    let second = sent(&platform);
    assert_eq!(second.len(), 1);
    assert_ne!(second, first, "the next install has an event of its own");
}

#[tokio::test]
async fn what_an_extension_requires_is_subscribed_first_and_what_is_not_there_cannot_be() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("base", &[]).await;
    platform.register("ext", &["base"]).await;
    let refused = platform.subscribe(&owner, oid, "ext").await;
    let text = "ext requires a subscription to base first".to_owned();
    assert_eq!(refused.fault(), ("not-subscribed".into(), text));
    platform.subscribe(&owner, oid, "base").await.ok();
    platform.subscribe(&owner, oid, "ext").await.ok();
    assert_eq!(platform.subscribe(&owner, oid, "nope").await.code(), "not-found");
    assert_eq!(platform.subscribe(&owner, oid, "a%20b").await.code(), "bad-request");
    let user = platform.user(oid, &owner, "ext.request").await;
    assert_eq!(platform.subscribe(&user, oid, "base").await.code(), "forbidden");
}

#[tokio::test]
async fn an_extension_that_was_withdrawn_can_be_left_without_an_event() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let operator = platform.operator().await;
    platform.call(&operator, "DELETE", &format!("{PATH}/ext"), &[]).await.ok();
    sent(&platform);
    let path = format!("/v1/orgs/{oid}/subscription/extension/ext");
    platform.call(&owner, "DELETE", &path, &[]).await.ok();
    assert_eq!(sent(&platform), [""; 0]);
}
