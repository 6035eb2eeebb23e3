//! Every route, with what nobody should send it: names and fields that are none, and tokens of somebody else.

use annex_core::ids::Oid;
use axum::body::Body;
use axum::http::{HeaderName, Request};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::deletion::{drain, filled, say};
use super::platform::{Answer, Platform, encode};

/// An operation of the API, as it describes itself.
struct Operation {
    method: String,
    path: String,
    /// Names of the parameters of the path.
    parts: Vec<String>,
    /// Names of the fields of the query and of the body.
    fields: Vec<String>,
}

fn names<'a>(list: &'a Value, place: &'a str) -> impl Iterator<Item = String> + 'a {
    let params = list.as_array().into_iter().flatten();
    let here = params.filter(move |param| param["in"] == place);
    here.filter_map(|param| Some(param["name"].as_str()?.to_owned()))
}

fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_str(crate::document()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let mut fields: Vec<String> = names(&operation["parameters"], "query").collect();
            let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
            for (_, body) in bodies {
                let schema = body["schema"]["$ref"].as_str().unwrap_or_default();
                let schema = document.pointer(schema.trim_start_matches('#'));
                let members = schema.and_then(|schema| schema["properties"].as_object());
                fields.extend(members.into_iter().flatten().map(|(name, _)| name.clone()));
            }
            found.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                parts: names(&operation["parameters"], "path").collect(),
                fields,
            });
        }
    }
    found
}

/// What stands in a path or a field in place of something sensible.
fn odd() -> Vec<String> {
    let cursor = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let long = "x".repeat(3_000);
    vec![
        "\0".to_owned(),
        "#".to_owned(),
        "a#b".to_owned(),
        "../..".to_owned(),
        "..".to_owned(),
        "%00%2f".to_owned(),
        "\u{10ffff}\u{fffd}é\r\n".to_owned(),
        "-1".to_owned(),
        "99999999999999999999999".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        r#"["a"]"#.to_owned(),
        "true".to_owned(),
        "x".repeat(1_025),
        long.clone(),
        format!("after:{long}"),
        "after:\0".to_owned(),
        cursor(&format!(r#"["settings","{long}"]"#)),
        cursor(r#"["settings","z"]"#),
        cursor(r#"["invocations","x"]"#),
        cursor(r#"["metered",null]"#),
        cursor(&format!("000000000000001#{long}")),
    ]
}

struct World {
    platform: Platform,
    oid: String,
}

impl World {
    fn part(&self, name: &str) -> String {
        match name {
            "oid" => self.oid.clone(),
            "name" | "extension" | "adapter" => "ext".to_owned(),
            "hive" => "lookup".to_owned(),
            "person" => "wearer".to_owned(),
            "queue" => "dispatch".to_owned(),
            "id" => "8cbe27f4-0000-4000-8000-138cd51389cd".to_owned(),
            other => other.to_owned(),
        }
    }

    /// An operation with one part of its path replaced.
    fn path(&self, operation: &Operation, replaced: Option<(&str, &str)>) -> String {
        operation.parts.iter().fold(operation.path.clone(), |path, name| {
            let value = match replaced {
                Some((part, value)) if part == name => value.to_owned(),
                _ => self.part(name),
            };
            let value = encode(&[("", &value)]).replacen('=', "", 1).replace('+', "%20");
            path.replace(&format!("{{{name}}}"), &value)
        })
    }

    async fn call(&self, token: &str, method: &str, path: &str, form: &[(&str, &str)]) -> Answer {
        let answer = self.platform.call(token, method, path, form).await;
        assert!(
            answer.status.as_u16() < 500,
            "{method} {path:.200} {form:.200?}: {} {:.200}",
            answer.status,
            answer.text
        );
        answer
    }
}

async fn world() -> (World, String) {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    (World { platform, oid: oid.to_string() }, owner)
}

/// Operations that would take away what the others need.
fn takes_away(operation: &Operation) -> bool {
    operation.method == "DELETE"
        && ["/v1/orgs/{oid}", "/v1/extension/definition/{name}"].contains(&operation.path.as_str())
}

#[tokio::test]
async fn nothing_in_a_path_or_a_field_makes_the_platform_fail() {
    let (world, owner) = world().await;
    let operator = world.platform.operator().await;
    for operation in operations() {
        for odd in odd() {
            for token in [&owner, &operator] {
                for part in &operation.parts {
                    let path = world.path(&operation, Some((part, &odd)));
                    world.call(token, &operation.method, &path, &[]).await;
                }
                if takes_away(&operation) {
                    continue;
                }
                let path = world.path(&operation, None);
                for field in &operation.fields {
                    let oid = [("oid", world.oid.as_str()), ("action", "echo"), (field, &odd)];
                    let form: Vec<_> = oid.into_iter().collect();
                    let from = usize::from(["oid", "action"].contains(&field.as_str())) * 2;
                    world.call(token, &operation.method, &path, &form[from..]).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn headers_and_targets_of_any_form_do_not_make_the_platform_fail() {
    let (world, owner) = world().await;
    let path = "/v1/extension/request/ext";
    let form = encode(&[("oid", &world.oid), ("action", "echo")]);
    for name in [
        "idempotency-key",
        "prefer",
        "traceparent",
        "content-type",
        "content-length",
        "content-encoding",
        "cookie",
        "x-http-method-override",
        "x-forwarded-for",
    ] {
        for value in [&b""[..], b",,;=", b"\xff\xfe", b"a, b", b"wait=1e9", &[b'x'; 9_000]] {
            let request = Request::post(path)
                .header("authorization", format!("Bearer {owner}"))
                .header(HeaderName::from_static(name), value)
                .header(HeaderName::from_static(name), value);
            let answer = world.platform.send(request.body(form.clone().into()).unwrap()).await;
            assert!(answer.status.as_u16() < 500, "{name} {value:?} {answer:?}");
        }
    }
    for uri in ["*", "host:80", "http://other/v1/who", "//v1/who", "/v1//who", "/v1/who/", "/.."] {
        for method in ["GET", "OPTIONS", "CONNECT", "TRACE", "get"] {
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            let answer = world.platform.send(request).await;
            assert!(answer.status.is_client_error(), "{method} {uri} {answer:?}");
        }
    }
    let request = Request::get(format!("/v1/orgs/{}", world.oid))
        .header("authorization", format!("Bearer {owner}"))
        .header("x-http-method-override", "DELETE");
    let answer = world.platform.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.ok()["name"], "demo");
}

/// Whether an operation is about one organization, and needs a token.
fn is_about_one(operation: &Operation) -> bool {
    let named = operation.parts.iter().chain(&operation.fields).any(|name| name == "oid");
    let is_open = operation.path == "/v1/orgs/{oid}/url"
        || ["/hook/", "/jwt"].iter().any(|start| operation.path.starts_with(start));
    named && !is_open
}

/// Calls every operation that is about one organization with this token: all are forbidden but those of `allowed`, and
/// nothing changes.
async fn check_forbidden(world: &World, token: &str, allowed: &[&str]) {
    let before = world.platform.store.items();
    for operation in operations().iter().filter(|operation| is_about_one(operation)) {
        let route = format!("{} {}", operation.method, operation.path);
        if allowed.contains(&route.as_str()) {
            continue;
        }
        let path = world.path(operation, None);
        let form =
            [("oid", world.oid.as_str()), ("action", "echo"), ("confirm", "demo"), ("name", "n")];
        let answer = world.call(token, &operation.method, &path, &form).await;
        assert_eq!(answer.code(), "forbidden", "{route}");
    }
    assert_eq!(world.platform.store.items(), before);
}

#[tokio::test]
async fn a_token_of_another_organization_opens_no_route_of_this_one() {
    let (world, _) = world().await;
    let (_, stranger) = world.platform.org().await;
    check_forbidden(&world, &stranger, &[]).await;
}

#[tokio::test]
async fn a_token_with_one_permission_opens_the_routes_of_that_one_only() {
    let (world, owner) = world().await;
    let oid = Oid::parse(&world.oid).unwrap();
    let few = world.platform.user(oid, &owner, "ikey.list").await;
    let allowed = ["GET /v1/installationkeys/{oid}", "GET /v1/installationkeys/{oid}/{iid}"];
    check_forbidden(&world, &few, &allowed).await;
    // What its extension was granted: `org.get`, and its own adapter.
    world
        .platform
        .call(
            &owner,
            "POST",
            "/v1/extension/request/ext",
            &[("oid", &world.oid), ("action", "echo")],
        )
        .await
        .ok();
    let seen = world.platform.extension.seen.lock().unwrap().clone();
    let extension = seen.last().unwrap()["request"]["org"]["jwt"].as_str().unwrap();
    let allowed = [
        "GET /v1/orgs/{oid}",
        "POST /v1/orgs/{oid}/adapters/{extension}",
        "DELETE /v1/orgs/{oid}/adapters/{extension}",
    ];
    check_forbidden(&world, extension, &allowed).await;
}

/// A cursor of an export may stand at an item of anybody.
#[tokio::test]
async fn a_cursor_of_an_export_shows_nothing_and_counts_in_its_organization_only() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = filled(&platform).await;
    let (other, others) = platform.org().await;
    let (mut cursor, mut pages) = (String::new(), 0);
    loop {
        let page =
            platform.get(&owner, &format!("/v1/orgs/{oid}/export?cursor={cursor}")).await.ok();
        let Some(next) = page["next"].as_str() else { break };
        cursor = next.to_owned();
        pages += 1;
        let bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        for word in ["settings", "invocations", "inv#", &oid.to_string()] {
            assert!(!shown.contains(word), "{shown}");
        }
        let path = format!("/v1/orgs/{other}/export?cursor={cursor}");
        assert_eq!(platform.get(&others, &path).await.code(), "bad-request");
    }
    assert!(3 < pages);
    // Of the form that it has inside, or had once.
    for made_up in [r#"["invocations","x"]"#, r#"["invocations",null]"#, r#"["settings","org"]"#] {
        let made_up = URL_SAFE_NO_PAD.encode(made_up);
        let path = format!("/v1/orgs/{oid}/export?cursor={made_up}");
        assert_eq!(platform.get(&owner, &path).await.code(), "bad-request");
    }
}

#[tokio::test]
async fn the_end_of_a_subscription_is_not_replayed_once_there_is_one_again() {
    let platform = Platform::new();
    platform.register("ext", &[]).await;
    let (oid, owner) = platform.org().await;
    platform.subscribe(&owner, oid, "ext").await.ok();
    drain(&platform).await;
    say(&platform, Some(r#"{"error":"not now","retriable":false}"#)).await;
    let path = format!("/v1/orgs/{oid}/subscription/extension/ext");
    platform.call(&owner, "DELETE", &path, &[]).await.ok();
    drain(&platform).await;
    say(&platform, None).await;
    let records = platform.store.items().into_values().filter_map(|item| {
        let record: Value = serde_json::from_slice(&item.data).ok()?;
        (record["k"]["event"]["event"] == "unsubscribe").then_some(record)
    });
    let [record] = records.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(record["s"], "failed");
    let replay = format!("/v1/invocations/{}/replay", record["id"].as_str().unwrap());
    platform.call(&owner, "POST", &replay, &[]).await.ok();

    platform.subscribe(&owner, oid, "ext").await.ok();
    drain(&platform).await;
    let told = platform.extension.seen.lock().unwrap().len();
    let refused = platform.call(&owner, "POST", &replay, &[]).await;
    assert_eq!(refused.code(), "not-replayable");
    assert_eq!(platform.extension.seen.lock().unwrap().len(), told);
}
