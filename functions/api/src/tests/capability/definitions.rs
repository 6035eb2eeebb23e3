//! Registering and withdrawing capability extensions, and their developer tokens.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DEFINITIONS, Scene, code, refusal};

fn definition(change: Value) -> String {
    let mut body = json!({
        "contract": "chaster", "name": "dice", "url": "https://dice.example/hook",
        "webhook": {"username": "annex", "password": "p4ssw0rd"}, "description": "rolls",
    });
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[tokio::test]
async fn an_operator_registers_shows_lists_replaces_and_withdraws_an_extension() {
    let scene = Scene::new().await;
    let platform = &scene.platform;
    let operator = platform.operator().await;
    platform.register("ext", &[]).await;
    let made = platform.json(&operator, "POST", DEFINITIONS, &definition(json!({}))).await.ok();
    let token = made["developer_token"].as_str().unwrap();
    assert!(token.starts_with("axd.dice.") && token.len() == 9 + 43, "{token}");
    let shown = platform.get(&operator, &format!("{DEFINITIONS}/dice")).await.ok();
    let expected = json!({
        "contract": "chaster", "name": "dice", "url": "https://dice.example/hook",
        "webhook": {"username": "annex"}, "description": "rolls", "platform_owned": false,
        "commands": [], "queries": [], "events": [],
        "created_at": made["created_at"], "updated_at": made["updated_at"],
    });
    assert_eq!(shown, expected);
    let list = platform.get(&operator, DEFINITIONS).await.ok();
    assert_eq!((list[0]["name"].as_str(), &list[1]), (Some("ext"), &expected));
    // Others see neither where it goes nor as whom.
    let seen = platform.get(&scene.owner, &format!("{DEFINITIONS}/dice")).await.ok();
    assert!(seen.get("url").is_none() && seen.get("webhook").is_none(), "{seen}");
    // Nothing of the token or the password lies in the store as it is.
    for (key, item) in platform.store.items() {
        let text = String::from_utf8_lossy(&item.data);
        assert!(!text.contains("p4ssw0rd") && !text.contains(token), "{key:?}");
    }

    let body = r#"{"contract":"chaster","name":"dice","url":"https://d.example","webhook":{"username":"annex"}}"#;
    let replaced = platform.json(&operator, "PUT", DEFINITIONS, body).await.ok();
    assert_eq!(
        (&replaced["url"], &replaced["description"]),
        (&json!("https://d.example"), &json!(""))
    );
    assert!(replaced.get("developer_token").is_none());
    let search = "/api/extensions/sessions/search";
    platform.json(token, "POST", search, "{}").await.ok();

    let one = format!("{DEFINITIONS}/dice");
    platform.call(&operator, "DELETE", &one, &[]).await.ok();
    assert_eq!(platform.get(&operator, &one).await.code(), "not-found");
    assert_eq!(platform.call(&operator, "DELETE", &one, &[]).await.code(), "not-found");
    assert_eq!(platform.json(&operator, "PUT", DEFINITIONS, body).await.code(), "not-found");
}

#[tokio::test]
async fn a_name_is_taken_by_an_extension_of_either_kind() {
    let scene = Scene::new().await;
    let operator = scene.platform.operator().await;
    scene.platform.register("ext", &[]).await;
    scene.register("dice").await;
    let webhook = json!({"name": "dice", "url": "https://e.example", "secret": "s".repeat(32)});
    let named = json!({"contract": "limacharlie", "name": "other", "url": "https://e.example", "secret": "s".repeat(32)});
    for (body, code) in [
        (definition(json!({"name": "ext"})), Some("conflict")),
        (definition(json!({})), Some("conflict")),
        (webhook.to_string(), Some("conflict")),
        (named.to_string(), None),
    ] {
        let answer = scene.platform.json(&operator, "POST", DEFINITIONS, &body).await;
        assert_eq!((answer.status != 200).then(|| answer.code()).as_deref(), code, "{body}");
    }
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_refused_by_name() {
    let scene = Scene::new().await;
    let operator = scene.platform.operator().await;
    for (change, text) in [
        (json!({"secret": "x"}), "unknown field `secret`"),
        (json!({"contract": "switchboard"}), "contract is neither"),
        (json!({"name": "Dice"}), "a slug has"),
        // CH-010
        (json!({"name": "lock"}), "a slug has"),
        (json!({"url": "http://e.example"}), "url is refused: it is not https"),
        (json!({"webhook": {"username": "a:b", "password": "p"}}), "webhook.username"),
        (json!({"webhook": {"username": "", "password": "p"}}), "webhook.username"),
        (json!({"webhook": {"username": "a", "password": ""}}), "webhook.password"),
        (json!({"webhook": {"username": "a"}}), "webhook.password is missing"),
        (json!({"webhook": {"username": "a\n", "password": "p"}}), "webhook.username"),
    ] {
        let answer = scene.platform.json(&operator, "POST", DEFINITIONS, &definition(change)).await;
        let (code, error) = answer.fault();
        assert_eq!(code, "bad-request");
        assert!(error.contains(text), "{error}");
    }
    let user = scene.platform.json(&scene.owner, "POST", DEFINITIONS, &definition(json!({}))).await;
    assert_eq!(user.code(), "forbidden");
    assert_eq!(scene.platform.get(&operator, DEFINITIONS).await.ok(), json!([]));
}

#[tokio::test]
async fn a_developer_token_counts_until_it_is_replaced_and_for_its_own_extension_only() {
    let scene = Scene::new().await;
    let platform = &scene.platform;
    let (dice, cards) = (scene.register("dice").await, scene.register("cards").await);
    let search = async |token: &str| {
        platform.json(token, "POST", "/api/extensions/sessions/search", "{}").await
    };
    assert_eq!(search(&dice).await.ok(), json!({"count": 0, "hasMore": false, "results": []}));
    let operator = platform.operator().await;
    let mixed = cards.replacen("cards", "dice", 1);
    let short = &dice[..dice.len() - 1];
    for token in [mixed.as_str(), short, "axd.none.x", "x", &operator, &scene.owner] {
        let answer = search(token).await;
        assert_eq!(
            (answer.status.as_u16(), code(&answer)),
            (401, "unauthorized".into()),
            "{token}"
        );
    }
    let path = format!("{DEFINITIONS}/dice/developer-token");
    assert_eq!(platform.call(&scene.owner, "POST", &path, &[]).await.code(), "forbidden");
    let made = platform.call(&operator, "POST", &path, &[]).await.ok();
    platform.clock.advance(Duration::from_secs(60));
    search(made["developer_token"].as_str().unwrap()).await.ok();
    assert_eq!(code(&search(&dice).await), "unauthorized");
    search(&cards).await.ok();
    let unknown = format!("{DEFINITIONS}/none/developer-token");
    assert_eq!(platform.call(&operator, "POST", &unknown, &[]).await.code(), "not-found");
}

#[tokio::test]
async fn whatever_goes_wrong_below_the_contracts_prefix_has_its_shape() {
    // CH-002 to CH-006
    let scene = Scene::new().await;
    let token = scene.register("dice").await;
    let none = format!("/api/extensions/sessions/{}", "0".repeat(32));
    for (method, path, body, expected) in [
        ("GET", "/api/extensions/nope", "", (404, "not-found")),
        ("DELETE", "/api/extensions/sessions/search", "", (405, "method-not-allowed")),
        ("POST", "/api/extensions/sessions/search", "{", (400, "invalid-json")),
        ("POST", "/api/extensions/sessions/search", "[]", (400, "invalid-json")),
        ("POST", "/api/extensions/sessions/search", r#"{"limit":0}"#, (400, "bad-request")),
        ("POST", "/api/extensions/sessions/search", r#"{"status":"open"}"#, (400, "bad-request")),
        ("POST", "/api/extensions/sessions/search", r#"{"extensionSlug":"x"}"#, (404, "not-found")),
        (
            "POST",
            "/api/extensions/sessions/search",
            r#"{"paginationLastId":"x"}"#,
            (400, "bad-request"),
        ),
        ("GET", none.as_str(), "", (404, "not-found")),
        ("GET", "/api/extensions/sessions/%ff", "", (400, "bad-request")),
        ("GET", "/api/extensions/sessions/x%23y", "", (404, "not-found")),
    ] {
        let answer = scene.platform.json(&token, method, path, body).await;
        let (status, code, details) = refusal(&answer);
        assert_eq!(
            (status, code.as_str(), details),
            (expected.0, expected.1, None),
            "{path} {body}"
        );
    }
}
