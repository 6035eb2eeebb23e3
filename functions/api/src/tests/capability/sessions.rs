//! Sessions on locks, as organizations and extensions see them.

use annex_core::limits::{SESSION_OBJECT_BYTES_MAX, SESSIONS_PER_LOCK_MAX};
use serde_json::{Value, json};

use super::{Installed, Scene, code};

async fn search(scene: &Scene, at: &Installed, body: &Value) -> Value {
    let path = "/api/extensions/sessions/search";
    scene.platform.json(&at.token, "POST", path, &body.to_string()).await.ok()
}

fn ids(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap().iter();
    results.map(|session| session["sessionId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_extension_has_one_session_on_a_lock_and_reads_it_by_its_id() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let again = scene.session("l-1", &json!({"extension": "dice"})).await;
    assert_eq!(again.code(), "conflict");
    let cards = scene.install("cards", "l-1").await;
    let found = scene.ask(&dice, "GET", "", "").await.ok();
    let session = &found["session"];
    assert_eq!(session["slug"], "dice");
    assert_eq!((&session["config"], &session["data"]), (&json!({}), &json!({})));
    assert_eq!(session["lock"]["_id"], "l-1");
    assert_eq!(session["lock"]["status"], "locked");
    // Another extension's session is none, and so is one that was removed.
    let foreign = Installed { token: cards.token.clone(), session: dice.session.clone() };
    assert_eq!(code(&scene.ask(&foreign, "GET", "", "").await), "not-found");
    let path = format!("{}/sessions/{}", scene.lock_path("l-1"), dice.session);
    scene.platform.call(&scene.owner, "DELETE", &path, &[]).await.ok();
    assert_eq!(scene.platform.call(&scene.owner, "DELETE", &path, &[]).await.code(), "not-found");
    assert_eq!(code(&scene.ask(&dice, "GET", "", "").await), "not-found");
    let list = format!("{}/sessions", scene.lock_path("l-1"));
    let left = scene.platform.get(&scene.owner, &list).await.ok();
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(left["sessions"][0]["sessionId"], cards.session.as_str());
    // Installed anew it is another session.
    let made = scene.session("l-1", &json!({"extension": "dice", "config": {"a": 1}})).await.json();
    assert_ne!(made["sessionId"], dice.session.as_str());
    assert_eq!(made["lockId"], "l-1");
}

#[tokio::test]
async fn a_session_that_is_wrong_is_refused_by_name() {
    let scene = Scene::new().await;
    scene.register("dice").await;
    for (body, code) in [
        (json!({}), "bad-request"),
        (json!({"extension": "none"}), "not-found"),
        (json!({"extension": "No"}), "bad-request"),
        (json!({"extension": "dice", "config": []}), "bad-request"),
        (json!({"extension": "dice", "config": null}), "bad-request"),
        (json!({"extension": "dice", "hasKeyholder": 1}), "bad-request"),
        (json!({"extension": "dice", "data": {}}), "bad-request"),
    ] {
        assert_eq!(scene.session("l-1", &body).await.code(), code, "{body}");
    }
    assert_eq!(scene.session("l.1", &json!({"extension": "dice"})).await.code(), "bad-request");
    let path = scene.lock_path("l-1");
    assert_eq!(scene.platform.get(&scene.owner, &path).await.code(), "not-found");
    for n in 0..=SESSIONS_PER_LOCK_MAX {
        scene.register(&format!("e{n}")).await;
        let made = scene.session("l-2", &json!({"extension": format!("e{n}")})).await;
        let fits = n < SESSIONS_PER_LOCK_MAX;
        assert_eq!(made.status.as_u16(), if fits { 201 } else { 400 }, "{n}");
    }
}

#[tokio::test]
async fn permissions_and_organizations_keep_locks_apart() {
    let scene = Scene::new().await;
    scene.install("dice", "l-1").await;
    let (_, stranger) = scene.platform.org().await;
    let reader = scene.platform.user(scene.oid, &scene.owner, "ext.list").await;
    let lock = scene.lock_path("l-1");
    let sessions = format!("{lock}/sessions");
    let body = r#"{"extension":"dice"}"#;
    for (token, method, path, expected) in [
        (&stranger, "GET", &lock, 403),
        (&stranger, "POST", &sessions, 403),
        (&reader, "GET", &lock, 200),
        (&reader, "GET", &sessions, 200),
        (&reader, "GET", &format!("{lock}/history"), 403),
        (&reader, "PATCH", &lock, 403),
        (&reader, "POST", &sessions, 403),
        (&reader, "DELETE", &format!("{sessions}/x"), 403),
    ] {
        let answer = scene.platform.json(token, method, path, body).await;
        assert_eq!(answer.status.as_u16(), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn what_an_extension_keeps_in_its_session_comes_back_byte_for_byte() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let odd = r#"{ "z":1.0e5,  "a":[1,2.50], "\u00e9":"\u0041", "a":null }"#;
    let patch = format!(r#"{{"data":{odd},"metadata":{{"k":1}}}}"#);
    let answer = scene.ask(&dice, "PATCH", "", &patch).await;
    assert_eq!(answer.status, 200);
    let read = scene.ask(&dice, "GET", "", "").await;
    assert!(read.text.contains(&format!(r#""data":{odd},"#)), "{}", read.text);
    // What is left out stays.
    scene.ask(&dice, "PATCH", "", r#"{"config":{"c":2}}"#).await.ok();
    let session = scene.ask(&dice, "GET", "", "").await.ok()["session"].clone();
    assert_eq!((&session["config"], &session["metadata"]), (&json!({"c": 2}), &json!({"k": 1})));
    let sized = |bytes: usize| format!(r#"{{"data":{{"t":"{}"}}}}"#, "x".repeat(bytes - 8));
    scene.ask(&dice, "PATCH", "", &sized(SESSION_OBJECT_BYTES_MAX)).await.ok();
    let over = scene.ask(&dice, "PATCH", "", &sized(SESSION_OBJECT_BYTES_MAX + 1)).await;
    assert_eq!((over.status.as_u16(), code(&over).as_str()), (413, "too-large"));
    for bad in
        [r#"{"data":null}"#, r#"{"data":[]}"#, r#"{"data":"x"}"#, r#"{"config":{}, "config":{}}"#]
    {
        assert_eq!(scene.ask(&dice, "PATCH", "", bad).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_search_pages_through_the_sessions_of_an_extension_newest_first() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-0").await;
    scene.install("cards", "l-0").await;
    let mut made = vec![dice.session.clone()];
    for n in 1..5 {
        let answer = scene.session(&format!("l-{n}"), &json!({"extension": "dice"})).await;
        made.push(answer.json()["sessionId"].as_str().unwrap().to_owned());
    }
    made.reverse();
    let all: Vec<&str> = made.iter().map(String::as_str).collect();
    let found = search(&scene, &dice, &json!({"extensionSlug": "dice"})).await;
    assert_eq!(
        (ids(&found), &found["hasMore"], &found["count"]),
        (all.clone(), &json!(false), &json!(5))
    );
    let first = search(&scene, &dice, &json!({"limit": 2})).await;
    assert_eq!((ids(&first), &first["hasMore"]), (all[..2].to_vec(), &json!(true)));
    let last = &first["results"][1]["paginationId"];
    let next = search(&scene, &dice, &json!({"limit": 3, "paginationLastId": last})).await;
    assert_eq!((ids(&next), &next["hasMore"]), (all[2..].to_vec(), &json!(false)));

    // The status is that of the lock.
    scene.patch_lock("l-1", &json!({"status": "unlocked"})).await.ok();
    scene.patch_lock("l-2", &json!({"status": "deserted"})).await.ok();
    for (status, count) in [("locked", 3), ("unlocked", 1), ("deserted", 1), ("all", 5)] {
        let found = search(&scene, &dice, &json!({"status": status})).await;
        assert_eq!(found["count"], count, "{status}");
    }
    assert_eq!(search(&scene, &dice, &json!({})).await["count"], 3);
    scene.patch_lock("l-1", &json!({"status": "locked"})).await.ok();
    assert_eq!(search(&scene, &dice, &json!({})).await["count"], 4);
}

#[tokio::test]
async fn a_lock_changes_and_its_history_says_so() {
    let scene = Scene::new().await;
    scene.install("dice", "l-1").await;
    let changed =
        scene.patch_lock("l-1", &json!({"status": "unlocked", "hasKeyholder": true})).await;
    let changed = changed.ok();
    assert_eq!((&changed["status"], &changed["hasKeyholder"]), (&json!("unlocked"), &json!(true)));
    assert_eq!(scene.platform.get(&scene.owner, &scene.lock_path("l-1")).await.ok(), changed);
    scene.patch_lock("l-1", &json!({"status": "unlocked"})).await.ok();
    let lines: Vec<String> = scene.history("l-1").await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(lines, ["keyholder_added", "unlocked"]);
    for bad in [json!({"status": "open"}), json!({"frozen": true}), json!({"hasKeyholder": "x"})] {
        assert_eq!(scene.patch_lock("l-1", &bad).await.code(), "bad-request", "{bad}");
    }
    assert_eq!(scene.patch_lock("l-9", &json!({})).await.code(), "not-found");
}

#[tokio::test]
async fn an_availability_push_narrows_and_one_that_widens_changes_nothing() {
    // CH-031, CH-032
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let push = async |body: &str| scene.ask(&dice, "PUT", "/availability", body).await;
    push(r#"{"commands":{}}"#).await.ok();
    assert_eq!(
        code(&push(r#"{"commands":{"dice.roll":{"available":true}}}"#).await),
        "unknown-command"
    );
    assert_eq!(
        code(&push(r#"{"commands":{"no id":{"available":true}}}"#).await),
        "invalid-command-id"
    );
    assert_eq!(code(&push("{}").await), "bad-request");
}
