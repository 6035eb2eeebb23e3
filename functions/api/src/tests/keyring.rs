//! A rotation of the key ring, with the overlap in which old and new keys work.

use annex_core::ids::Oid;
use annex_core::key_check;
use annex_core::ports::Keyring as _;
use annex_core::testkit::FixedKeyring;
use serde_json::{Value, json};

use super::platform::Platform;

/// A platform with a secret, a configuration, an API key, and a call that has ended.
async fn filled() -> (Platform, Oid, String, String) {
    let platform = Platform::new();
    assert!(key_check::is_same(&platform.app.ports).await.unwrap());
    let (oid, owner) = platform.org().await;
    platform.register("ext", &[]).await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    let secret = format!("/v1/hive/secret/{oid}/k/data");
    let form = [("data", r#"{"secret":"s3cr3t"}"#)];
    platform.call(&owner, "POST", &secret, &form).await.ok();
    let keys = format!("/v1/orgs/{oid}/keys");
    let form = [("key_name", "k"), ("perms", "secret.get,apikey.ctrl")];
    let made = platform.call(&owner, "POST", &keys, &form).await.ok();
    let api_key = made["api_key"].as_str().unwrap().to_owned();
    (platform, oid, owner, api_key)
}

/// All pages of a walk: the sum of what was resealed, and what remains by key.
async fn walk(platform: &Platform, dry_run: &str) -> (u64, Value) {
    let operator = platform.operator().await;
    let (mut resealed, mut remaining) = (0, serde_json::Map::new());
    let mut cursor = String::new();
    loop {
        let form = [("cursor", cursor.as_str()), ("dry_run", dry_run)];
        let page = platform.call(&operator, "POST", "/v1/keyring/reseal", &form).await.ok();
        resealed += page["resealed"].as_u64().unwrap();
        for (key, count) in page["remaining_by_key"].as_object().unwrap() {
            let sum = remaining.get(key).and_then(Value::as_u64).unwrap_or(0);
            remaining.insert(key.clone(), json!(sum + count.as_u64().unwrap()));
        }
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return (resealed, remaining.into()),
        }
    }
}

async fn secret(platform: &Platform, token: &str, oid: Oid) -> String {
    let read = platform.get(token, &format!("/v1/hive/secret/{oid}/k/data")).await.ok();
    read.to_string()
}

#[tokio::test]
async fn what_an_older_key_made_works_until_it_is_retired_and_what_was_sealed_anew_works_after() {
    let (platform, oid, owner, api_key) = filled().await;
    let oid_text = oid.to_string();
    let before = platform.sign_in(&api_key, &oid_text).await;
    // Added: a process that uses the old key, and one that was promoted already, understand each other.
    platform.keyring.add();
    assert!(secret(&platform, &before, oid).await.contains("s3cr3t"));
    assert_eq!(walk(&platform, "true").await, (0, json!({})));
    platform.keyring.promote();
    assert!(key_check::is_same(&platform.app.ports).await.unwrap());
    // LC: tokens signed before, secrets sealed before, API keys hashed before.
    for token in [&before, &owner, &platform.sign_in(&api_key, &oid_text).await] {
        assert!(secret(&platform, token, oid).await.contains("s3cr3t"));
    }
    // The shared secret of the extension, the secret, and the check of the ring; the API key was just hashed anew.
    assert_eq!(walk(&platform, "true").await, (0, json!({"1": 3})));
    assert_eq!(walk(&platform, "false").await, (3, json!({})));
    assert_eq!(walk(&platform, "false").await, (0, json!({})));
    platform.keyring.retire();
    assert!(key_check::is_same(&platform.app.ports).await.unwrap());
    let after = platform.sign_in(&api_key, &oid_text).await;
    assert!(secret(&platform, &after, oid).await.contains("s3cr3t"));
    assert!(!platform.sign_in(&api_key, "-").await.is_empty());
    // A token of the retired key is worth nothing.
    let read = platform.get(&before, &format!("/v1/hive/secret/{oid}/k/data")).await;
    assert_eq!(read.code(), "unauthenticated");
    // The API key is deleted under the name that it always had, whichever key hashes it.
    let listed = platform.get(&after, &format!("/v1/orgs/{oid}/keys")).await.ok();
    let hash = listed["api_keys"].as_object().unwrap().keys().next().unwrap().clone();
    let path = format!("/v1/orgs/{oid}/keys?key_hash={hash}");
    platform.call(&after, "DELETE", &path, &[]).await.ok();
    for oid in [oid_text.as_str(), "-"] {
        let form = [("secret", api_key.as_str()), ("oid", oid)];
        assert_eq!(platform.call("", "POST", "/jwt", &form).await.code(), "unauthenticated");
    }
    let left =
        platform.store.items().into_keys().filter(|key| key.partition.starts_with("api-key#"));
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn two_processes_of_which_one_learns_a_step_later_understand_each_other() {
    let first = Platform::new();
    let (oid, owner) = first.org().await;
    let second = first.beside(FixedKeyring::new());
    // Who learns of a step first, and what both have learned before the next one begins.
    for (one, other) in [(&first, &second), (&second, &first)] {
        for step in [FixedKeyring::add, FixedKeyring::promote] {
            step(&one.keyring);
            understand_each_other(&[one, other], oid, &owner).await;
            step(&other.keyring);
            understand_each_other(&[one, other], oid, &owner).await;
        }
    }
    // Everything is sealed anew by one of them, while the other may still seal with the key before.
    walk(&first, "false").await;
    understand_each_other(&[&first, &second], oid, &owner).await;
}

/// What each of them seals, signs and hashes is opened, verified and found by all.
async fn understand_each_other(processes: &[&Platform], oid: Oid, owner: &str) {
    let record = format!("/v1/hive/secret/{oid}/k/data");
    for maker in processes {
        let value = format!("sealed with {}", maker.keyring.current());
        let data = json!({ "secret": value }).to_string();
        maker.call(owner, "POST", &record, &[("data", &data)]).await.ok();
        let keys = format!("/v1/orgs/{oid}/keys");
        let form = [("key_name", "k"), ("perms", "secret.get,apikey.ctrl")];
        let made = maker.call(owner, "POST", &keys, &form).await.ok();
        let (api_key, hash) = (text(&made, "api_key"), text(&made, "key_hash"));
        let token = maker.sign_in(&api_key, &oid.to_string()).await;
        for reader in processes {
            assert!(secret(reader, &token, oid).await.contains(&value));
            reader.sign_in(&api_key, &oid.to_string()).await;
        }
        // It is found to be deleted by whoever did not make it.
        let path = format!("{keys}?key_hash={hash}");
        processes[0].call(owner, "DELETE", &path, &[]).await.ok();
        let form = [("secret", api_key.as_str()), ("oid", "-")];
        for reader in processes {
            assert_eq!(reader.call("", "POST", "/jwt", &form).await.code(), "unauthenticated");
        }
    }
}

fn text(answer: &Value, member: &str) -> String {
    answer[member].as_str().unwrap_or_else(|| panic!("no {member} in {answer}")).to_owned()
}

#[tokio::test]
async fn an_api_key_that_was_not_used_since_keeps_its_ring_key_needed() {
    let (platform, oid, _, api_key) = filled().await;
    platform.keyring.rotate();
    assert_eq!(walk(&platform, "false").await, (3, json!({"1": 1})));
    platform.sign_in(&api_key, &oid.to_string()).await;
    assert_eq!(walk(&platform, "true").await, (0, json!({})));
    // It moves on with each rotation, and leaves no hash behind.
    platform.keyring.rotate();
    assert_eq!(walk(&platform, "false").await, (3, json!({"2": 1})));
    platform.sign_in(&api_key, "-").await;
    platform.keyring.retire();
    platform.sign_in(&api_key, &oid.to_string()).await;
    let hashes =
        platform.store.items().into_keys().filter(|key| key.partition.starts_with("api-key#"));
    assert_eq!(hashes.count(), 2);
}

#[tokio::test]
async fn a_ring_without_the_key_that_the_store_was_sealed_with_is_wrong() {
    let (platform, ..) = filled().await;
    platform.keyring.rotate();
    assert!(key_check::is_same(&platform.app.ports).await.unwrap());
    platform.keyring.retire();
    assert!(!key_check::is_same(&platform.app.ports).await.unwrap());
}

#[tokio::test]
async fn a_walk_that_breaks_off_anywhere_loses_nothing() {
    for commits in 0..4 {
        let (platform, oid, owner, _) = filled().await;
        platform.keyring.rotate();
        let operator = platform.operator().await;
        let mut cursor = String::new();
        for _ in 0..commits {
            let form = [("cursor", cursor.as_str())];
            let page = platform.call(&operator, "POST", "/v1/keyring/reseal", &form).await.ok();
            cursor = page["next"].as_str().unwrap_or_default().to_owned();
        }
        // The process dies here; the next walk begins at the start.
        assert!(secret(&platform, &owner, oid).await.contains("s3cr3t"));
        walk(&platform, "false").await;
        assert_eq!(walk(&platform, "true").await, (0, json!({"1": 1})));
        assert!(secret(&platform, &owner, oid).await.contains("s3cr3t"));
    }
}
