//! Lock actions, the platform's own operations, and the lines that they leave.

use serde_json::{Value, json};

use super::{Scene, code, refusal};

#[tokio::test]
async fn each_lock_action_is_checked_and_leaves_a_line() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let act = async |name: &str, params: Value| {
        let body = json!({"action": {"name": name, "params": params}});
        scene.ask(&dice, "POST", "/action", &body.to_string()).await
    };
    for (name, params, kind) in [
        ("add_time", json!(3_600), "time_added"),
        ("remove_time", json!(1), "time_removed"),
        ("freeze", Value::Null, "lock_frozen"),
        ("toggle_freeze", Value::Null, "lock_unfrozen"),
        ("toggle_freeze", Value::Null, "lock_frozen"),
        ("unfreeze", Value::Null, "lock_unfrozen"),
        ("pillory", json!({"duration": 900, "reason": "late"}), "pillory"),
        ("set_display_remaining_time", json!(false), "display_remaining_time"),
    ] {
        let answer = act(name, params).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (201, ""), "{name}");
        assert_eq!(scene.history("l-1").await[0].0, kind, "{name}");
    }
    act("freeze", Value::Null).await;
    let lock = scene.platform.get(&scene.owner, &scene.lock_path("l-1")).await.ok();
    assert_eq!(lock["isFrozen"], true);
    for (name, params) in [
        ("add_time", Value::Null),
        ("add_time", json!(0)),
        ("add_time", json!("60")),
        ("add_time", json!(1e300)),
        ("remove_time", json!(-1)),
        ("pillory", json!({"reason": "late"})),
        ("pillory", json!(900)),
        ("set_display_remaining_time", json!("true")),
        ("open", Value::Null),
    ] {
        assert_eq!(code(&act(name, params.clone()).await), "bad-request", "{name} {params}");
    }
    assert_eq!(scene.history("l-1").await.len(), 9);
    assert_eq!(code(&scene.ask(&dice, "POST", "/action", "{}").await), "bad-request");
}

#[tokio::test]
async fn each_operation_of_the_platform_is_checked_and_leaves_a_line() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let task = json!({"task": {"task": "dishes", "points": 3}, "actor": "wearer"});
    let habit = json!({"habitName": "late-1"});
    let actor = json!({"actor": "extension"});
    for (path, body, kind) in [
        ("/tasks/assign", &task, "task_assigned"),
        ("/tasks/start-timer", &json!({}), "task_timer_started"),
        ("/tasks/complete", &json!({"actor": "wearer", "isCompleted": true}), "task_completed"),
        ("/tasks/complete", &json!({"actor": "wearer", "isCompleted": false}), "task_failed"),
        ("/penalties/increment", &json!({"habitName": "a", "count": 2}), "penalty_incremented"),
        ("/penalties/time-limit/create", &habit, "penalty_time_limit_created"),
        ("/penalties/time-limit/cancel", &habit, "penalty_time_limit_cancelled"),
        ("/temporary-opening/open", &actor, "temporary_opening_opened"),
        ("/verification-picture/request", &actor, "verification_picture_requested"),
    ] {
        let answer = scene.ask(&dice, "POST", path, &body.to_string()).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (201, ""), "{path}");
        assert_eq!(scene.history("l-1").await[0].0, kind, "{path}");
    }
    for (path, body) in [
        ("/tasks/assign", json!({"task": {"task": "dishes", "points": 3}})),
        ("/tasks/assign", json!({"task": {"points": 3}, "actor": "wearer"})),
        ("/tasks/assign", json!({"task": {"task": "dishes"}, "actor": "wearer"})),
        ("/tasks/complete", json!({"actor": "wearer"})),
        ("/penalties/increment", json!({"habitName": "A"})),
        ("/penalties/increment", json!({"habitName": "h".repeat(21)})),
        ("/penalties/increment", json!({"habitName": "h", "count": 0})),
        ("/penalties/time-limit/create", json!({})),
        ("/temporary-opening/open", json!({"actor": "owner"})),
        ("/verification-picture/request", json!({})),
    ] {
        let answer = scene.ask(&dice, "POST", path, &body.to_string()).await;
        assert_eq!(code(&answer), "bad-request", "{path} {body}");
    }
    assert_eq!(scene.history("l-1").await.len(), 9);
}

#[tokio::test]
async fn a_keyholder_acts_on_a_lock_that_has_one_and_nobody_on_a_lock_that_ended() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let open = async || {
        let body = r#"{"actor":"keyholder"}"#;
        scene.ask(&dice, "POST", "/temporary-opening/open", body).await
    };
    // CH-024
    assert_eq!(code(&open().await), "invalid-actor");
    scene.patch_lock("l-1", &json!({"hasKeyholder": true})).await.ok();
    assert_eq!(open().await.status, 201);
    // CH-020, CH-021
    for status in ["unlocked", "deserted"] {
        scene.patch_lock("l-1", &json!({"status": status})).await.ok();
        let expected =
            (422, "command-unavailable".into(), Some(json!({"reason": "lock-not-active"})));
        assert_eq!(refusal(&open().await), expected);
        let act = scene.ask(&dice, "POST", "/action", r#"{"action":{"name":"freeze"}}"#).await;
        assert_eq!(refusal(&act), expected);
    }
    scene.patch_lock("l-1", &json!({"status": "locked"})).await.ok();
    assert_eq!(open().await.status, 201);
}

#[tokio::test]
async fn a_pillory_is_shown_until_it_ends() {
    let scene = Scene::new().await;
    let dice = scene.install("dice", "l-1").await;
    let status =
        async || scene.ask(&dice, "GET", "/pillory/status", "").await.ok()["votes"].clone();
    assert_eq!(status().await, json!([]));
    let body = r#"{"action":{"name":"pillory","params":{"duration":900,"reason":"late"}}}"#;
    scene.ask(&dice, "POST", "/action", body).await;
    let votes = status().await;
    assert_eq!((votes.as_array().unwrap().len(), &votes[0]["reason"]), (1, &json!("late")));
    assert_eq!((&votes[0]["nbVotes"], &votes[0]["totalDurationAdded"]), (&json!(0), &json!(0)));
    scene.platform.clock.advance(std::time::Duration::from_secs(899));
    assert_eq!(status().await.as_array().unwrap().len(), 1);
    scene.platform.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(status().await, json!([]));
}

#[tokio::test]
async fn lines_of_an_extension_are_found_by_role_and_page_newest_first() {
    let scene = Scene::new().await;
    let body = json!({"extension": "dice", "hasKeyholder": true});
    let dice = scene.install_as("dice", "l-1", &body).await;
    let cards = scene.install("cards", "l-1").await;
    for (at, role, title) in [
        (&dice, "wearer", "one"),
        (&dice, "user", "two"),
        (&cards, "keyholder", "three"),
        (&dice, "extension", "four"),
    ] {
        let body = json!({"title": title, "description": "d", "role": role, "icon": "dice", "color": null});
        let line = scene.ask(at, "POST", "/logs/custom", &body.to_string()).await;
        assert_eq!(line.status, 201);
        assert_eq!((&line.json()["type"], &line.json()["lock"]), (&json!("custom"), &json!("l-1")));
    }
    let search = async |body: Value| {
        let found = scene.ask(&dice, "POST", "/logs/search", &body.to_string()).await.ok();
        let lines = found["results"].as_array().unwrap().iter();
        let titles: Vec<String> =
            lines.map(|line| line["title"].as_str().unwrap().to_owned()).collect();
        (titles.join(" "), found)
    };
    for (body, titles) in [
        (json!({}), "four three two one"),
        (json!({"role": "wearer"}), "two one"),
        (json!({"role": "user"}), "two one"),
        (json!({"role": "keyholder"}), "three"),
        (json!({"showOnlyExtensionActions": true}), "four two one"),
        (json!({"limit": 3}), "four three two"),
    ] {
        assert_eq!(search(body.clone()).await.0, titles, "{body}");
    }
    let (_, first) = search(json!({"limit": 3})).await;
    assert_eq!(first["hasMore"], true);
    let last = first["results"][2]["_id"].clone();
    assert_eq!(first["lastId"], last);
    let (titles, rest) = search(json!({"limit": 3, "lastId": last})).await;
    assert_eq!((titles.as_str(), &rest["hasMore"]), ("one", &json!(false)));
    let line = &first["results"][0];
    assert_eq!(line["prefix"], "dice");
    assert_eq!((&line["role"], &line["color"]), (&json!("extension"), &json!(null)));
    for bad in [
        json!({"title": ""}),
        json!({"title": "t", "role": "x"}),
        json!({"title": "t".repeat(201)}),
    ] {
        assert_eq!(
            code(&scene.ask(&dice, "POST", "/logs/custom", &bad.to_string()).await),
            "bad-request"
        );
    }
}
