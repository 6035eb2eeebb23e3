//! Organizations, their errors, and their usage.

use std::time::Duration;

use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::org_errors;
use annex_core::ports::{Commit, Write};
use annex_core::time::Timestamp;
use serde_json::json;

use super::platform::{NOW, Platform};

const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";

#[tokio::test]
async fn an_operator_makes_reads_renames_and_lists_organizations() {
    let platform = Platform::new();
    let operator = platform.operator().await;
    let path = "/v1/orgs/new";
    let form = [("name", "one"), ("oid", OID), ("loc", "auto")];
    let made = platform.call(&operator, "POST", path, &form).await.ok();
    assert_eq!(made, json!({"success": true, "data": {"oid": OID}}));
    let again = platform.call(&operator, "POST", path, &form).await;
    assert_eq!(again.code(), "conflict");
    let body = r#"{"name": "Two", "description": "JSON works too"}"#;
    platform.json(&operator, "POST", path, body).await.ok();
    let free = platform.get(&operator, "/v1/orgs/new?name=x").await.ok();
    assert_eq!(free, json!({"is_available": true}));

    let token = platform.sign_in("operator-secret", OID).await;
    let name = format!("/v1/orgs/{OID}/name?name=first+%C3%A9&description=d");
    platform.call(&token, "POST", &name, &[]).await.ok();
    let info = platform.get(&token, &format!("/v1/orgs/{OID}")).await.ok();
    assert_eq!(
        (&info["oid"], &info["name"], &info["description"]),
        (&json!(OID), &json!("first é"), &json!("d"))
    );

    let list = |query: &'static str| {
        let (platform, operator) = (&platform, &operator);
        async move {
            let found = platform.get(operator, &format!("/v1/user/orgs?{query}")).await.ok();
            let names = found["orgs"].as_array().unwrap().iter().map(|org| org["name"].clone());
            (names.collect::<Vec<_>>(), found["total"].as_u64().unwrap())
        }
    };
    assert_eq!(list("filter=FIRST").await, (vec![json!("first é")], 1));
    assert_eq!(list("filter=json").await, (vec![json!("Two")], 1));
    assert_eq!(list("limit=1&offset=1").await.1, 2);
    assert_eq!(list("limit=1&offset=2").await, (vec![], 2));
    assert_eq!(list("").await.0.len(), 2);
}

#[tokio::test]
async fn only_the_operator_makes_organizations() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let operator = platform.operator().await;
    platform.call(&operator, "POST", "/v1/orgs/new", &[("name", "x")]).await.ok();
    let user = platform.user(oid, &owner, "*").await;
    // The operator's token for an organization is worth that organization only.
    for token in [&user, &owner] {
        let answer = platform.call(token, "POST", "/v1/orgs/new", &[("name", "x")]).await;
        assert_eq!(answer.code(), "forbidden");
        let listed = platform.get(token, "/v1/user/orgs").await.ok();
        assert_eq!(listed["total"], 1);
    }
    let bad = platform.call(&operator, "POST", "/v1/orgs/new", &[("name", "")]).await;
    assert_eq!(bad.code(), "bad-request");
}

#[tokio::test]
async fn the_hosts_of_an_organization_need_no_token() {
    let platform = Platform::new();
    let urls = platform.get("", &format!("/v1/orgs/{OID}/url")).await.ok();
    assert_eq!(urls["url"]["hooks"], "127.0.0.1:8080/hook");
    assert_eq!(platform.get("", "/v1/orgs/nope/url").await.code(), "bad-request");
}

async fn commit(platform: &Platform, writes: Vec<Write>) {
    platform.app.ports.store.commit(Commit { writes, ..Commit::default() }).await.unwrap();
}

#[tokio::test]
async fn a_failure_that_repeats_is_one_error_until_it_is_dismissed() {
    // LC-061, LC-063
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let (other, stranger) = platform.org().await;
    let start = Timestamp::parse(NOW).unwrap();
    for (component, text, days) in
        [("a/b c", "boom", 0), ("a/b c", "boom", 1), ("a/b c", "bang", 2), ("a/b c#x", "boom", 0)]
    {
        let at = start.plus(Duration::from_secs(days * 86_400));
        commit(&platform, vec![org_errors::write(oid, component, text, at)]).await;
    }
    let path = format!("/v1/errors/{oid}");
    let list = platform.get(&owner, &path).await.ok();
    let seen: Vec<_> = list["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["component"].clone(), e["error"].clone(), e["count"].clone()))
        .collect();
    assert_eq!(seen.len(), 3);
    let boom = list["errors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["component"] == "a/b c" && e["error"] == "boom")
        .unwrap();
    assert_eq!(
        *boom,
        json!({
            "component": "a/b c", "error": "boom", "ts": start.secs(), "last_ts": start.secs() + 86_400,
            "count": 2, "oid": oid.to_string(),
        })
    );
    assert_eq!(
        platform.get(&stranger, &format!("/v1/errors/{other}")).await.ok(),
        json!({"errors": []})
    );

    let component = format!("{path}/a%2Fb%20c");
    platform.call(&owner, "DELETE", &component, &[]).await.ok();
    let left = platform.get(&owner, &path).await.ok();
    assert_eq!(left["errors"].as_array().unwrap().len(), 1);
    assert_eq!(left["errors"][0]["component"], "a/b c#x");
    // Two people may dismiss the same one.
    platform.call(&owner, "DELETE", &component, &[]).await.ok();
    platform.clock.advance(annex_core::limits::ERROR_RETENTION);
    let fresh = platform.sign_in("operator-secret", &oid.to_string()).await;
    assert_eq!(platform.get(&fresh, &path).await.ok(), json!({"errors": []}));
}

fn tally(oid: Oid, at: &str, sku: &str, value: i128) -> Write {
    let at = Timestamp::parse(at).unwrap();
    Write::Tally {
        key: keys::usage_counter(oid, at, sku),
        data: b"{}".to_vec(),
        add: vec![("value".into(), value)],
        expires_at: None,
    }
}

#[tokio::test]
async fn usage_is_summed_over_a_range_by_hour_by_day_or_whole() {
    let platform = Platform::new();
    let (oid, owner) = platform.org().await;
    let (_, stranger) = platform.org().await;
    commit(
        &platform,
        vec![
            tally(oid, "2026-03-03T04:59:59Z", "e:scans", 100),
            tally(oid, "2026-03-03T05:00:00Z", "e:scans", 1),
            tally(oid, "2026-03-03T23:59:59Z", "e:scans", 2),
            tally(oid, "2026-03-04T05:06:07Z", "e:scans", 4),
            tally(oid, "2026-03-04T05:06:07Z", "e:bytes", 9),
        ],
    )
    .await;
    let path = format!("/v1/orgs/{oid}/usage");
    let report = |query: &'static str| {
        let (platform, owner, path) = (&platform, &owner, &path);
        async move {
            let found = platform.get(owner, &format!("{path}{query}")).await.ok();
            let line = |line: &serde_json::Value| {
                let text = |name: &str| line[name].as_str().unwrap().replace(":00:00.000Z", "");
                format!("{} {} {} {}", text("sku"), line["value"], text("from"), text("to"))
            };
            found["usage"].as_array().unwrap().iter().map(line).collect::<Vec<_>>()
        }
    };
    let whole = ["e:bytes 9 2026-03-03T05 2026-03-04T06", "e:scans 7 2026-03-03T05 2026-03-04T06"];
    assert_eq!(report("").await, whole);
    assert_eq!(
        report("?by=day").await,
        [
            "e:scans 3 2026-03-03T05 2026-03-04T00",
            "e:bytes 9 2026-03-04T00 2026-03-04T06",
            "e:scans 4 2026-03-04T00 2026-03-04T06",
        ]
    );
    assert_eq!(
        report("?by=hour&from=2026-03-03T00:00:00Z&to=2026-03-04T00:00:00Z").await,
        [
            "e:scans 100 2026-03-03T04 2026-03-03T05",
            "e:scans 1 2026-03-03T05 2026-03-03T06",
            "e:scans 2 2026-03-03T23 2026-03-04T00",
        ]
    );
    assert_eq!(report("?from=2026-03-04T00:00:00Z&to=2026-03-04T00:00:00Z").await, [""; 0]);
    assert_eq!(platform.get(&owner, &format!("{path}?by=week")).await.code(), "bad-request");
    assert_eq!(platform.get(&owner, &format!("{path}?from=0")).await.code(), "bad-request");
    assert_eq!(platform.get(&stranger, &path).await.code(), "forbidden");

    let overview = platform.get(&owner, &format!("/v1/usage/{oid}")).await.ok();
    assert_eq!(
        overview["usage"],
        json!({
            "2026-03-03": {"e:scans": 103}, "2026-03-04": {"e:bytes": 9, "e:scans": 4},
        })
    );
}
