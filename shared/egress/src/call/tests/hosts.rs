//! The request itself: method, URL, headers, answers (AL-029 to AL-037, AL-138 to AL-173, AL-190 to AL-207).

use super::*;

// covers: AL-029, AL-030, AL-031, AL-034
#[tokio::test]
async fn request_is_read_strictly() {
    let scene = Scene::new();
    assert_eq!(scene.ask_text("{").await, json!({"error": "request is not JSON"}));
    refused(
        to_vendor(json!({"auth": {"authType": "bearer", "token": "t", "scheme": "x"}})),
        "invalid request: auth.scheme: unknown field (the app may be built with a newer SDK than \
         this platform runs)",
    )
    .await;
    refused(
        to_vendor(json!({"method": "TRACE", "timeoutMs": "x"})),
        "invalid request: method: expected one of GET, POST, PUT, PATCH, DELETE, HEAD; \
         timeoutMs: expected a whole number from 100 to 30000",
    )
    .await;
}

// The objects of an auth have a test of their own.
// covers: AL-032, AL-033, AL-139
#[tokio::test]
async fn unknown_field_is_refused_in_every_object_of_a_request() {
    let body = |body: Value| json!({"body": body});
    let sign = |x: Value, key: Value| {
        let mut sign = json!({"header": "x-s", "algorithm": "sha1", "key": key});
        sign.as_object_mut().unwrap().extend(x.as_object().unwrap().clone());
        json!({"sign": sign})
    };
    for (fields, path) in [
        (json!({"x": 1}), "x"),
        (body(json!({"json": 1, "x": 1})), "body.x"),
        (body(json!({"jsonText": "1", "x": 1})), "body.x"),
        (body(json!({"form": {"a": "1"}, "x": 1})), "body.x"),
        (body(json!({"base64": "", "x": 1})), "body.x"),
        (body(json!({"document": "d", "x": 1})), "body.x"),
        (body(json!({"multipart": [], "x": 1})), "body.x"),
        (body(json!({"multipart": [{"name": "a", "value": "b", "x": 1}]})), "body.multipart.0.x"),
        (
            body(json!({"multipart": [{"name": "a", "document": "b", "x": 1}]})),
            "body.multipart.0.x",
        ),
        (sign(json!({"x": 1}), json!({"text": "k"})), "sign.x"),
        (sign(json!({}), json!({"text": "k", "x": 1})), "sign.key.x"),
        (sign(json!({}), json!({"secret": "apiKey", "x": 1})), "sign.key.x"),
    ] {
        let text = format!(
            "invalid request: {path}: unknown field (the app may be built with a newer SDK than \
             this platform runs)"
        );
        refused(to_vendor(fields), &text).await;
    }
}

// Names that are the module's own.
// covers: AL-035, AL-036, AL-037
#[tokio::test]
async fn objects_of_the_modules_own_take_any_name() {
    let jwt =
        json!({"authType": "jwt", "secret": "s", "payload": {"any": 1}, "jwtHeaders": {"k": 2}});
    let form = json!({"form": {"constructor": "a", "": "b"}});
    let request = json!({"method": "POST", "headers": {"x-any": "1"}, "body": form, "auth": jwt});
    let sent = Scene::new().sends(&to_vendor(request)).await;
    assert_eq!(sent.text(), "constructor=a&=b");
    assert_eq!(sent.header("x-any"), Some("1"));
}

// What is sent where nothing is said; the methods.
// covers: AL-138, AL-140, AL-141, AL-152, AL-157, AL-160, AL-162, AL-163
#[tokio::test]
async fn least_request_sends_the_hosts_own_headers_alone() {
    let sent = Scene::new().sends(&to_vendor(json!({}))).await;
    let headers = [("host", "api.vendor.example"), ("user-agent", "Aletheia-Apps/1")];
    assert_eq!(
        sent,
        Sent {
            method: "GET".into(),
            url: "https://api.vendor.example/v1".into(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).to_vec(),
            body: vec![],
            is_streamed: false,
            timeout: Duration::from_secs(10),
        }
    );
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] {
        let sent = Scene::new().sends(&to_vendor(json!({"method": method}))).await;
        assert_eq!(sent.method, method);
    }
    for method in ["get", "OPTIONS", "CONNECT", ""] {
        refused_with(to_vendor(json!({"method": method})), "invalid request: method: ").await;
    }
}

// covers: AL-068, AL-142, AL-143, AL-144, AL-145, AL-146, AL-147, AL-148, AL-149, AL-150, AL-151, AL-190
#[tokio::test]
async fn url_is_checked_once_it_is_filled() {
    let url = |url: &str| json!({"url": url});
    let long = |chars: usize| format!("https://api.vendor.example/{}", "a".repeat(chars - 27));
    assert_eq!(Scene::new().sends(&url(&long(4_096))).await.url, long(4_096));
    refused(url(&long(4_097)), "invalid request: url: expected 1 to 4096 characters").await;
    let dots = "URL must not have a . or .. segment in its path";
    for path in ["/v1/../admin", "/v1/./x", "/v1/%2e%2e/admin", "/v1/..%2Fadmin", "/v1/.."] {
        refused(url(&format!("https://api.vendor.example{path}")), dots).await;
    }
    refused(url("https://api.vendor.example/v1/{{secret:dots:TAG}}/x"), dots).await;
    for path in ["/v1/report..pdf", "/v1?p=../x"] {
        let sent = Scene::new().sends(&url(&format!("https://api.vendor.example{path}"))).await;
        assert_eq!(sent.url, format!("https://api.vendor.example{path}"));
    }
    for wrong in ["http://api.vendor.example/", "https://u:p@api.vendor.example/", "ftp://x/"] {
        refused_with(url(wrong), "URL ").await;
    }
    let given = Given { allow_private_networks: true, ..Given::default() };
    let plain = Scene::given(given).sends(&url("http://api.vendor.example/v1")).await;
    assert_eq!(plain.url, "http://api.vendor.example/v1");
    refused(url("{{secret:base:TAG}}/v1"), "URL is not valid").await;
    let fragment = Scene::new().sends(&url("https://API.Vendor.Example/v1?a=1#frag")).await;
    assert_eq!(fragment.url, "https://api.vendor.example/v1?a=1");
}

// covers: AL-190, AL-197, AL-199, AL-200, AL-201, AL-202, AL-203, AL-204
#[tokio::test]
async fn host_and_port_must_be_approved() {
    let url = |url: &str| json!({"url": url});
    for (asked, text) in [
        ("https://other.example/", "host other.example is not in the hosts the install approved"),
        (
            "https://x.api.vendor.example/",
            "host x.api.vendor.example is not in the hosts the install approved",
        ),
        ("https://wild.example/", "host wild.example is not in the hosts the install approved"),
        (
            "https://api.vendor.example:8443/",
            "port 8443 of api.vendor.example is not in the hosts the install approved",
        ),
        (
            "https://alt.vendor.example/",
            "port 443 of alt.vendor.example is not in the hosts the install approved",
        ),
    ] {
        refused(url(asked), text).await;
    }
    for asked in
        ["https://a.wild.example/", "https://a.b.wild.example/", "https://alt.vendor.example:8443/"]
    {
        assert_eq!(Scene::new().sends(&url(asked)).await.url, asked);
    }
}

// covers: AL-153, AL-154, AL-157, AL-158, AL-190
#[tokio::test]
async fn headers_are_lower_cased_and_the_hosts_own_are_refused() {
    let headers = json!({"X-Foo": " v ", "User-Agent": "me", "CONTENT-TYPE": "a/b"});
    let request = json!({"method": "POST", "headers": headers, "body": {"json": 1}});
    let sent = Scene::new().sends(&to_vendor(request)).await;
    let found =
        ["x-foo", "user-agent", "content-type", "content-length"].map(|name| sent.header(name));
    assert_eq!(found, [Some("v"), Some("me"), Some("a/b"), Some("1")]);
    for name in ["host", "Content-Length", "Transfer-Encoding", "connection", "Expect", "UPGRADE"] {
        let text = format!("header {} is set by the host alone", name.to_lowercase());
        refused(to_vendor(json!({"headers": {name: "x"}})), &text).await;
    }
    refused(to_vendor(json!({"headers": {"A-b": "1", "a-B": "2"}})), "header a-b is set twice")
        .await;
    refused(to_vendor(json!({"headers": {"a b": "1"}})), "\"a b\" is not a header name").await;
    for value in ["a\r\nx: y", "a\0b", "\u{100}"] {
        let text = "header a has a value that HTTP cannot carry";
        refused(to_vendor(json!({"headers": {"a": value}})), text).await;
    }
    assert_eq!(
        Scene::new()
            .sends(&to_vendor(json!({"headers": {"a": "caf\u{e9}\ttab"}})))
            .await
            .header("a"),
        Some("caf\u{e9}\ttab")
    );
}

// covers: AL-167, AL-168, AL-169, AL-170, AL-171, AL-172, AL-173
#[tokio::test]
async fn any_answer_is_given_as_it_was_asked_for() {
    let headers = [("x-a", "1"), ("content-type", "t/x"), ("X-A", "2")];
    let scene =
        Scene::new().answering([answer(404, &headers, "\u{feff}n\u{f6}"), answer(500, &[], "ab")]);
    assert_eq!(
        scene.ask(&to_vendor(json!({}))).await,
        json!({
            "status": 404,
            "headers": {"x-a": "1, 2", "content-type": "t/x"},
            "bodyText": "n\u{f6}",
        })
    );
    assert_eq!(
        scene.ask(&to_vendor(json!({"responseAs": "base64"}))).await,
        json!({"status": 500, "headers": {}, "bodyBase64": "YWI="})
    );
    let bytes = bytes::Bytes::from_static(b"a\xffb");
    let scene = Scene::new().answering([Answer { status: 200, headers: vec![], body: bytes }]);
    assert_eq!(scene.ask(&to_vendor(json!({}))).await["bodyText"], "a\u{fffd}b");
    refused_with(to_vendor(json!({"responseAs": "json"})), "invalid request: responseAs: ").await;
}

// covers: AL-125, AL-174, AL-178, AL-191
#[tokio::test]
async fn failure_in_transit_says_how_far_it_got() {
    for (network, word) in [(Network::NotSent, "not_sent"), (Network::Unknown, "unknown")] {
        let scene = Scene::new();
        let failed = Err(fault("it broke for key-12345678", Some(network)));
        scene.vendor.answers.lock().unwrap().push_back(failed);
        assert_eq!(
            scene.ask(&to_vendor(json!({}))).await,
            json!({"error": "it broke for [secret:apiKey]", "network": word})
        );
    }
    let scene = Scene::new();
    let refused = Err(fault("the host has an address that is not permitted", None));
    scene.vendor.answers.lock().unwrap().push_back(refused);
    let answered = scene.ask(&to_vendor(json!({}))).await;
    assert_eq!(answered, json!({"error": "the host has an address that is not permitted"}));
}
