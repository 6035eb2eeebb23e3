//! Hive records.

use std::time::Duration;

use annex_core::auth::permission;
use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::limits::{HIVE_DATA_BYTES_MAX, HIVE_PAGE_BYTES_MAX, RULES_PER_ORG_MAX};
use serde_json::{Value, json};

use super::platform::Platform;

async fn set(
    platform: &Platform,
    token: &str,
    place: (&str, Oid, &str),
    form: &[(&str, &str)],
) -> super::platform::Answer {
    let (hive, oid, name) = place;
    platform.call(token, "POST", &format!("/v1/hive/{hive}/{oid}/{name}/data"), form).await
}

#[tokio::test]
async fn a_record_is_written_read_changed_and_deleted() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let base = format!("/v1/hive/secret/{oid}/a%2Fb%20c");
    let data = r#"{"secret": "v=&%\u00e9"}"#;
    let made = set(&platform, &owner, ("secret", oid, "a%2Fb%20c"), &[("data", data)]).await.ok();
    assert_eq!(made["hive"], json!({"name": "secret", "partition": oid.to_string()}));
    assert_eq!(made["name"], "a/b c");
    let first = platform.get(&owner, &format!("{base}/data")).await;
    assert!(first.text.starts_with(&format!("{{\"data\":{data},")), "data keeps its bytes");
    let first = first.ok();
    assert_eq!(first["usr_mtd"], json!({"enabled": true, "expiry": 0, "tags": [], "comment": ""}));
    assert_eq!(first["sys_mtd"]["created_by"], "operator");
    assert_eq!(first["sys_mtd"]["guid"], made["guid"]);

    // Metadata replaces metadata, whole; what has no `enabled` is disabled. The data stays.
    platform.clock.advance(Duration::from_millis(5));
    let form = [("usr_mtd", r#"{"tags":["t"],"comment":"c"}"#), ("data", "null")];
    platform.call(&owner, "POST", &format!("{base}/mtd"), &form).await.ok();
    let second = platform.get(&owner, &format!("{base}/mtd")).await.ok();
    assert_eq!(second["data"], Value::Null);
    assert_eq!(
        second["usr_mtd"],
        json!({"enabled": false, "expiry": 0, "tags": ["t"], "comment": "c"})
    );
    assert_ne!(second["sys_mtd"]["etag"], first["sys_mtd"]["etag"]);
    assert_eq!(second["sys_mtd"]["created_at"], first["sys_mtd"]["created_at"]);
    assert_ne!(second["sys_mtd"]["last_mod"], first["sys_mtd"]["last_mod"]);

    // Data without metadata keeps the metadata.
    set(&platform, &owner, ("secret", oid, "a%2Fb%20c"), &[("data", r#"{"secret":"w"}"#)])
        .await
        .ok();
    let third = platform.get(&owner, &format!("{base}/data")).await.ok();
    assert_eq!((&third["data"], &third["usr_mtd"]), (&json!({"secret": "w"}), &second["usr_mtd"]));

    platform.call(&owner, "DELETE", &base, &[]).await.ok();
    for (method, path) in [("GET", "/data"), ("GET", "/mtd"), ("DELETE", ""), ("POST", "/mtd")] {
        let (code, error) =
            platform.call(&owner, method, &format!("{base}{path}"), &[]).await.fault();
        assert_eq!(code, "record-not-found");
        assert!(error.starts_with("lc_error_code:RECORD_NOT_FOUND - "), "{error}");
    }
}

#[tokio::test]
async fn secrets_and_configurations_are_sealed_in_the_store() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    set(&platform, &owner, ("secret", oid, "k"), &[("data", r#"{"secret":"needle"}"#)]).await.ok();
    set(&platform, &owner, ("lookup", oid, "k"), &[("data", r#"{"secret":"needle"}"#)]).await.ok();
    for hive in ["secret", "lookup"] {
        let item =
            platform.app.ports.store.get(&keys::hive(oid, hive, "k")).await.unwrap().unwrap();
        let text = String::from_utf8(item.data).unwrap();
        assert!(text.contains("sealed") && !text.contains("needle"), "{hive}: {text}");
    }
}

#[tokio::test]
async fn an_etag_that_is_not_the_records_is_refused_and_nothing_is_written() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let place = ("lookup", oid, "k");
    let data = ("data", "{}");
    assert_eq!(set(&platform, &owner, place, &[data, ("etag", "x")]).await.code(), "etag-mismatch");
    set(&platform, &owner, place, &[data, ("etag", "")]).await.ok();
    let path = format!("/v1/hive/lookup/{oid}/k/data");
    let etag =
        platform.get(&owner, &path).await.ok()["sys_mtd"]["etag"].as_str().unwrap().to_owned();
    let change = ("data", r#"{"n":1}"#);
    let (_, error) = set(&platform, &owner, place, &[change, ("etag", "")]).await.fault();
    assert!(error.starts_with("lc_error_code:ETAG_MISMATCH"), "{error}");
    set(&platform, &owner, place, &[change, ("etag", &etag)]).await.ok();
    assert_eq!(
        set(&platform, &owner, place, &[data, ("etag", &etag)]).await.code(),
        "etag-mismatch"
    );
    let system = json!({"etag": etag}).to_string();
    assert_eq!(
        set(&platform, &owner, place, &[data, ("sys_mtd", &system)]).await.code(),
        "etag-mismatch"
    );
    assert_eq!(platform.get(&owner, &path).await.ok()["data"], json!({"n": 1}));
}

#[tokio::test]
async fn data_that_is_wrong_is_refused_and_nothing_is_written() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let full = format!(r#"{{"a":"{}"}}"#, "x".repeat(HIVE_DATA_BYTES_MAX - 8));
    let over = format!(r#"{{"a":"{}"}}"#, "x".repeat(HIVE_DATA_BYTES_MAX - 7));
    for (hive, form, code) in [
        ("lookup", vec![], "bad-request"),
        ("lookup", vec![("data", "[]")], "bad-request"),
        ("lookup", vec![("data", "{")], "invalid-json"),
        ("lookup", vec![("data", r#"{"a":"\ud800"}"#)], "invalid-json"),
        ("lookup", vec![("data", over.as_str())], "too-large"),
        ("lookup", vec![("data", "{}"), ("usr_mtd", "[]")], "bad-request"),
        ("lookup", vec![("data", "{}"), ("usr_mtd", r#"{"expiry":5}"#)], "bad-request"),
        ("lookup", vec![("data", "{}"), ("arl", "gcs://x")], "bad-request"),
        ("lookup", vec![("data", "{}"), ("gzdata", "x")], "bad-request"),
        ("lookup", vec![("gzdata", "x")], "bad-request"),
        ("secret", vec![("data", r#"{"secret":1}"#)], "bad-request"),
        ("dr-general", vec![("data", r#"{"detect":{}}"#)], "bad-request"),
        ("nope", vec![("data", "{}")], "not-found"),
    ] {
        assert_eq!(
            set(&platform, &owner, (hive, oid, "k"), &form).await.code(),
            code,
            "{hive} {form:.100?}"
        );
    }
    let long = "n".repeat(129);
    assert_eq!(
        set(&platform, &owner, ("lookup", oid, &long), &[("data", "{}")]).await.code(),
        "bad-request"
    );
    assert_eq!(platform.get(&owner, &format!("/v1/hive/lookup/{oid}")).await.ok(), json!({}));
    set(&platform, &owner, ("lookup", oid, "k"), &[("data", &full)]).await.ok();
}

#[tokio::test]
async fn a_record_ends_at_its_expiry() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let expiry = platform.app.ports.clock.now().plus(Duration::from_secs(60)).millis();
    let user = format!(r#"{{"enabled":true,"expiry":{expiry}}}"#);
    set(&platform, &owner, ("lookup", oid, "k"), &[("data", "{}"), ("usr_mtd", &user)]).await.ok();
    let path = format!("/v1/hive/lookup/{oid}/k/data");
    platform.clock.advance(Duration::from_millis(59_999));
    assert_eq!(platform.get(&owner, &path).await.ok()["usr_mtd"]["expiry"], expiry);
    platform.clock.advance(Duration::from_millis(1));
    assert_eq!(platform.get(&owner, &path).await.code(), "record-not-found");
}

#[tokio::test]
async fn a_hive_is_listed_whole_or_page_by_page() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let list = format!("/v1/hive/lookup/{oid}");
    for (name, tag) in [("a", "x1"), ("a%23", "y"), ("b", "x2"), ("next_cursor", "x3")] {
        let user = json!({"enabled": true, "tags": [tag]}).to_string();
        set(&platform, &owner, ("lookup", oid, name), &[("data", "{\"n\":1}"), ("usr_mtd", &user)])
            .await
            .ok();
    }
    let names = |page: &Value| page.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let whole = platform.get(&owner, &list).await.ok();
    assert_eq!(names(&whole), ["a", "a#", "b", "next_cursor"]);
    assert_eq!(whole["a"]["data"], json!({"n": 1}));
    let bare = platform.get(&owner, &format!("{list}?mtd_only=true")).await.ok();
    assert_eq!(bare["a"]["data"], Value::Null);

    let mut cursor = String::new();
    let mut seen = Vec::new();
    loop {
        let page = platform.get(&owner, &format!("{list}?limit=3&cursor={cursor}")).await.ok();
        seen.push(names(&page["records"]));
        cursor = page["next_cursor"].as_str().unwrap().replace('#', "%23");
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [vec!["a", "a#", "b"], vec!["next_cursor"]]);
    let tagged = platform.get(&owner, &format!("{list}?limit=0&tag_prefix=x")).await.ok();
    assert_eq!(names(&tagged["records"]), ["a", "b", "next_cursor"]);
    let bad = platform.get(&owner, &format!("{list}?cursor=zzz")).await.fault();
    assert!(bad.1.starts_with("lc_error_code:INVALID_CURSOR"));
}

#[tokio::test]
async fn a_hive_too_large_for_one_answer_is_read_page_by_page() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let data = format!(r#"{{"a":"{}"}}"#, "x".repeat(HIVE_DATA_BYTES_MAX - 8));
    let fit = HIVE_PAGE_BYTES_MAX / HIVE_DATA_BYTES_MAX;
    let list = format!("/v1/hive/lookup/{oid}");
    for n in 0..fit {
        set(&platform, &owner, ("lookup", oid, &format!("r{n:03}")), &[("data", &data)]).await.ok();
    }
    assert_eq!(platform.get(&owner, &list).await.ok().as_object().unwrap().len(), fit);
    set(&platform, &owner, ("lookup", oid, "z"), &[("data", &data)]).await.ok();
    let (code, error) = platform.get(&owner, &list).await.fault();
    assert_eq!(code, "too-large");
    assert!(error.starts_with("lc_error_code:HIVE_LISTING_TOO_LARGE - "), "{error}");
    let page = platform.get(&owner, &format!("{list}?limit=500")).await.ok();
    assert_eq!(page["records"].as_object().unwrap().len(), fit);
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = platform.get(&owner, &format!("{list}?limit=500&cursor={cursor}")).await.ok();
    assert_eq!(page["records"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn a_record_is_renamed_to_a_free_name() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    for name in ["a", "b"] {
        set(
            &platform,
            &owner,
            ("secret", oid, name),
            &[("data", &json!({"secret": name}).to_string())],
        )
        .await
        .ok();
    }
    let path = |name: &str, to: &str| format!("/v1/hive/secret/{oid}/{name}/rename?new_name={to}");
    for taken in ["a", "b"] {
        assert_eq!(platform.call(&owner, "POST", &path("a", taken), &[]).await.code(), "conflict");
    }
    platform.call(&owner, "POST", &path("a", "c%20d"), &[]).await.ok();
    let moved = platform.get(&owner, &format!("/v1/hive/secret/{oid}/c%20d/data")).await.ok();
    assert_eq!(moved["data"], json!({"secret": "a"}));
    assert_eq!(
        platform.call(&owner, "POST", &path("a", "e"), &[]).await.code(),
        "record-not-found"
    );
    assert_eq!(platform.call(&owner, "POST", &path("b", ""), &[]).await.code(), "bad-request");
}

#[tokio::test]
async fn a_configuration_is_written_when_its_extension_takes_it() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let place = ("extension_config", oid, "ext");
    let good = ("data", r#"{"api_key":"k", "extra":1e16}"#);
    assert_eq!(set(&platform, &owner, place, &[good]).await.code(), "not-found");
    platform.register("ext", &[]).await;
    assert_eq!(set(&platform, &owner, place, &[good]).await.code(), "not-subscribed");
    platform.subscribe(&owner, oid, "ext").await.ok();
    let refused = set(&platform, &owner, place, &[("data", "{}")]).await.fault();
    assert_eq!(refused, ("config-refused".into(), "api_key is required".into()));
    assert_eq!(
        set(&platform, &owner, place, &[("data", r#"{"api_key":1}"#)]).await.code(),
        "config-refused"
    );
    assert_eq!(set(&platform, &owner, place, &[("data", "[]")]).await.code(), "bad-request");
    let path = format!("/v1/hive/extension_config/{oid}/ext");
    assert_eq!(platform.get(&owner, &format!("{path}/data")).await.code(), "record-not-found");

    let validate = format!("{path}/validate");
    assert_eq!(platform.call(&owner, "POST", &validate, &[good]).await.ok(), json!({}));
    assert_eq!(platform.get(&owner, &format!("{path}/data")).await.code(), "record-not-found");
    assert_eq!(
        platform.call(&owner, "POST", &validate, &[("data", "{}")]).await.code(),
        "config-refused"
    );

    set(&platform, &owner, place, &[good]).await.ok();
    let stored = platform.get(&owner, &format!("{path}/data")).await;
    assert!(stored.text.contains(r#""data":{"api_key":"k", "extra":1e16}"#), "{}", stored.text);
    // Metadata alone asks nobody.
    let before = platform.extension.seen.lock().unwrap().len();
    platform.call(&owner, "POST", &format!("{path}/mtd"), &[("usr_mtd", "{}")]).await.ok();
    assert_eq!(platform.extension.seen.lock().unwrap().len(), before);
    // It stays when the organization leaves.
    let subscription = format!("/v1/orgs/{oid}/subscription/extension/ext");
    platform.call(&owner, "DELETE", &subscription, &[]).await.ok();
    platform.get(&owner, &format!("{path}/data")).await.ok();
}

#[tokio::test]
async fn each_hive_asks_for_its_own_permission() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    set(&platform, &owner, ("secret", oid, "k"), &[("data", r#"{"secret":"v"}"#)]).await.ok();
    let lister = platform.user(oid, &owner, permission::SECRET_LIST).await;
    let path = format!("/v1/hive/secret/{oid}");
    // Who may list but not read gets no values.
    let list = platform.get(&lister, &path).await.ok();
    assert_eq!(list["k"]["data"], Value::Null);
    platform.get(&lister, &format!("{path}/k/mtd")).await.ok();
    assert_eq!(platform.get(&lister, &format!("{path}/k/data")).await.code(), "forbidden");
    let reader = platform.user(oid, &owner, "secret.get").await;
    assert_eq!(platform.get(&reader, &path).await.ok()["k"]["data"], json!({"secret": "v"}));
    assert_eq!(
        set(&platform, &reader, ("secret", oid, "k"), &[("data", "{}")]).await.code(),
        "forbidden"
    );
    assert_eq!(
        platform.call(&reader, "DELETE", &format!("{path}/k"), &[]).await.code(),
        "forbidden"
    );
    assert_eq!(platform.get(&reader, &format!("/v1/hive/lookup/{oid}")).await.code(), "forbidden");
    let (other, _) = platform.org().await;
    assert_eq!(platform.get(&owner, &format!("/v1/hive/secret/{other}")).await.code(), "forbidden");
    assert_eq!(
        platform.get(&owner, "/v1/hive/secret/schema").await.ok()["schema"]["required"][0],
        "secret"
    );
}

#[tokio::test]
async fn the_last_accepted_and_the_first_refused_rule() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let rule =
        r#"{"detect":{"op":"exists","path":"event/A"},"respond":[{"action":"report","name":"r"}]}"#;
    for n in 0..RULES_PER_ORG_MAX {
        set(&platform, &owner, ("dr-general", oid, &format!("r{n}")), &[("data", rule)]).await.ok();
    }
    assert_eq!(
        set(&platform, &owner, ("dr-general", oid, "more"), &[("data", rule)]).await.code(),
        "bad-request"
    );
    set(&platform, &owner, ("dr-general", oid, "r0"), &[("data", rule)]).await.ok();
}
