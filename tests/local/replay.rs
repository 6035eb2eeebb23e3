//! A failed call made once more: as a new one, with the data of then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annex_tests::client::Answer;
use annex_tests::extension::{Extension, Reply, echo};
use annex_tests::platform::{Tenant, World};
use serde_json::{Value, json};

/// An extension that refuses every request for good until it is mended.
async fn broken() -> (Extension, Arc<AtomicBool>) {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let extension = Extension::start(move |message| {
        let works = message.action().is_empty() || is_mended.load(Ordering::SeqCst);
        async move {
            if works {
                return echo(&message);
            }
            Reply::status(400, r#"{"error":"out of order","retriable":false}"#)
        }
    })
    .await;
    (extension, mended)
}

fn id_of(answer: &Answer) -> String {
    answer.header("annex-invocation-id").unwrap().to_owned()
}

async fn replay(tenant: &Tenant, id: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![("content-type", annex_tests::client::FORM)];
    all.extend(headers);
    tenant.send("POST", &format!("/v1/invocations/{id}/replay"), &all, "").await
}

#[tokio::test]
async fn a_failed_call_is_made_once_more_with_its_data_and_the_old_one_stays() {
    let (extension, mended) = broken().await;
    let (_world, tenant) = World::with(&extension).await;
    tenant.set_secret("vendor", "value-of-then").await;
    let data = r#"{"key":"hive://secret/vendor","any":{"n":1152921506151679042,"f":0.10}}"#;
    let failed = tenant.call("ext", "echo", data).await;
    assert_eq!(failed.fault().1, "extension-error");
    let old = id_of(&failed);
    let before = tenant.record(&old).await;

    // It fails again, which is another record.
    let again = replay(&tenant, &old, &[]).await;
    assert_eq!(again.fault(), failed.fault());
    assert_ne!(id_of(&again), old);

    mended.store(true, Ordering::SeqCst);
    tenant.set_secret("vendor", "value-of-now").await;
    let answer = replay(&tenant, &old, &[]).await;
    assert_eq!(
        answer.text(),
        r#"{"data":{"key":"[secret:vendor]","any":{"n":1152921506151679042,"f":0.10}}}"#
    );
    let record = tenant.record(&id_of(&answer)).await;
    assert_eq!((&record["status"], &record["replay_of"]), (&json!("succeeded"), &json!(old)));
    assert_eq!(tenant.record(&old).await, before);
    assert!(before.get("replay_of").is_none());

    let requests = extension.requests("echo");
    assert_eq!(requests.len(), 3);
    let keys: std::collections::BTreeSet<_> = requests.iter().map(|r| r.key()).collect();
    assert_eq!(keys.len(), 3, "each has a key of its own");
    assert_eq!(requests[2].key(), id_of(&answer));
    assert_eq!(requests[2].value["request"]["data"]["key"], "value-of-now");
    // A replay that failed can be replayed itself.
    assert_eq!(replay(&tenant, &id_of(&again), &[]).await.status, 200);
}

#[tokio::test]
async fn a_repeat_of_a_replay_under_one_key_replays_once() {
    let (extension, mended) = broken().await;
    let (_world, tenant) = World::with(&extension).await;
    let old = id_of(&tenant.call("ext", "echo", r#"{"text":"a"}"#).await);
    let other = id_of(&tenant.call("ext", "echo", r#"{"text":"a"}"#).await);
    mended.store(true, Ordering::SeqCst);
    let key = [("idempotency-key", "repair-1")];
    let first = replay(&tenant, &old, &key).await;
    first.ok();
    mended.store(false, Ordering::SeqCst);
    let second = replay(&tenant, &old, &key).await;
    assert_eq!((second.text(), id_of(&second)), (first.text(), id_of(&first)));
    assert_eq!(extension.requests("echo").len(), 3);
    // The key is taken for another replay, and for a request.
    assert_eq!(replay(&tenant, &other, &key).await.fault().1, "idempotency-key-conflict");
    let request = tenant.call_with("ext", "echo", r#"{"text":"a"}"#, &key).await;
    assert_eq!(request.fault().1, "idempotency-key-conflict");
    let long = "k".repeat(257);
    let refused = replay(&tenant, &old, &[("idempotency-key", &long)]).await;
    assert_eq!(refused.fault().1, "bad-request");
}

#[tokio::test]
async fn only_a_failed_call_of_the_same_organization_is_replayed_by_who_may_call() {
    let (extension, mended) = broken().await;
    let (world, tenant) = World::with(&extension).await;
    let failed = id_of(&tenant.call("ext", "echo", "{}").await);
    mended.store(true, Ordering::SeqCst);
    let succeeded = id_of(&tenant.call("ext", "echo", "{}").await);
    let refused = replay(&tenant, &succeeded, &[]).await;
    let text = "the invocation has succeeded".to_owned();
    assert_eq!(refused.fault(), (409, "not-replayable".to_owned(), text));
    for unknown in ["01890a5d-ac96-774b-bcce-b302099a8057", "x", "%00"] {
        assert_eq!(replay(&tenant, unknown, &[]).await.fault().1, "not-found", "{unknown}");
    }
    let other = world.operator.tenant("other").await;
    other.subscribe("ext").await;
    assert_eq!(replay(&other, &failed, &[]).await.fault().1, "not-found");

    let keys = format!("/v1/orgs/{}/keys", tenant.oid);
    let made = tenant.form("POST", &keys, &[("perms", "invocation.get")]).await.ok();
    let reader = tenant.sign_in(made["api_key"].as_str().unwrap(), &tenant.oid).await;
    let path = format!("/v1/invocations/{failed}/replay");
    assert_eq!(reader.form("POST", &path, &[]).await.fault().0, 403);
    let named = [("oid", tenant.oid.as_str())];
    assert_eq!(other.form("POST", &path, &named).await.fault().0, 403);
    tenant.form("POST", &path, &named).await.ok();
}

#[tokio::test]
async fn a_call_that_has_not_ended_is_not_replayed() {
    let extension = Extension::start(|message| async move {
        if message.action() == "echo" { Reply::status(429, "") } else { Reply::data("{}") }
    })
    .await;
    let (_world, tenant) = World::with(&extension).await;
    let id = tenant.call_async("ext", "echo", "{}").await;
    extension.await_requests("echo", 1).await;
    let refused = replay(&tenant, &id, &[]).await;
    let text = "the invocation has not ended".to_owned();
    assert_eq!(refused.fault(), (409, "not-replayable".to_owned(), text));
}

#[tokio::test]
async fn large_data_are_replayed_from_where_they_were_kept_and_nobody_has_to_wait() {
    let (extension, mended) = broken().await;
    let (_world, tenant) = World::with(&extension).await;
    let data = json!({"text": "x".repeat(300_000)}).to_string();
    let old = id_of(&tenant.call("ext", "echo", &data).await);
    mended.store(true, Ordering::SeqCst);
    let answer = replay(&tenant, &old, &[("prefer", "respond-async")]).await;
    assert_eq!(answer.status, 202);
    let id = id_of(&answer);
    assert_eq!(answer.header("location"), Some(format!("/v1/invocations/{id}").as_str()));
    let ended = tenant.ended(&id).await;
    assert_eq!((&ended["status"], &ended["replay_of"]), (&json!("succeeded"), &json!(old)));
    assert_eq!(extension.requests("echo")[1].data(), data);
}

#[tokio::test]
async fn a_continuation_is_replayed_with_its_state_at_its_level() {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let state = json!({"not in the schema": "hive://secret/vendor", "pad": "y".repeat(70_000)});
    let asked = state.clone();
    let extension = Extension::start(move |message| {
        let works = is_mended.load(Ordering::SeqCst);
        let asked = asked.clone();
        async move {
            let more = |state: &Value| {
                let asks = json!([{"in_delay_sec": 0, "action": "more", "state": state}]);
                Reply::ok(&format!(r#""data":{{}},"continuations":{asks}"#))
            };
            match (message.action(), works) {
                ("echo", _) => more(&asked),
                ("more", false) => Reply::status(400, r#"{"error":"no","retriable":false}"#),
                ("more", true) if message.data() != "{}" => more(&json!({})),
                _ => Reply::data("{}"),
            }
        }
    })
    .await;
    let (world, tenant) = World::with(&extension).await;
    tenant.set_secret("vendor", "a-secret-value").await;
    tenant.call("ext", "echo", "{}").await.ok();
    tenant.await_error("ext.more", "no").await;
    // Nobody is told its id but the log: it is found in the store.
    let old = failed_record(&world, &tenant).await;
    mended.store(true, Ordering::SeqCst);
    let answer = replay(&tenant, &old, &[]).await;
    answer.ok();
    let requests = extension.await_requests("more", 3).await;
    assert_eq!(requests[1].data(), state.to_string());
    assert_eq!(requests[1].key(), id_of(&answer));
    // The continuation of a continuation is one level deeper than that one.
    assert_eq!(requests[2].key(), format!("{}:2", id_of(&answer)));
}

/// The id of the one record of an organization that has failed.
async fn failed_record(world: &World, tenant: &Tenant) -> String {
    use annex_core::ports::{Scan, Store as _};
    let scan = Scan { prefix: format!("inv#{}", tenant.oid), cursor: None, limit: 1_000 };
    let page = world.store().scan(scan).await.unwrap();
    let read =
        |item: &annex_core::ports::Item| -> Value { serde_json::from_slice(&item.data).unwrap() };
    let mut failed = page.items.iter().map(|(_, item)| read(item)).filter(|r| r["s"] == "failed");
    let id = failed.next().unwrap()["id"].as_str().unwrap().to_owned();
    assert!(failed.next().is_none());
    id
}

#[tokio::test]
async fn an_event_that_failed_is_replayed() {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let extension = Extension::start(move |_| {
        let works = is_mended.load(Ordering::SeqCst);
        async move {
            if works {
                return Reply::data("{}");
            }
            Reply::status(400, r#"{"error":"not ready","retriable":false}"#)
        }
    })
    .await;
    let (world, tenant) = World::with(&extension).await;
    tenant.await_error("ext.subscribe", "not ready").await;
    let old = failed_record(&world, &tenant).await;
    mended.store(true, Ordering::SeqCst);
    replay(&tenant, &old, &[]).await.ok();
    let events: Vec<_> = extension.seen().iter().map(|m| m.event().to_owned()).collect();
    assert_eq!(events, ["subscribe", "subscribe"]);
}

#[tokio::test]
async fn data_go_through_the_schema_of_now_and_an_impersonated_action_needs_a_user_again() {
    let schema = Arc::new(std::sync::Mutex::new(json!({"parameters": {"fields": {
        "text": {"data_type": "string"}}}})));
    let current = Arc::clone(&schema);
    let extension = Extension::start_bare(move |message| {
        let action = current.lock().unwrap().clone();
        async move {
            if message.value.get("schema_request").is_some() {
                return Reply::data(&json!({"request_schema": {"echo": action}}).to_string());
            }
            Reply::status(400, r#"{"error":"out of order","retriable":false}"#)
        }
    })
    .await;
    let (world, tenant) = World::with(&extension).await;
    let old = id_of(&tenant.call("ext", "echo", r#"{"text":"a"}"#).await);
    // A definition that is written anew has its schema asked for anew.
    let anew = || async {
        let definition = json!({"name": "ext", "url": extension.url()}).to_string();
        world.operator.json("PUT", "/v1/extension/definition", &definition).await.ok();
    };
    *schema.lock().unwrap() = json!({"parameters": {"fields": {"other": {"data_type": "string"}}}});
    anew().await;
    let refused = replay(&tenant, &old, &[]).await;
    assert_eq!(refused.fault().1, "schema-refused");
    // LC-005: a refusal is filed like that of a request.
    tenant.await_error("ext.echo", &refused.fault().2).await;
    *schema.lock().unwrap() = json!({"is_impersonated": true, "parameters": {"fields": {
        "text": {"data_type": "string"}}}});
    anew().await;
    assert_eq!(replay(&tenant, &old, &[]).await.fault().1, "impersonation-refused");
    let path = format!("/v1/invocations/{old}/replay");
    let user = [("impersonator_jwt", tenant.token.as_str())];
    assert_eq!(tenant.form("POST", &path, &user).await.fault().1, "extension-error");
    let last = extension.requests("echo").pop().unwrap();
    assert_eq!(last.value["request"]["org"]["jwt"], tenant.token);
    // What is gone cannot be called.
    tenant
        .form("DELETE", &format!("/v1/orgs/{}/subscription/extension/ext", tenant.oid), &[])
        .await
        .ok();
    assert_eq!(replay(&tenant, &old, &[]).await.fault().1, "not-subscribed");
}
