//! Two organizations with the same ids for everything else share nothing.

use annex_tests::extension::{Extension, Reply, echo};
use annex_tests::platform::{Tenant, World};
use serde_json::{Value, json};

const KEY: [(&str, &str); 1] = [("idempotency-key", "the-same-key")];

/// Two organizations that are subscribed to `ext`.
async fn two(extension: &Extension) -> (World, [Tenant; 2]) {
    let (world, one) = World::with(extension).await;
    let other = world.operator.tenant("demo").await;
    other.subscribe("ext").await;
    assert_ne!(one.oid, other.oid);
    (world, [one, other])
}

#[tokio::test]
async fn one_idempotency_key_in_two_organizations_is_two_calls() {
    let extension = Extension::echo().await;
    let (_world, [one, other]) = two(&extension).await;
    let first = one.call_with("ext", "echo", r#"{"text":"one"}"#, &KEY).await;
    // Other data, which under one key would be a conflict.
    let second = other.call_with("ext", "echo", r#"{"text":"other"}"#, &KEY).await;
    assert_eq!(first.json()["data"]["text"], "one");
    assert_eq!(second.json()["data"]["text"], "other");
    let id = |answer: &annex_tests::client::Answer| {
        answer.header("annex-invocation-id").unwrap().to_owned()
    };
    assert_ne!(id(&first), id(&second));
    let requests = extension.requests("echo");
    assert_eq!(requests.len(), 2);
    assert_ne!(requests[0].key(), requests[1].key());
    for (request, tenant) in requests.iter().zip([&one, &other]) {
        assert_eq!(request.oid(), tenant.oid);
    }
    // A record is read by its own organization only.
    for (tenant, own, foreign) in [(&one, &first, &second), (&other, &second, &first)] {
        let read = async |id: &str| tenant.get(&format!("/v1/invocations/{id}")).await.status;
        assert_eq!(read(&id(own)).await, 200);
        assert_eq!(read(&id(foreign)).await, 404);
    }
}

#[tokio::test]
async fn one_metric_key_in_two_organizations_is_metered_in_each() {
    let extension = Extension::start(|message| async move {
        let value = &message.value["request"]["data"]["number"];
        let metrics =
            json!({"idempotent_key": "same", "metrics": [{"sku": "scans", "value": value}]});
        Reply::ok(&format!(r#""data":{{}},"metrics":{metrics}"#))
    });
    let extension = extension.await;
    let (world, [one, other]) = two(&extension).await;
    for (tenant, number) in [(&one, 3), (&other, 5), (&one, 100), (&other, 100)] {
        tenant.call("ext", "echo", &format!(r#"{{"number":{number}}}"#)).await.ok();
    }
    one.await_usage(&[("ext:scans", 3)]).await;
    other.await_usage(&[("ext:scans", 5)]).await;
    world.settled().await;
    assert_eq!(one.usage().await, [("ext:scans".to_owned(), 3)]);

    // Nor do two extensions share a key, or a SKU.
    world.operator.register("second", &extension).await;
    one.subscribe("second").await;
    one.call("second", "echo", r#"{"number":7}"#).await.ok();
    one.await_usage(&[("ext:scans", 3), ("second:scans", 7)]).await;
    assert_eq!(other.usage().await, [("ext:scans".to_owned(), 5)]);
}

#[tokio::test]
async fn a_secret_and_a_configuration_of_one_name_are_each_organizations_own() {
    let extension = Extension::start(|_| async { Reply::data("{}") }).await;
    let (_world, tenants) = two(&extension).await;
    let values = ["value-of-the-first", "value-of-the-other"];
    for (tenant, value) in tenants.iter().zip(values) {
        tenant.set_secret("vendor", value).await;
        let path = format!("/v1/hive/extension_config/{}/ext/data", tenant.oid);
        let config = json!({"api_key": "hive://secret/vendor", "note": value}).to_string();
        tenant.form("POST", &path, &[("data", &config)]).await.ok();
    }
    for _ in 0..2 {
        for (tenant, value) in tenants.iter().zip(values) {
            let data = r#"{"key":"hive://secret/vendor"}"#;
            tenant.call("ext", "echo", data).await.ok();
            let request = extension.requests("echo").pop().unwrap();
            assert_eq!(request.data(), format!(r#"{{"key":"{value}"}}"#));
            let config = json!({"api_key": value, "note": value});
            assert_eq!(request.value["request"]["config"], config);
        }
    }
}

// covers: LC-061
#[tokio::test]
async fn one_failure_in_two_organizations_is_an_error_of_each() {
    let extension = Extension::start(|_| async { Reply::status(400, r#"{"error":"no"}"#) }).await;
    let (_world, [one, other]) = two(&extension).await;
    one.call("ext", "echo", "{}").await;
    let filed = [("ext.echo".to_owned(), "no".to_owned())];
    let of_echo = async |tenant: &Tenant| {
        let mut errors = tenant.errors().await;
        errors.retain(|(component, _)| component == "ext.echo");
        errors
    };
    assert_eq!((of_echo(&one).await, of_echo(&other).await), (filed.to_vec(), Vec::new()));
    other.call("ext", "echo", "{}").await;
    one.form("DELETE", &format!("/v1/errors/{}/ext.echo", one.oid), &[]).await.ok();
    assert_eq!((of_echo(&one).await, of_echo(&other).await), (Vec::new(), filed.to_vec()));
}

#[tokio::test]
async fn one_delivery_key_and_event_in_two_organizations_are_stored_in_each() {
    let extension = Extension::echo().await;
    let (_world, tenants) = two(&extension).await;
    let event = br#"{"event_type":"A","id":"same"}"#;
    for tenant in &tenants {
        let made = tenant.form("POST", &format!("/v1/orgs/{}/adapters/ext", tenant.oid), &[]).await;
        let url = made.ok()["url"].as_str().unwrap().to_owned();
        let hook = url.split_once("//").unwrap().1.split_once('/').unwrap().1.to_owned();
        for _ in 0..2 {
            let headers = [("content-type", "application/json"), KEY[0]];
            let bare = tenant.with_token("");
            bare.send("POST", &format!("/{hook}"), &headers, &event[..]).await.ok();
        }
    }
    for tenant in &tenants {
        let page = tenant.get(&format!("/v1/orgs/{}/events", tenant.oid)).await.ok();
        let events: Vec<&Value> = page["events"].as_array().unwrap().iter().collect();
        assert_eq!(events.len(), 1, "{page}");
        assert_eq!(events[0]["routing"]["oid"], tenant.oid);
    }
}

#[tokio::test]
async fn no_token_of_one_organization_opens_another() {
    let extension = Extension::echo().await;
    let (_world, [one, other]) = two(&extension).await;
    let keys = format!("/v1/orgs/{}/keys", one.oid);
    let made = one.form("POST", &keys, &[("key_name", "k"), ("perms", "*")]).await.ok();
    let key = made["api_key"].as_str().unwrap();
    let user = one.sign_in(key, &one.oid).await;
    let fields = [("secret", key), ("oid", other.oid.as_str())];
    assert_eq!(user.with_token("").form("POST", "/jwt", &fields).await.fault().0, 401);
    let oid = &other.oid;
    for (method, path) in [
        ("GET", format!("/v1/orgs/{oid}")),
        ("GET", format!("/v1/orgs/{oid}/keys")),
        ("GET", format!("/v1/orgs/{oid}/usage")),
        ("GET", format!("/v1/usage/{oid}")),
        ("GET", format!("/v1/errors/{oid}")),
        ("GET", format!("/v1/orgs/{oid}/events")),
        ("GET", format!("/v1/orgs/{oid}/subscriptions")),
        ("GET", format!("/v1/hive/secret/{oid}")),
        ("GET", format!("/v1/installationkeys/{oid}")),
        ("POST", format!("/v1/hive/secret/{oid}/x/data")),
        ("POST", format!("/v1/orgs/{oid}/subscription/extension/ext")),
        ("DELETE", format!("/v1/orgs/{oid}/subscription/extension/ext")),
        ("DELETE", format!("/v1/errors/{oid}/ext.echo")),
    ] {
        let (status, code, _) = user.form(method, &path, &[]).await.fault();
        assert_eq!((status, code.as_str()), (403, "forbidden"), "{method} {path}");
    }
    let fields = [("oid", oid.as_str()), ("action", "echo"), ("data", "{}")];
    assert_eq!(user.form("POST", "/v1/extension/request/ext", &fields).await.fault().0, 403);
    // The token that the extension got is of its organization as well.
    one.call("ext", "echo", "{}").await.ok();
    let request = extension.requests("echo").pop().unwrap();
    let token = request.value["request"]["org"]["jwt"].as_str().unwrap();
    let extension_of_one = user.with_token(token);
    assert_eq!(extension_of_one.get(&format!("/v1/orgs/{oid}")).await.fault().0, 403);
    // It answers well all the same.
    assert!(matches!(echo(&request), Reply::Status(200, _)));
}
