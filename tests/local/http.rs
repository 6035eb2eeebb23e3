//! Requests that no client should send: each is answered with JSON that says what is wrong, or not at all.

use std::time::Duration;

use annex_core::limits::API_BODY_BYTES_MAX;
use annex_tests::client::{Answer, FORM, JSON};
use annex_tests::extension::Extension;
use annex_tests::platform::{Tenant, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn world() -> (Extension, World, Tenant) {
    let extension = Extension::echo().await;
    let (world, tenant) = World::with(&extension).await;
    (extension, world, tenant)
}

fn check(answer: &Answer, status: u16, code: &str, text: &str) {
    assert_eq!(answer.fault(), (status, code.to_owned(), text.to_owned()));
}

#[tokio::test]
async fn a_route_that_is_not_there_is_404_in_json() {
    let (_extension, _world, tenant) = world().await;
    for path in
        ["/", "/v1", "/v2/orgs/new", "/v1/orgs/new/", "//healthz", "/v1/%2e%2e/healthz", "/HEALTHZ"]
    {
        let text = format!("there is no route {path}");
        check(&tenant.get(path).await, 404, "not-found", &text);
    }
    let long = format!("/{}", "x".repeat(20_000));
    let answer = tenant.get(&long).await;
    assert_eq!(answer.fault().0, 404);
    assert!(answer.body.len() < 400, "a path is shown in full");
}

#[tokio::test]
async fn a_method_that_a_route_does_not_answer_is_405_in_json() {
    let (_extension, _world, tenant) = world().await;
    for (method, path) in [
        ("GET", "/jwt"),
        ("DELETE", "/v1/who"),
        ("PATCH", "/v1/extension/request/ext"),
        ("TRACE", "/healthz"),
        ("NONSENSE", "/healthz"),
    ] {
        let text = format!("{path} does not answer {method}");
        check(&tenant.form(method, path, &[]).await, 405, "method-not-allowed", &text);
    }
}

#[tokio::test]
async fn a_missing_or_bad_token_is_401_in_json() {
    let (_extension, _world, tenant) = world().await;
    let bare = tenant.with_token("");
    let answer = bare.get("/v1/who").await;
    check(&answer, 401, "unauthenticated", "a token is needed");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let header =
        async |value: &str| bare.send("GET", "/v1/who", &[("authorization", value)], "").await;
    for value in ["Basic YTpi", "Bearer", "Bearer ", "Bearer x", "Bearer a.b.c", "Bearer ..", ""] {
        assert_eq!(header(value).await.fault().0, 401, "{value}");
    }
    // None of its bytes can be changed, and no other algorithm is believed.
    let token = &tenant.token;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let payload = signed.split_once('.').unwrap().1;
    let none = "eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0";
    for forged in [
        format!("{none}.{payload}."),
        format!("{none}.{payload}.{signature}"),
        format!("{signed}."),
        format!("{signed}.{}", signature.to_uppercase()),
        format!("{token}x"),
        format!("{}.{signature}", signed.replace('J', "K")),
        "x".repeat(70_000 - 5_000),
    ] {
        assert_eq!(tenant.with_token(&forged).get("/v1/who").await.fault().0, 401);
    }
    for (secret, oid) in [("", "-"), ("x", "-"), ("x", tenant.oid.as_str()), ("x", "nonsense")] {
        let answer = bare.form("POST", "/jwt", &[("secret", secret), ("oid", oid)]).await;
        assert!(matches!(answer.fault().0, 400 | 401), "{secret} {oid}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413_in_json() {
    let (_extension, _world, tenant) = world().await;
    let path = "/v1/extension/request/ext";
    let headers = [("content-type", FORM)];
    let mut body = format!("oid={}&action=echo&", tenant.oid).into_bytes();
    body.resize(API_BODY_BYTES_MAX, b'&');
    tenant.send("POST", path, &headers, body.clone()).await.ok();
    body.push(b'&');
    let text = format!("the request body is larger than {API_BODY_BYTES_MAX} bytes");
    check(&tenant.send("POST", path, &headers, body).await, 413, "too-large", &text);
    // In chunks, without a length, and without end.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n",
        tenant.token
    );
    let mut stream = TcpStream::connect(tenant.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n", &vec![b'&'; 1 << 20][..], b"\r\n"].concat();
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        for _ in 0..64 {
            if write.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    let mut answer = vec![0; 12];
    read.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
    sending.abort();
}

#[tokio::test]
async fn a_request_that_is_no_http_is_refused_and_harms_nobody() {
    let (_extension, _world, tenant) = world().await;
    let huge = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5_000));
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET /healthz\r\n\r\n",
        b"GET  /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nbad name: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
        b"POST /jwt HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /jwt HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /jwt HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST /jwt HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        huge.as_bytes(),
        many.as_bytes(),
    ] {
        let answer = tenant.raw(bytes).await;
        let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        let refused = answer.is_empty() || line.starts_with("HTTP/1.1 4");
        assert!(refused, "{:?}: {line}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
    }
    tenant.get("/healthz").await.ok();
}

#[tokio::test]
async fn clients_that_send_slowly_or_go_away_keep_nobody_waiting() {
    let (extension, _world, tenant) = world().await;
    let mut slow = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(tenant.address).await.unwrap();
        let head = "POST /jwt HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nsecret=";
        stream.write_all(&head.as_bytes()[..head.len() * (n % 10) / 10]).await.unwrap();
        slow.push(stream);
    }
    let call = tenant.call("ext", "echo", "{}");
    tokio::time::timeout(Duration::from_secs(10), call).await.unwrap().ok();
    drop(slow);
    // Half a request is no request.
    let body = format!("oid={}&action=echo", tenant.oid);
    let head = format!(
        "POST /v1/extension/request/ext HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        tenant.token,
        body.len() + 1
    );
    let mut stream = TcpStream::connect(tenant.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    let _ = stream.read_to_end(&mut back).await;
    assert!(
        back.is_empty() || back.starts_with(b"HTTP/1.1 400"),
        "{}",
        String::from_utf8_lossy(&back)
    );
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_end_its_call() {
    let extension = Extension::start(|message| async move {
        if message.action() == "echo" {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        annex_tests::extension::Reply::data("7")
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    let key = [("idempotency-key", "k")];
    let call = tenant.try_call("ext", "echo", "{}", &key);
    tokio::select! {
        _ = call => panic!("the extension has not answered yet"),
        _ = extension.await_requests("echo", 1) => {}
    }
    annex_tests::wait::until("the end of the call", || async {
        let answer = tenant.call_with("ext", "echo", "{}", &key).await;
        (answer.status == 200).then(|| assert_eq!(answer.json()["data"], 7))
    })
    .await;
    world.settled().await;
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn fields_that_are_missing_doubled_or_no_text_are_400_in_json() {
    let (extension, _world, tenant) = world().await;
    let path = "/v1/extension/request/ext";
    let oid = tenant.oid.clone();
    let send = async |body: String, kind: &str| {
        let (status, code, text) =
            tenant.send("POST", path, &[("content-type", kind)], body.clone()).await.fault();
        assert!(matches!(status, 400 | 413), "{body}: {status} {code} {text}");
        text
    };
    for (body, text) in [
        (String::new(), "the field oid is missing"),
        (format!("oid={oid}"), "the field action is missing"),
        (format!("oid={oid}&action="), "the field action is missing"),
        (format!("oid={oid}&oid={oid}&action=echo"), "the field oid stands more than once"),
        (
            format!("oid={oid}&action=echo&data=%7B%7D&gzdata=x"),
            "the request has both data and gzdata",
        ),
        (format!("oid={oid}&{}", "a=b&".repeat(300)), "the request has more than 256 fields"),
    ] {
        assert_eq!(send(body, FORM).await, text);
    }
    for bad in ["nonsense", "00000000", "..", "%00", "8cbe27f4-0000-4000-8000-138cd51389c%67"] {
        let text = send(format!("oid={bad}&action=echo"), FORM).await;
        assert!(text.contains("oid") || text.contains("organization"), "{bad}: {text}");
    }
    for bad in ["{", "[]", "null", "\"\"", r#"{"oid":1,"oid":2}"#, "{\"oid\":\"\\ud800\"}"] {
        send(bad.to_owned(), JSON).await;
    }
    assert_eq!(extension.requests("echo").len(), 0);
    // JSON of the same fields works, the data as an object or as a text.
    for data in [r#"{"text":"a"}"#, r#""{\"text\":\"a\"}""#] {
        let body = format!(r#"{{"oid":"{oid}","action":"echo","data":{data}}}"#);
        assert_eq!(tenant.json("POST", path, &body).await.text(), r#"{"data":{"text":"a"}}"#);
    }
}

#[tokio::test]
async fn names_that_are_none_are_refused_and_reach_no_file() {
    let (_extension, world, tenant) = world().await;
    let long = "x".repeat(129);
    for name in
        ["..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a%2Fb", "a%23b", "%00", "a%20b", long.as_str()]
    {
        for path in [
            format!("/v1/extension/schema/{name}"),
            format!("/v1/extension/definition/{name}"),
            format!("/v1/hive/secret/{}/{name}/data", tenant.oid),
            format!("/v1/hive/{name}/{}/x/data", tenant.oid),
        ] {
            let status = tenant.get(&path).await.fault().0;
            assert!(matches!(status, 400 | 404), "{path}: {status}");
        }
    }
    for url in [
        "ftp://example.com/",
        "http://example.com/",
        "https://user:password@example.com/",
        "https://127.0.0.1:99999/",
        "//example.com",
        "",
        "https://",
    ] {
        let definition = serde_json::json!({"name": "x", "url": url, "secret": "s".repeat(32)});
        let answer =
            world.operator.json("POST", "/v1/extension/definition", &definition.to_string()).await;
        assert_eq!(answer.fault().0, 400, "{url}");
    }
    for definition in [
        "{}",
        "[]",
        "{\"name\":\"x\"}",
        "nonsense",
        r#"{"name":"x","name":"y","url":"https://e.example","secret":"01234567890123456789012345678901"}"#,
    ] {
        let answer = world.operator.json("POST", "/v1/extension/definition", definition).await;
        assert_eq!(answer.fault().0, 400, "{definition}");
    }
}

#[tokio::test]
async fn what_only_the_operator_may_do_is_403_for_everybody_else() {
    let (_extension, _world, tenant) = world().await;
    let keys = format!("/v1/orgs/{}/keys", tenant.oid);
    let made = tenant.form("POST", &keys, &[("key_name", "k"), ("perms", "*")]).await.ok();
    let user = tenant.sign_in(made["api_key"].as_str().unwrap(), &tenant.oid).await;
    let definition =
        r#"{"name":"mine","url":"https://e.example/","secret":"01234567890123456789012345678901"}"#;
    for (method, path, body) in [
        ("POST", "/v1/extension/definition", definition),
        ("PUT", "/v1/extension/definition", definition),
        ("DELETE", "/v1/extension/definition/ext", ""),
        ("POST", "/v1/orgs/new", r#"{"name":"x"}"#),
    ] {
        let (status, code, _) = user.json(method, path, body).await.fault();
        assert_eq!((status, code.as_str()), (403, "forbidden"), "{method} {path}");
    }
    // A key without a permission cannot make itself one with it.
    let made = tenant.form("POST", &keys, &[("perms", "apikey.ctrl")]).await.ok();
    let weak = tenant.sign_in(made["api_key"].as_str().unwrap(), &tenant.oid).await;
    assert_eq!(weak.form("POST", &keys, &[("perms", "*")]).await.fault().0, 403);
    assert_eq!(weak.form("POST", &keys, &[("perms", "ext.request")]).await.fault().0, 403);
    let fields = [("oid", tenant.oid.as_str()), ("action", "echo")];
    assert_eq!(weak.form("POST", "/v1/extension/request/ext", &fields).await.fault().0, 403);
}
