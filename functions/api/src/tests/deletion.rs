//! Export and deletion of an organization: everything of it, and nothing of another.

use std::collections::BTreeMap;
use std::time::Duration;

use annex_core::ids::Oid;
use annex_core::meter;
use annex_core::ports::{Item, Key, Message, Outgoing, QueueName, Store as _};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::platform::{Platform, encode};

const METERED: &str = r#"{"version":20221218,"data":{"ok":true},
    "metrics":{"metrics":[{"sku":"scans","value":2}]}}"#;

const CONTINUED: &str = r#"{"version":20221218,"data":{},
    "continuations":[{"in_delay_sec":60,"action":"echo","state":{"msg":"later"}}]}"#;

/// Works on a message as its function does; it is done.
async fn work(platform: &Platform, sent: Outgoing) {
    if sent.queue == QueueName::Meter {
        let usage = serde_json::from_str(&sent.body).unwrap();
        meter::record(&*platform.store, &usage).await.unwrap();
        return;
    }
    let message = Message { id: "m".to_owned(), body: sent.body, receives: 1 };
    assert_eq!(platform.app.calls.work(message).await, None);
}

/// Works on everything that was sent and all that follows, each in its time.
pub(super) async fn drain(platform: &Platform) {
    loop {
        let sent = platform.store.take_sent();
        if sent.is_empty() {
            return;
        }
        for message in sent {
            platform.clock.advance(message.delay);
            work(platform, message).await;
        }
    }
}

pub(super) async fn say(platform: &Platform, says: Option<&str>) {
    *platform.extension.says.lock().unwrap() = says.map(|body| (200, body.to_owned()));
}

async fn request(platform: &Platform, token: &str, oid: Oid, action: &str, data: &str) {
    let oid = oid.to_string();
    let form = [("oid", oid.as_str()), ("action", action), ("data", data)];
    platform.call(token, "POST", "/v1/extension/request/ext", &form).await;
}

/// An organization with one of everything that the platform keeps.
pub(super) async fn filled(platform: &Platform) -> (Oid, String) {
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    platform.user(oid, &owner, "*").await;
    let put = |hive: &str, name: &str, data: &str| {
        let path = format!("/v1/hive/{hive}/{oid}/{name}/data");
        let form = [("data".to_owned(), data.to_owned())];
        let owner = owner.clone();
        async move {
            let form: Vec<_> = form.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            platform.call(&owner, "POST", &path, &form).await.ok();
        }
    };
    put("secret", "k", r#"{"secret":"hunter2"}"#).await;
    put("lookup", "l", r#"{"n":1}"#).await;
    let rule = r#"{"detect":{"op":"exists","path":"event/x"},
        "respond":[{"action":"extension request","extension name":"ext","extension action":"echo","extension request":{}}]}"#;
    put("dr-general", "r", rule).await;
    let path = format!("/v1/orgs/{oid}/adapters/ext");
    let made = platform.call(&owner, "POST", &path, &[]).await.ok();
    let url = made["url"].as_str().unwrap().replacen("http://127.0.0.1:8080", "", 1);
    let post = Request::post(url).header("idempotency-key", "k1");
    platform.send(post.body(Body::from(r#"{"x":1.50}"#)).unwrap()).await.ok();

    request(platform, &owner, oid, "echo", r#"{"msg":"small"}"#).await;
    let large = json!({"msg": "x".repeat(70_000)}).to_string();
    request(platform, &owner, oid, "echo", &large).await;
    request(platform, &owner, oid, "fail", "{}").await;
    say(platform, Some(METERED)).await;
    request(platform, &owner, oid, "echo", "{}").await;
    say(platform, None).await;
    drain(platform).await;
    (oid, owner)
}

/// The live items that tell of an organization, wherever they lie.
fn of(platform: &Platform, oid: Oid) -> BTreeMap<Key, Item> {
    let oid = oid.to_string();
    let tells = |key: &Key, item: &Item| {
        let holds = |text: &str| text.contains(&oid);
        holds(&key.partition) || holds(&key.sort) || holds(&String::from_utf8_lossy(&item.data))
    };
    platform.store.items().into_iter().filter(|(key, item)| tells(key, item)).collect()
}

async fn delete(platform: &Platform, oid: Oid, confirm: &str) -> super::platform::Answer {
    let operator = platform.operator().await;
    platform.call(&operator, "DELETE", &format!("/v1/orgs/{oid}"), &[("confirm", confirm)]).await
}

#[tokio::test]
async fn nothing_of_a_deleted_organization_is_left_and_another_one_is_as_it_was() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (other, _) = filled(&platform).await;
    let blobs = platform.blobs.count();
    let (oid, owner) = filled(&platform).await;
    assert!(0 < blobs && platform.blobs.count() == 2 * blobs);
    let parts: Vec<String> = of(&platform, oid).into_keys().map(|key| key.partition).collect();
    for part in [
        "orgs",
        "org#",
        "inv#",
        "errors#",
        "usage#",
        "metered#",
        "telemetry#",
        "event-post#",
        "installs#",
        "api-key#",
    ] {
        assert!(parts.iter().any(|found| found.starts_with(part)), "{part} {parts:?}");
    }
    let before = of(&platform, other);

    assert_eq!(delete(&platform, oid, "Demo").await.code(), "confirmation-refused");
    assert_eq!(delete(&platform, oid, "").await.code(), "confirmation-refused");
    platform.extension.seen.lock().unwrap().clear();
    delete(&platform, oid, "demo").await.ok();
    // A repeat starts the job once more, which changes nothing.
    delete(&platform, oid, "demo").await.ok();
    let info = platform.get(&owner, &format!("/v1/orgs/{oid}")).await;
    assert_eq!(info.code(), "unauthenticated");
    drain(&platform).await;

    assert_eq!(of(&platform, oid), BTreeMap::new());
    assert_eq!(platform.blobs.count(), blobs);
    let after = of(&platform, other);
    let now = platform.app.ports.clock.now();
    let stays = |item: &Item| item.expires_at.is_none_or(|end| now < end);
    let before: BTreeMap<_, _> = before.into_iter().filter(|(_, item)| stays(item)).collect();
    assert_eq!(after, before);
    // LC-105: its extension was told, once.
    let seen = platform.extension.seen.lock().unwrap().clone();
    let told: Vec<&Value> =
        seen.iter().filter(|message| message["event"]["event_name"] == "unsubscribe").collect();
    assert_eq!(told.len(), 1, "{seen:?}");
    assert_eq!(delete(&platform, oid, "demo").await.code(), "not-found");
}

#[tokio::test]
async fn from_the_deletion_on_tokens_keys_adapters_and_what_is_queued_are_worth_nothing() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let keys = format!("/v1/orgs/{oid}/keys");
    let form = [("key_name", "k"), ("perms", "*")];
    let made = platform.call(&owner, "POST", &keys, &form).await.ok();
    let api_key = made["api_key"].as_str().unwrap();
    let user = platform.sign_in(api_key, &oid.to_string()).await;
    let path = format!("/v1/orgs/{oid}/adapters/ext");
    let adapter = platform.call(&owner, "POST", &path, &[]).await.ok();
    let url = adapter["url"].as_str().unwrap().replacen("http://127.0.0.1:8080", "", 1);
    say(&platform, Some(CONTINUED)).await;
    request(&platform, &owner, oid, "echo", "{}").await;
    say(&platform, None).await;
    let queued = platform.store.take_sent();
    assert!(queued.iter().any(|sent| sent.queue == QueueName::Resume));
    let operator = platform.operator().await;
    let oid_text = oid.to_string();
    delete(&platform, oid, "demo").await.ok();

    for token in [&owner, &user] {
        let listed = platform.get(token, &format!("/v1/orgs/{oid}/subscriptions")).await;
        assert_eq!(listed.code(), "unauthenticated");
    }
    for (secret, oid, code) in [
        (api_key, oid_text.as_str(), "unauthenticated"),
        (api_key, "-", "unauthenticated"),
        ("operator-secret", oid_text.as_str(), "not-found"),
    ] {
        let form = [("secret", secret), ("oid", oid)];
        assert_eq!(platform.call("", "POST", "/jwt", &form).await.code(), code);
    }
    let post = Request::post(url).body(Body::from("{}")).unwrap();
    assert_eq!(platform.send(post).await.code(), "not-found");
    let export = format!("/v1/orgs/{oid}/export");
    assert_eq!(platform.get(&operator, &export).await.code(), "not-found");
    let form = [("name", "demo"), ("oid", oid_text.as_str())];
    let again = platform.call(&operator, "POST", "/v1/orgs/new", &form).await;
    assert_eq!(again.code(), "conflict");
    let listed = platform.get(&operator, "/v1/user/orgs").await.ok();
    assert_eq!(listed["total"], 0);

    // What was queued ends silently, before the removal and after it.
    let erase = platform.store.take_sent();
    let before = of(&platform, oid);
    platform.extension.seen.lock().unwrap().clear();
    for message in &erase {
        work(&platform, message.clone()).await;
    }
    let unsubscribed = platform.store.take_sent();
    for message in &queued {
        work(&platform, message.clone()).await;
    }
    assert_eq!(platform.store.take_sent(), []);
    assert_eq!(platform.extension.seen.lock().unwrap().len(), 0);
    let kept: Vec<&Key> = before.keys().collect();
    assert!(of(&platform, oid).keys().all(|key| kept.contains(&key)));
    for message in unsubscribed {
        platform.clock.advance(message.delay);
        work(&platform, message).await;
    }
    drain(&platform).await;
    for message in queued.into_iter().chain(erase) {
        work(&platform, message).await;
    }
    assert_eq!(of(&platform, oid), BTreeMap::new());
    // The id is free again.
    let operator = platform.operator().await;
    platform.call(&operator, "POST", "/v1/orgs/new", &form).await.ok();
}

#[tokio::test]
async fn the_data_stays_for_the_hour_in_which_extensions_clean_up() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    platform.store.take_sent();
    let began = platform.app.ports.clock.now();
    delete(&platform, oid, "demo").await.ok();
    loop {
        let sent = platform.store.take_sent();
        if sent.is_empty() {
            break;
        }
        for message in sent {
            platform.clock.advance(message.delay);
            let waited = platform.app.ports.clock.now().since(began);
            let org = platform.store.get(&annex_core::keys::org(oid)).await.unwrap();
            assert!(org.is_some() || Duration::from_secs(3600) <= waited);
            work(&platform, message).await;
        }
    }
    assert_eq!(of(&platform, oid), BTreeMap::new());
}

/// All items of an export.
async fn export(platform: &Platform, token: &str, oid: Oid) -> (Vec<Value>, String) {
    let (mut items, mut all, mut cursor) = (Vec::new(), String::new(), String::new());
    loop {
        let query = encode(&[("cursor", &cursor)]);
        let answer = platform.get(token, &format!("/v1/orgs/{oid}/export?{query}")).await;
        let page = answer.ok();
        all.push_str(&answer.text);
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return (items, all),
        }
    }
}

#[tokio::test]
async fn an_export_holds_one_of_everything_and_no_secret() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (other, _) = filled(&platform).await;
    let (oid, owner) = filled(&platform).await;
    let operator = platform.operator().await;
    let (items, text) = export(&platform, &owner, oid).await;
    assert_eq!(export(&platform, &operator, oid).await.0, items);
    let of = |kind: &str| {
        let found = items.iter().filter(|item| item["type"] == kind).cloned();
        found.collect::<Vec<Value>>()
    };
    assert_eq!(of("organization")[0]["name"], "demo");
    assert_eq!(of("api_key")[0]["permissions"], json!(["*"]));
    assert_eq!(of("subscription")[0]["extension"], "ext");
    assert_eq!(of("installation_key").len(), 1);
    assert_eq!(
        (of("usage")[0]["sku"].as_str(), of("usage")[0]["value"].as_str()),
        (Some("ext:scans"), Some("2"))
    );
    assert!(of("error").iter().any(|error| error["error"] == "no such vendor"));
    let hives: Vec<(Value, Value, Value)> = of("hive_record")
        .into_iter()
        .map(|record| (record["hive"].clone(), record["name"].clone(), record["redacted"].clone()))
        .collect();
    for (hive, name, redacted) in
        [("secret", "k", true), ("lookup", "l", true), ("dr-general", "r", false)]
    {
        assert!(hives.contains(&(json!(hive), json!(name), json!(redacted))), "{hives:?}");
    }
    // Bytes of events pass through unchanged.
    assert!(text.contains(r#"{"x":1.50}"#));
    let records = of("invocation");
    assert!(records.iter().any(|record| record["record"]["data"]["msg"] == "small"));
    let large: Vec<&Value> =
        records.iter().filter(|record| record["data_in"].is_string()).collect();
    assert_eq!((large.len(), &large[0]["record"]["data"]), (1, &Value::Null));
    let whole = platform.get(&operator, large[0]["data_in"].as_str().unwrap()).await.ok();
    assert_eq!(whole["data"]["msg"].as_str().unwrap().len(), 70_000);
    assert!(!text.contains("hunter2") && !text.contains(&other.to_string()));
    assert_eq!(of("other"), Vec::<Value>::new());
}

#[tokio::test]
async fn an_export_needs_the_right_to_read_each_part() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let perms = annex_core::orgs::EXPORT_PERMISSIONS;
    let path = format!("/v1/orgs/{oid}/export");
    let all = platform.user(oid, &owner, &perms.join(",")).await;
    platform.get(&all, &path).await.ok();
    let most = platform.user(oid, &owner, &perms[1..].join(",")).await;
    assert_eq!(platform.get(&most, &path).await.code(), "forbidden");
    let (stranger, _) = platform.org().await;
    assert_eq!(
        platform.get(&all, &format!("/v1/orgs/{stranger}/export")).await.code(),
        "forbidden"
    );
    assert_eq!(platform.get(&all, &format!("{path}?cursor=x")).await.code(), "bad-request");
}

#[tokio::test]
async fn tokens_of_a_deleted_organization_are_worth_nothing_in_the_next_one_of_its_id() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let oid_text = oid.to_string();
    let form = [("secret", "operator-secret"), ("oid", oid_text.as_str()), ("expiry", "86400")];
    let signed = platform.call("", "POST", "/jwt", &form).await.ok();
    let before = signed["jwt"].as_str().unwrap();
    let org = format!("/v1/orgs/{oid}");
    platform.get(before, &org).await.ok();

    delete(&platform, oid, "demo").await.ok();
    drain(&platform).await;
    assert_eq!(platform.get(before, &org).await.code(), "unauthenticated");
    let operator = platform.operator().await;
    let form = [("name", "next"), ("oid", oid_text.as_str())];
    platform.call(&operator, "POST", "/v1/orgs/new", &form).await.ok();
    assert_eq!(platform.get(before, &org).await.code(), "unauthenticated");
    let after = platform.sign_in("operator-secret", &oid_text).await;
    assert_eq!(platform.get(&after, &org).await.ok()["name"], "next");
}
