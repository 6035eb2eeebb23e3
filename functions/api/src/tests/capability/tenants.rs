//! What is kept of locks goes with its organization, and is exported with it; passwords outlive the keys that sealed them.

use serde_json::{Value, json};

use super::super::deletion::drain;
use super::{DEFINITIONS, Scene};

/// An organization with a session whose extension has no endpoint, and a line of its own.
async fn filled() -> (Scene, String) {
    let scene = Scene::new().await;
    let operator = scene.platform.operator().await;
    let body = r#"{"contract":"chaster","name":"dice"}"#;
    let made = scene.platform.json(&operator, "POST", DEFINITIONS, body).await.ok();
    let session = scene.session("l-1", &json!({"extension": "dice", "config": {"n": 1}})).await;
    let at = super::Installed {
        token: made["developer_token"].as_str().unwrap().to_owned(),
        session: session.json()["sessionId"].as_str().unwrap().to_owned(),
    };
    scene.ask(&at, "PATCH", "", r#"{"data":{"z":1.50}}"#).await.ok();
    scene.ask(&at, "POST", "/logs/custom", r#"{"title":"hello"}"#).await;
    (scene, at.session)
}

#[tokio::test]
async fn nothing_of_the_locks_of_a_deleted_organization_is_left() {
    let (scene, session) = filled().await;
    let holds = |scene: &Scene| {
        let items = scene.platform.store.items().into_iter();
        let text = scene.oid.to_string();
        items
            .filter(|(key, item)| {
                key.partition.contains(&text)
                    || key.sort.contains(&session)
                    || String::from_utf8_lossy(&item.data).contains(&text)
            })
            .count()
    };
    assert!(4 < holds(&scene));
    let operator = scene.platform.operator().await;
    let path = format!("/v1/orgs/{}", scene.oid);
    scene.platform.call(&operator, "DELETE", &path, &[("confirm", "demo")]).await.ok();
    // From now on it is nobody's.
    let token = scene.register("cards").await;
    let search = r#"{"status":"all"}"#;
    let found =
        scene.platform.json(&token, "POST", "/api/extensions/sessions/search", search).await.ok();
    assert_eq!(found["count"], 0);
    drain(&scene.platform).await;
    assert_eq!(holds(&scene), 0);
}

#[tokio::test]
async fn an_export_holds_locks_sessions_and_lines_byte_for_byte() {
    let (scene, session) = filled().await;
    let (mut items, mut text, mut cursor) = (Vec::new(), String::new(), String::new());
    loop {
        let path = format!("/v1/orgs/{}/export?cursor={cursor}", scene.oid);
        let answer = scene.platform.get(&scene.owner, &path).await;
        let page = answer.ok();
        text.push_str(&answer.text);
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let of =
        |kind: &str| -> Vec<&Value> { items.iter().filter(|item| item["type"] == kind).collect() };
    assert_eq!((of("lock").len(), of("session").len(), of("history_line").len()), (1, 1, 1));
    assert_eq!(of("lock")[0]["record"]["sessions"], json!({"dice": session}));
    assert_eq!(of("session")[0]["lock"], "l-1");
    assert_eq!(of("history_line")[0]["record"]["title"], "hello");
    assert!(text.contains(r#""data":{"z":1.50}"#));
}

#[tokio::test]
async fn passwords_of_extensions_are_sealed_anew_with_the_ring() {
    let scene = Scene::new().await;
    scene.register("dice").await;
    let operator = scene.platform.operator().await;
    let walk = async |dry_run: &str| {
        let (mut resealed, mut remaining, mut cursor) = (0, 0, String::new());
        loop {
            let form = [("cursor", cursor.as_str()), ("dry_run", dry_run)];
            let page =
                scene.platform.call(&operator, "POST", "/v1/keyring/reseal", &form).await.ok();
            resealed += page["resealed"].as_u64().unwrap();
            remaining += page["remaining_by_key"].as_object().unwrap().len();
            match page["next"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => return (resealed, remaining),
            }
        }
    };
    scene.platform.keyring.rotate();
    assert_eq!(walk("true").await, (0, 1));
    assert_eq!(walk("false").await, (1, 0));
    scene.platform.keyring.retire();
    let slug = annex_core::capability::id::Slug::parse("dice").unwrap();
    let ports = &scene.platform.app.ports;
    let dice = annex_core::capability::extensions::require(ports, &slug).await.unwrap();
    let found = annex_core::capability::extensions::credentials(ports, &dice).unwrap().unwrap();
    assert_eq!(found.as_str(), "annex:p4ssw0rd");
}
