//! Rotation of an extension's shared secret.

use std::time::Duration;

use annex_core::extensions::{previous_secret, require_definition, secret};
use annex_core::ids::ExtensionName;
use serde_json::{Value, json};

use super::platform::{Answer, Platform};

const DEFINITION: &str = "/v1/extension/definition";
const PATH: &str = "/v1/extension/definition/ext/rotate-secret";

/// The shared secret of a letter.
fn of(letter: &str) -> String {
    letter.repeat(32)
}

async fn ready() -> (Platform, String) {
    let platform = Platform::new();
    // Its secret is that of `s`.
    platform.register("ext", &[]).await;
    let operator = platform.operator().await;
    (platform, operator)
}

async fn rotate(
    platform: &Platform,
    operator: &str,
    letter: &str,
    more: &[(&str, &str)],
) -> Answer {
    let secret = of(letter);
    let fields: Vec<_> = [("secret", secret.as_str())].iter().chain(more).copied().collect();
    platform.call(operator, "POST", PATH, &fields).await
}

/// The letters of the current secret and of the one before.
async fn secrets(platform: &Platform) -> (String, Option<String>) {
    let ports = &platform.app.ports;
    let name = ExtensionName::parse("ext").unwrap();
    let definition = require_definition(ports, &name).await.unwrap();
    let letter = |secret: &str| secret[..1].to_owned();
    let previous = previous_secret(ports, &definition).unwrap();
    (letter(&secret(ports, &definition).unwrap()), previous.map(|(secret, _)| letter(&secret)))
}

#[track_caller]
fn until(definition: &Value) -> &str {
    definition["previous_secret_until"].as_str().unwrap()
}

#[tokio::test]
async fn the_old_secret_stays_for_a_day_unless_told_and_for_30_days_at_most() {
    let (platform, operator) = ready().await;
    let made = rotate(&platform, &operator, "a", &[]).await.ok();
    assert_eq!(until(&made), "2026-03-05T05:06:07.000Z");
    assert_eq!(secrets(&platform).await, ("a".into(), Some("s".into())));
    platform.clock.advance(Duration::from_millis(86_400_000 - 1));
    assert_eq!(secrets(&platform).await.1, Some("s".into()));
    platform.clock.advance(Duration::from_millis(1));
    assert_eq!(secrets(&platform).await, ("a".into(), None));
    let operator = platform.operator().await;
    let shown = platform.get(&operator, &format!("{DEFINITION}/ext")).await.ok();
    assert!(shown.get("previous_secret_until").is_none());

    let made = rotate(&platform, &operator, "b", &[("overlap", "2592000")]).await.ok();
    assert_eq!(until(&made), "2026-04-04T05:06:07.000Z");
    platform.call(&operator, "DELETE", PATH, &[]).await.ok();
    for overlap in ["2592001", "-1", "1.5", "24h", "", "99999999999999999999"] {
        let refused = rotate(&platform, &operator, "c", &[("overlap", overlap)]).await;
        assert_eq!(refused.code(), "bad-request", "{overlap}");
    }
    let made = rotate(&platform, &operator, "c", &[("overlap", "0")]).await.ok();
    assert!(made.get("previous_secret_until").is_none());
    assert_eq!(secrets(&platform).await, ("c".into(), None));
}

#[tokio::test]
async fn a_second_rotation_waits_for_the_first_unless_it_is_forced_or_the_first_is_finished() {
    let (platform, operator) = ready().await;
    rotate(&platform, &operator, "a", &[]).await.ok();
    let text = "the secret before verifies until 2026-03-05T05:06:07.000Z".to_owned();
    for more in [&[][..], &[("force", "false")]] {
        let refused = rotate(&platform, &operator, "b", more).await;
        assert_eq!(refused.fault(), ("rotation-under-way".into(), text.clone()));
    }
    assert_eq!(secrets(&platform).await, ("a".into(), Some("s".into())));
    rotate(&platform, &operator, "b", &[("force", "true")]).await.ok();
    assert_eq!(secrets(&platform).await, ("b".into(), Some("a".into())));
    // Undone: the secret of before is the current one again.
    rotate(&platform, &operator, "a", &[("force", "true")]).await.ok();
    assert_eq!(secrets(&platform).await, ("a".into(), Some("b".into())));
    for _ in 0..2 {
        let made = platform.call(&operator, "DELETE", PATH, &[]).await.ok();
        assert!(made.get("previous_secret_until").is_none());
        assert_eq!(secrets(&platform).await, ("a".into(), None));
    }
    rotate(&platform, &operator, "b", &[]).await.ok();
}

#[tokio::test]
async fn a_replacement_keeps_both_secrets_and_one_with_a_secret_ends_the_rotation() {
    let (platform, operator) = ready().await;
    rotate(&platform, &operator, "a", &[]).await.ok();
    let mut body = json!({"name": "ext", "url": "https://f.example"});
    let made = platform.json(&operator, "PUT", DEFINITION, &body.to_string()).await.ok();
    assert_eq!(until(&made), "2026-03-05T05:06:07.000Z");
    assert_eq!(secrets(&platform).await, ("a".into(), Some("s".into())));
    body["secret"] = json!(of("b"));
    platform.json(&operator, "PUT", DEFINITION, &body.to_string()).await.ok();
    assert_eq!(secrets(&platform).await, ("b".into(), None));
}

#[tokio::test]
async fn what_has_ended_is_dropped_at_the_next_write() {
    let (platform, operator) = ready().await;
    rotate(&platform, &operator, "a", &[("overlap", "1")]).await.ok();
    platform.clock.advance(Duration::from_secs(1));
    let body = r#"{"name":"ext","url":"https://f.example"}"#;
    platform.json(&operator, "PUT", DEFINITION, body).await.ok();
    let key = annex_core::keys::definition(&ExtensionName::parse("ext").unwrap());
    let item = platform.app.ports.store.get(&key).await.unwrap().unwrap();
    assert!(!String::from_utf8(item.data).unwrap().contains("previous_secret"));
}

#[tokio::test]
async fn only_the_operator_rotates_and_nobody_is_shown_a_secret() {
    let (platform, operator) = ready().await;
    let (oid, owner) = platform.org().await;
    let user = platform.user(oid, &owner, "*").await;
    assert_eq!(rotate(&platform, &user, "a", &[]).await.code(), "forbidden");
    assert_eq!(platform.call(&user, "DELETE", PATH, &[]).await.code(), "forbidden");
    let refused = rotate(&platform, &operator, "s", &[]).await;
    assert_eq!(refused.fault(), ("bad-request".into(), "this is the secret already".into()));
    for secret in ["", "short", &"a".repeat(31), &"a".repeat(2_049)] {
        let refused = platform.call(&operator, "POST", PATH, &[("secret", secret)]).await;
        assert_eq!(refused.code(), "bad-request", "{}", secret.len());
    }
    assert_eq!(platform.call(&operator, "POST", PATH, &[]).await.code(), "bad-request");
    // What stands in a URL ends up in logs: it is not read.
    let in_query = format!("{PATH}?secret={}", of("a"));
    assert_eq!(platform.call(&operator, "POST", &in_query, &[]).await.code(), "bad-request");
    let other = PATH.replace("ext/", "nope/");
    for (method, fields) in [("POST", vec![("secret", "a".repeat(32))]), ("DELETE", vec![])] {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(platform.call(&operator, method, &other, &fields).await.code(), "not-found");
    }

    let body = json!({"secret": of("a"), "overlap": 60, "force": true}).to_string();
    let made = platform.json(&operator, "POST", PATH, &body).await;
    assert_eq!(until(&made.ok()), "2026-03-04T05:07:07.000Z");
    let seen = platform.get(&user, &format!("{DEFINITION}/ext")).await;
    assert!(seen.ok().get("previous_secret_until").is_none());
    let list = platform.get(&operator, DEFINITION).await;
    for answer in [&made, &seen, &list] {
        assert!(!answer.text.contains(&of("a")) && !answer.text.contains(&of("s")));
    }
}
