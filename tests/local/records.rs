//! The API that is Annex's own: records, waiting, usage by time, errors, and its description.

use std::time::{Duration, Instant};

use annex_core::ports::Clock as _;
use annex_tests::client::Answer;
use annex_tests::extension::{Extension, Reply};
use annex_tests::platform::World;
use annex_tests::wait::until;
use serde_json::{Value, json};

#[tokio::test]
async fn a_record_has_the_members_that_are_promised_and_no_others() {
    let extension = Extension::start(|message| async move {
        match message.value["request"]["data"]["text"].as_str() {
            Some("fail") => Reply::status(400, r#"{"error":"the extension says no"}"#),
            Some("shed") => Reply::status(429, ""),
            _ => Reply::data(r#"{"z":1,"a":[]}"#),
        }
    });
    let extension = extension.await;
    let (_world, tenant) = World::with(&extension).await;
    let members = |record: &Value| {
        let names: Vec<_> = record.as_object().unwrap().keys().cloned().collect();
        names.join(" ")
    };
    let id = tenant.call_async("ext", "echo", "{}").await;
    let record = tenant.ended(&id).await;
    assert_eq!(members(&record), "id status data created_at finished_at");
    assert_eq!((&record["id"], &record["status"]), (&id.into(), &"succeeded".into()));
    assert_eq!(record["data"], json!({"z": 1, "a": []}));
    let time = |name: &str| record[name].as_str().unwrap().to_owned();
    assert!(time("created_at") <= time("finished_at"));
    assert!(time("created_at").ends_with('Z') && time("created_at").len() == 24);

    let id = tenant.call_async("ext", "echo", r#"{"text":"fail"}"#).await;
    let record = tenant.ended(&id).await;
    assert_eq!(members(&record), "id status error created_at finished_at");
    assert_eq!(record["error"], "the extension says no");

    let id = tenant.call_async("ext", "echo", r#"{"text":"shed"}"#).await;
    let record = until("a 429", || async {
        let record = tenant.record(&id).await;
        (record["status"] == "waiting").then_some(record)
    });
    assert_eq!(members(&record.await), "id status created_at");

    for id in ["nonsense", "00000000-0000-0000-0000-000000000000", "..", "%00"] {
        assert_eq!(tenant.get(&format!("/v1/invocations/{id}")).await.fault().0, 404, "{id}");
    }
}

#[tokio::test]
async fn a_caller_waits_as_long_as_it_prefers() {
    let extension = Extension::start(|message| async move {
        match message.action() {
            "echo" => std::future::pending().await,
            _ => Reply::data("{}"),
        }
    });
    let extension = extension.await;
    let (_world, tenant) = World::with(&extension).await;
    for (prefer, secs) in [
        ("wait=0", 0),
        ("wait=1", 1),
        ("respond-async", 0),
        ("respond-async, wait=1", 1),
        ("nonsense, wait=1", 1),
    ] {
        let began = Instant::now();
        let answer = tenant.call_with("ext", "echo", "{}", &[("prefer", prefer)]).await;
        let took = began.elapsed();
        assert_eq!(answer.status, 202, "{prefer}");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(answer.header("location"), Some(format!("/v1/invocations/{id}").as_str()));
        assert!(matches!(answer.json()["status"].as_str(), Some("queued" | "running")));
        // The upper bound is for a machine that is busy.
        assert!(
            Duration::from_secs(secs) <= took && took < Duration::from_secs(secs + 8),
            "{prefer}: {took:?}"
        );
    }
    // Every call goes on, whoever waits.
    extension.await_requests("echo", 5).await;
}

#[tokio::test]
async fn a_wait_that_is_garbage_or_longer_than_allowed_still_gets_the_answer() {
    let extension = Extension::echo().await;
    let (_world, tenant) = World::with(&extension).await;
    for prefer in [
        "wait=25",
        "wait=26",
        "wait=1e9",
        "wait=-1",
        "wait=",
        "wait",
        ",,,",
        "\u{7e}",
        "wait=99999999999999999999",
    ] {
        let answer = tenant.call_with("ext", "echo", "{}", &[("prefer", prefer)]).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"data":{}}"#.to_owned()), "{prefer}");
    }
}

#[tokio::test]
async fn each_recorded_unit_stands_in_exactly_one_entry_of_a_usage_report() {
    let extension = Extension::start(|_| async {
        Reply::ok(r#""metrics":{"metrics":[{"sku":"bytes","value":40},{"sku":"scans","value":2}]}"#)
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    tenant.await_usage(&[("ext:bytes", 40), ("ext:scans", 2)]).await; // The subscribe event.
    world.settled().await;
    let mut tenant = tenant;
    for hours in [1, 1, 24] {
        world.clock.jump(hours * 3_600);
        // A token lasts an hour.
        tenant = world.operator.tenant_of(&tenant.oid).await;
        tenant.call("ext", "echo", "{}").await.ok();
        world.settled().await;
    }
    let report = async |query: &str| {
        let report = tenant.get(&format!("/v1/orgs/{}/usage{query}", tenant.oid)).await.ok();
        report["usage"].as_array().unwrap().clone()
    };
    let summed = |entries: &[Value], sku: &str| {
        let values = entries.iter().filter(|entry| entry["sku"] == sku);
        let values = values.map(|entry| entry["value"].as_u64().unwrap());
        (values.clone().count(), values.sum::<u64>())
    };
    let now = world.clock.now().secs();
    let from = now - 30 * 3_600;
    // The hours are those at which the four were recorded.
    let by_hour = report(&format!("?from={from}&by=hour")).await;
    assert_eq!(summed(&by_hour, "ext:bytes"), (4, 160));
    assert_eq!(summed(&by_hour, "ext:scans"), (4, 8));
    for entry in &by_hour {
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        assert!(text("from").ends_with(":00:00.000Z") && text("from") < text("to"), "{entry}");
    }
    let by_day = report(&format!("?from={from}&by=day")).await;
    assert_eq!(summed(&by_day, "ext:bytes").1, 160);
    assert!((2..=3).contains(&summed(&by_day, "ext:bytes").0), "{by_day:?}");
    assert_eq!(summed(&report(&format!("?from={from}")).await, "ext:bytes"), (1, 160));
    // Without parameters: the last 24 hours. Two of the four are older.
    assert_eq!(summed(&report("").await, "ext:bytes"), (1, 80));
    // Two ranges that meet at an hour share nothing and miss nothing.
    let middle = (now - 10 * 3_600) / 3_600 * 3_600;
    let older = report(&format!("?from={from}&to={middle}")).await;
    let newer = report(&format!("?from={middle}")).await;
    assert_eq!((summed(&older, "ext:bytes").1, summed(&newer, "ext:bytes").1), (120, 40));
    for query in
        ["by=week", "from=x", "to=NaN", "from=2&to=1", "from=0&to=99999999999", "from=1e30"]
    {
        let path = format!("/v1/orgs/{}/usage?{query}", tenant.oid);
        assert_eq!(tenant.get(&path).await.fault().0, 400, "{query}");
    }
}

// covers: LC-061, LC-063
#[tokio::test]
async fn a_failure_that_repeats_is_one_error_until_it_is_dismissed() {
    let extension = Extension::start(|message| async move {
        match message.value["request"]["data"]["text"].as_str() {
            Some(text) => {
                Reply::status(400, &json!({"error": text, "retriable": false}).to_string())
            }
            None => Reply::data("{}"),
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    let fail = async |text: &str| {
        let data = json!({"text": text}).to_string();
        assert_eq!(
            tenant.call("ext", "echo", &data).await.fault(),
            (400, "extension-error".to_owned(), text.to_owned())
        );
    };
    for _ in 0..3 {
        fail("one").await;
    }
    fail("two").await;
    let path = format!("/v1/errors/{}", tenant.oid);
    let list = async || tenant.get(&path).await.ok()["errors"].as_array().unwrap().clone();
    let mut errors = list().await;
    errors.sort_by_key(|entry| entry["error"].to_string());
    let found: Vec<_> =
        errors.iter().map(|e| (&e["component"], &e["error"], &e["count"])).collect();
    let component = &"ext.echo".into();
    assert_eq!(
        found,
        [(component, &"one".into(), &3.into()), (component, &"two".into(), &1.into())]
    );
    assert!(errors.iter().all(|entry| entry["ts"].is_i64()));

    tenant.form("DELETE", &format!("{path}/ext.echo"), &[]).await.ok();
    assert_eq!(list().await, Vec::<Value>::new());
    // Dismissing what is not there is fine.
    tenant.form("DELETE", &format!("{path}/ext.echo"), &[]).await.ok();
    fail("one").await;
    assert_eq!(list().await[0]["count"], 1);
    world.settled().await;
}

/// Status, code and text of a fault, in the shape that belongs to its path.
#[track_caller]
fn refused(path: &str, answer: &Answer) -> (u16, String, String) {
    if path.starts_with("/api/extensions/") { answer.refusal() } else { answer.fault() }
}

#[tokio::test]
async fn the_description_names_every_route_and_needs_no_token() {
    let world = World::start().await;
    let bare = world.operator.with_token("");
    let health = bare.get("/healthz").await;
    assert_eq!((health.status, health.text()), (200, r#"{"status":"ok"}"#.to_owned()));
    let document = bare.get("/openapi.json").await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    let oid = "8cbe27f4-0000-4000-8000-138cd51389cd";
    for (path, methods) in paths {
        // Each one that is described is there: it asks for a token, or says what is wrong, as JSON.
        let concrete = path
            .replace("{oid}", oid)
            .replace("{hive}", "secret")
            .replace("{id}", oid)
            .replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            let answer = bare.form(&method.to_uppercase(), &concrete, &[]).await;
            assert_ne!(answer.status, 405, "{method} {path}");
            if answer.status != 200 {
                let (_, code, text) = refused(path, &answer);
                assert!(!text.starts_with("there is no route"), "{method} {path}: {code}");
            }
        }
        // And no others.
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if methods.get(method.to_lowercase()).is_none() {
                let answer = bare.form(method, &concrete, &[]).await;
                let (status, code, _) = refused(path, &answer);
                assert_eq!((status, code.as_str()), (405, "method-not-allowed"), "{method} {path}");
            }
        }
    }
    for path in [
        "/jwt",
        "/v1/orgs/new",
        "/v1/orgs/{oid}",
        "/v1/orgs/{oid}/keys",
        "/v1/errors/{oid}",
        "/v1/errors/{oid}/{component}",
        "/v1/usage/{oid}",
        "/v1/orgs/{oid}/usage",
        "/v1/who",
        "/v1/user/orgs",
        "/v1/extension/definition",
        "/v1/extension/request/{name}",
        "/v1/extension/schema/{name}",
        "/v1/orgs/{oid}/subscriptions",
        "/v1/orgs/{oid}/subscription/extension/{name}",
        "/v1/hive/{hive}/{oid}",
        "/v1/hive/{hive}/{oid}/{name}/data",
        "/v1/hive/{hive}/{oid}/{name}/mtd",
        "/v1/hive/{hive}/{oid}/{name}/validate",
        "/v1/invocations/{id}",
        "/healthz",
        "/openapi.json",
    ] {
        assert!(paths.contains_key(path), "{path} is not described");
    }
}
