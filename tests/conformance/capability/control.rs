//! Registering, tokens, manifests, sessions and histories.

use serde_json::{Value, json};

use super::manifests;
use super::scene::{LOCK, ORG, Registered, Scene, changed, check, record, refused};
use super::{Case, case};
use crate::harness::door::{Call, Reply};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("", "an extension is registered once, and its token is shown once", registered),
        case("", "a developer token is worth nothing once there is another", tokens),
        case("CH-012", "a withdrawn extension is nobody's", withdrawn),
        case(
            "CH-013 CH-015",
            "a manifest keeps what it leaves out, and clears what is empty",
            merge,
        ),
        case("", "a manifest with null, or of another extension, is refused", bad_manifests),
        case("", "a schema that is none is refused with its manifest", bad_schemas),
        case("CH-012", "an extension is on a lock once", installed_once),
        case("", "sessions are found by the status of their lock, page by page", search),
        case("", "a patch changes what it names, byte for byte", patch),
        case("", "the history is read page by page, newest first", history),
        case("CH-024", "a custom line is of its extension, or of a person that there is", roles),
        case("", "120 custom lines a minute have a count of their own", many_lines),
        case("", "a keyholder who comes with a session is a line of the history", with_keyholder),
        case("", "a lock that is not there has no sessions and no history", no_lock),
        case("", "another organization, and a key of few permissions, is refused", strangers),
    ]
}

fn fault(status: u16, code: &str) -> Value {
    json!({ "statusCode": status, "code": code, "message": "${any}" })
}

async fn registered(mut scene: Scene) {
    let body = json!({ "contract": "chaster", "name": "new", "description": "one more" });
    let path = "/v1/extension/definition";
    let reply = scene.operator("POST", path, &body).await;
    let token = reply.body["developer_token"].as_str().expect("a token").to_owned();
    assert!(token.starts_with("axd.new.") && token.len() == 8 + 43, "{token}");
    let expected = json!({
        "contract": "chaster", "name": "new", "description": "one more",
        "platform_owned": false, "commands": [], "queries": [], "events": [],
        "created_at": "${time}", "updated_at": "${time}", "developer_token": token,
    });
    check(&reply, 200, expected.clone());
    let shown = scene.operator("GET", &format!("{path}/new"), &json!({})).await;
    check(&shown, 200, changed(expected, json!({ "developer_token": null })));
    // The name is taken, for extensions of either contract.
    let again = scene.operator("POST", path, &body).await;
    assert_eq!((again.status.as_u16(), &again.body["code"]), (409, &json!("conflict")));
    let other = json!({
        "name": "new", "url": "https://new.example.com/", "secret": "s".repeat(32),
    });
    let again = scene.operator("POST", path, &other).await;
    assert_eq!((again.status.as_u16(), &again.body["code"]), (409, &json!("conflict")));
    for name in ["lock", "default", "chaster", "annex", "No", "-x", "a.b", ""] {
        let body = json!({ "contract": "chaster", "name": name });
        let reply = scene.operator("POST", path, &body).await;
        assert_eq!(reply.status, 400, "{name}: {}", reply.body);
    }
    let token = scene.world.token("user", "A").await.expect("a user signs in");
    let body = json!({ "contract": "chaster", "name": "newer" });
    let reply = scene.world.send(Call::new("POST", path).token(token).json(&body)).await;
    assert_eq!(reply.status, 403, "{}", reply.body);
}

async fn tokens(mut scene: Scene) {
    let path = "/v1/extension/definition/a/developer-token";
    let made = scene.operator("POST", path, &json!({})).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let before = scene.tokens["a"].clone();
    scene.world.restart();
    let reply = scene.command("a", "b.run", json!({})).await;
    check(&reply, 401, fault(401, "unauthorized"));
    let new = made.body["developer_token"].as_str().expect("a token").to_owned();
    assert_ne!(new, before);
    scene.tokens.insert("a".to_owned(), new.clone());
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
    // A token of one is none of another, and its secret none of another's.
    let (_, secret) = new.rsplit_once('.').expect("a token has parts");
    for token in [&*format!("axd.b.{secret}"), "axd.a.", "axd", "", "axd.a.x.y", "axd.none.x"] {
        let call = scene.request("a", "POST /commands/b.run", &json!({})).token(token);
        check(&scene.world.send(call).await, 401, fault(401, "unauthorized"));
    }
}

async fn withdrawn(mut scene: Scene) {
    let reply = scene.operator("DELETE", "/v1/extension/definition/b", &json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    scene.world.restart();
    refused(&scene.command("a", "b.run", json!({})).await, 404, "not-installed");
    let reply = scene.command("b", "a.run", json!({})).await;
    check(&reply, 401, fault(401, "unauthorized"));
    // Nothing is left over for the next of that name.
    scene.register("b", Registered::USUAL).await;
    scene.world.restart();
    let reply = scene.command("a", "b.run", json!({})).await;
    assert_eq!(reply.status, 404, "{}", reply.body);
}

async fn merge(mut scene: Scene) {
    let one = json!([manifests::capability("b.only")]);
    scene.sync("b", &json!({ "commands": one })).await;
    scene.world.restart();
    let reply = scene.command("a", "b.only", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.only" })));
    refused(&scene.command("a", "b.run", json!({})).await, 404, "unknown-command");
    let reply = scene.query("a", "b.get", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.get" })));
    scene.sync("b", &json!({ "queries": [], "events": [] })).await;
    scene.world.restart();
    refused(&scene.query("a", "b.get", json!({})).await, 404, "unknown-command");
    refused(&scene.emit("b", super::events::event("b.done", 1)).await, 404, "unknown-event");
    let reply = scene.command("a", "b.only", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.only" })));
    // Nothing at all keeps everything.
    scene.sync("b", &json!({})).await;
    scene.world.restart();
    let reply = scene.command("a", "b.only", json!({})).await;
    check(&reply, 201, record(json!({ "capability": "b.only" })));
}

async fn send(scene: &Scene, manifest: Value) -> Reply {
    scene.send_manifest("b", &manifest).await
}

async fn bad_manifests(scene: Scene) {
    for list in ["commands", "queries", "events", "subscriptions"] {
        let reply = send(&scene, json!({ "slug": "b", list: null })).await;
        check(&reply, 400, fault(400, "bad-request"));
    }
    let reply = send(&scene, json!({ "slug": "a", "commands": [] })).await;
    check(&reply, 403, fault(403, "forbidden"));
    let twice = |id: &str| json!([manifests::capability(id)]);
    let unlike = [
        json!({ "commands": twice("a.run") }),
        json!({ "commands": twice("b.x"), "queries": twice("b.x") }),
        // With what is kept: `b.get` is a query.
        json!({ "commands": twice("b.get") }),
        json!({ "commands": {} }),
        json!({ "unknown": [] }),
        json!({ "commands": [changed(manifests::capability("b.x"), json!({ "kind": "stop" }))] }),
        json!({ "commands": [manifests::for_callers("b.x", &["nobody"])] }),
        json!({ "events": [manifests::event("lock.x", false)] }),
    ];
    for manifest in unlike {
        let reply = send(&scene, manifest).await;
        check(&reply, 400, fault(400, "bad-request"));
    }
    let many = |count: usize| -> Value {
        (0..count).map(|n| manifests::capability(&format!("b.c{n}"))).collect()
    };
    let reply = send(&scene, json!({ "commands": many(101) })).await;
    check(&reply, 400, fault(400, "bad-request"));
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
    let reply = send(&scene, json!({ "commands": many(100) })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

async fn bad_schemas(scene: Scene) {
    let deep = format!("{}1{}", r#"{"not":"#.repeat(200), "}".repeat(200));
    let deep: Value = serde_json::from_str(&deep).unwrap_or(json!(1));
    for schema in [
        json!({ "type": "nothing" }),
        json!(1),
        json!({ "$ref": "https://elsewhere.example.com/schema" }),
        json!({ "pattern": "(" }),
        json!({ "properties": { "x": { "x-chaster-options": { "query": "no id" } } } }),
        json!({ "description": "x".repeat(64 << 10) }),
        deep,
    ] {
        let manifest = json!({ "commands": [manifests::taking("b.x", schema)] });
        let reply = send(&scene, manifest).await;
        check(&reply, 400, fault(400, "bad-request"));
    }
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
}

async fn installed_once(mut scene: Scene) {
    let path = format!("{LOCK}/sessions");
    let reply = scene.org("POST", &path, Some(&json!({ "extension": "a" }))).await;
    assert_eq!((reply.status.as_u16(), &reply.body["code"]), (409, &json!("conflict")));
    let reply = scene.org("POST", &path, Some(&json!({ "extension": "nobody" }))).await;
    assert_eq!((reply.status.as_u16(), &reply.body["code"]), (404, &json!("not-found")));
    let reply = scene.org("POST", &path, Some(&json!({ "extension": "a", "x": 1 }))).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    let old = scene.sessions[&("a".to_owned(), LOCK.to_owned())].clone();
    let gone = scene.org("DELETE", &format!("{path}/{old}"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    let again = scene.org("DELETE", &format!("{path}/{old}"), None).await;
    assert_eq!(again.status, 404, "{}", again.body);
    let reply = scene.command("a", "b.run", json!({})).await;
    check(&reply, 404, fault(404, "not-found"));
    let new = scene.install("a", LOCK).await;
    assert_ne!(new, old);
    check(&scene.command("a", "b.run", json!({})).await, 201, record(json!({})));
}

async fn search(mut scene: Scene) {
    for lock in ["l2", "l3", "l4"] {
        scene.pass_millis(1);
        scene.install("a", lock).await;
    }
    scene.org("PATCH", "l3", Some(&json!({ "status": "unlocked" }))).await;
    let token = scene.tokens["a"].clone();
    let ask = async |body: Value| -> Reply {
        let call = Call::new("POST", "/api/extensions/sessions/search").token(&token);
        scene.world.send(call.json(&body)).await
    };
    let locks = |reply: &Reply| -> (Vec<String>, bool) {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let results = reply.body["results"].as_array().expect("a list");
        assert_eq!(reply.body["count"], results.len());
        let lock = |found: &Value| found["lock"]["_id"].as_str().unwrap_or_default().to_owned();
        (results.iter().map(lock).collect(), reply.body["hasMore"] == true)
    };
    let own = |names: &[&str], more: bool| -> (Vec<String>, bool) {
        (names.iter().map(|&name| name.to_owned()).collect(), more)
    };
    assert_eq!(locks(&ask(json!({})).await), own(&["l4", "l2", LOCK], false));
    assert_eq!(locks(&ask(json!({ "status": "unlocked" })).await), own(&["l3"], false));
    assert_eq!(locks(&ask(json!({ "status": "deserted" })).await), own(&[], false));
    let all = json!({ "status": "all", "extensionSlug": "a", "limit": 3 });
    let page = ask(all.clone()).await;
    assert_eq!(locks(&page), own(&["l4", "l3", "l2"], true));
    let last = page.body["results"][2]["paginationId"].clone();
    let next = changed(all, json!({ "paginationLastId": last }));
    assert_eq!(locks(&ask(next).await), own(&[LOCK], false));
    let bad = ask(json!({ "status": "frozen" })).await;
    check(&bad, 400, fault(400, "bad-request"));
    let other = ask(json!({ "extensionSlug": "b" })).await;
    check(&other, 404, fault(404, "not-found"));
}

async fn patch(scene: Scene) {
    let session = scene.sessions[&("a".to_owned(), LOCK.to_owned())].clone();
    let expected = json!({ "session": {
        "_id": session, "sessionId": session, "slug": "a", "config": {}, "data": { "n": [1] },
        "metadata": {}, "mode": "unlimited", "regularity": 0, "nbActionsRemaining": -1,
        "nextActionDate": null, "userData": null, "textConfig": "", "displayName": "a",
        "summary": "", "subtitle": "", "icon": "", "isPartner": true, "createdAt": "${time}",
        "updatedAt": "${time}", "lock": {
            "_id": LOCK, "lockId": LOCK, "status": "locked", "isFrozen": false,
            "hasKeyholder": false, "createdAt": "${time}", "updatedAt": "${time}",
        },
    } });
    let reply = scene.ask("a", "PATCH ", &json!({ "data": { "n": [1] } })).await;
    check(&reply, 200, expected.clone());
    check(&scene.ask("a", "GET ", &json!({})).await, 200, expected);
    for bad in [json!({ "data": [] }), json!({ "config": null }), json!({ "metadata": "x" })] {
        check(&scene.ask("a", "PATCH ", &bad).await, 400, fault(400, "bad-request"));
    }
    let sized = |bytes: usize| {
        let text = "x".repeat(bytes - json!({ "x": "" }).to_string().len());
        json!({ "data": { "x": text } })
    };
    assert_eq!(scene.ask("a", "PATCH ", &sized(64 << 10)).await.status, 200);
    assert_eq!(scene.ask("a", "PATCH ", &sized((64 << 10) + 1)).await.status, 413);
}

async fn history(mut scene: Scene) {
    for n in 0..5 {
        scene.pass_millis(1);
        let (slug, role) = if n == 3 { ("b", "wearer") } else { ("a", "extension") };
        let line = json!({ "title": n.to_string(), "role": role });
        assert_eq!(scene.ask(slug, "POST /logs/custom", &line).await.status, 201);
    }
    let titles = |reply: &Reply| -> Vec<String> {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let results = reply.body["results"].as_array().expect("a list");
        assert_eq!(reply.body["count"], results.len());
        results.iter().map(|line| line["title"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let ask = async |scene: &Scene, body: Value| scene.ask("a", "POST /logs/search", &body).await;
    let all = ask(&scene, json!({})).await;
    assert_eq!(titles(&all), ["4", "3", "2", "1", "0"]);
    let page = ask(&scene, json!({ "limit": 2 })).await;
    assert_eq!(
        (titles(&page), &page.body["hasMore"]),
        (vec!["4".to_owned(), "3".to_owned()], &json!(true))
    );
    let next = json!({ "limit": 100, "lastId": page.body["lastId"] });
    assert_eq!(titles(&ask(&scene, next).await), ["2", "1", "0"]);
    assert_eq!(titles(&ask(&scene, json!({ "role": "user" })).await), ["3"]);
    let own = json!({ "showOnlyExtensionActions": true });
    assert_eq!(titles(&ask(&scene, own).await), ["4", "2", "1", "0"]);
    let of_org = scene.org("GET", &format!("{LOCK}/history?limit=2"), None).await;
    assert_eq!(titles(&of_org), ["4", "3"]);
}

async fn strangers(mut scene: Scene) {
    let few = scene.world.token("key:ext.list", "A").await.expect("a key is made");
    let path = format!("/v1/orgs/{ORG}/scopes/lock/{LOCK}");
    let calls = [
        ("PATCH", path.clone()),
        ("POST", format!("{path}/sessions")),
        ("POST", format!("{path}/wearer/commands/b.run")),
        ("POST", format!("{path}/wearer/queries/b.get")),
    ];
    for (method, path) in &calls {
        let call = Call::new(method, path).token(&few).json(&json!({}));
        assert_eq!(scene.world.send(call).await.status, 403, "{method} {path}");
        let call = Call::new(method, path).token(&scene.tokens["a"]).json(&json!({}));
        assert_eq!(scene.world.send(call).await.status, 401, "{method} {path}");
    }
    let call = Call::new("GET", &path).token(&few);
    assert_eq!(scene.world.send(call).await.status, 200);
    assert_eq!(scene.partners.count(), 0);
}

async fn roles(mut scene: Scene) {
    let line = |role: &str| json!({ "title": "x", "role": role });
    for role in ["wearer", "user", "extension"] {
        let reply = scene.ask("a", "POST /logs/custom", &line(role)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    for role in ["admin", "owner"] {
        let reply = scene.ask("a", "POST /logs/custom", &line(role)).await;
        check(&reply, 400, fault(400, "bad-request"));
    }
    let reply = scene.ask("a", "POST /logs/custom", &line("keyholder")).await;
    refused(&reply, 422, "invalid-actor");
    scene.org("PATCH", LOCK, Some(&json!({ "hasKeyholder": true }))).await;
    let reply = scene.ask("a", "POST /logs/custom", &line("keyholder")).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

async fn many_lines(scene: Scene) {
    let line = json!({ "title": "x" });
    for _ in 0..120 {
        assert_eq!(scene.ask("a", "POST /logs/custom", &line).await.status, 201);
    }
    scene.pass(20);
    super::scene::limited(&scene.ask("a", "POST /logs/custom", &line).await, "extension", 40);
    // Nothing else is touched by that: neither its calls nor the lines of others.
    assert_eq!(scene.command("a", "b.run", json!({})).await.status, 201);
    assert_eq!(scene.ask("b", "POST /logs/custom", &line).await.status, 201);
    assert_eq!(scene.lines("b", "extension_blocked").await.len(), 0);
    scene.pass(40);
    assert_eq!(scene.ask("a", "POST /logs/custom", &line).await.status, 201);
}

async fn with_keyholder(mut scene: Scene) {
    scene.join("c", &manifests::caller("c")).await;
    scene.install_as("fresh", json!({ "extension": "c", "hasKeyholder": true })).await;
    scene.install("a", "fresh").await;
    scene.install_as(LOCK, json!({ "extension": "c", "hasKeyholder": true })).await;
    assert_eq!(scene.lines("a", "keyholder_added").await.len(), 1);
    let reply = scene.ask_on("fresh", "a", "POST /logs/search", &json!({})).await;
    assert_eq!(reply.body["results"], json!([]), "a new lock began with one");
}

async fn no_lock(mut scene: Scene) {
    let none = json!({ "error": "there is no lock nowhere", "code": "not-found" });
    for rest in ["nowhere", "nowhere/sessions", "nowhere/history"] {
        check(&scene.org("GET", rest, None).await, 404, none.clone());
    }
}
