//! Answers of extensions that are no good: each fails its own call, with a text, and nothing else.

use annex_tests::extension::{Extension, Message, Reply};
use annex_tests::platform::{Tenant, World};
use annex_tests::wait::until;
use futures_util::future::join_all;
use serde_json::json;

/// So much faster than the clock on the wall, retries take no time.
const FAST: u32 = 50;

/// An answer with this head and body, as it goes over the wire.
fn wire(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes()
}

/// A good answer's body.
pub(crate) const GOOD: &str = r#"{"version":20221218,"data":{}}"#;

/// Calls an extension that answers so; the call fails with this code and text after so many attempts, is recorded as
/// failed and filed once.
pub(crate) async fn check<F>(
    script: impl Fn(Message) -> F + Send + Sync + 'static,
    (status, code, text): (u16, &str, &str),
    attempts: usize,
) where
    F: Future<Output = Reply> + Send + 'static,
{
    let extension = Extension::start(move |message| {
        let scripted = (message.action() == "echo").then(|| script(message));
        async move {
            match scripted {
                Some(reply) => reply.await,
                None => Reply::data("{}"),
            }
        }
    });
    let extension = extension.await;
    let (world, tenant) = World::with_at_speed(&extension, FAST).await;
    let answer = tenant.call("ext", "echo", "{}").await;
    assert_eq!(answer.fault(), (status, code.to_owned(), text.to_owned()));
    let requests = extension.requests("echo");
    assert_eq!(requests.len(), attempts, "{text}");
    // LC-058, LC-022: the same bytes under the same key and signature each time.
    assert!(requests.iter().all(|request| request.wire == requests[0].wire));
    assert!(requests.iter().all(|r| r.is_signed_with(annex_tests::extension::SECRET)));
    let record = tenant.record(answer.header("annex-invocation-id").unwrap()).await;
    assert_eq!((&record["status"], &record["error"]), (&"failed".into(), &text.into()));
    assert_eq!(tenant.errors().await, [("ext.echo".to_owned(), text.to_owned())]);
    world.settled().await;
}

async fn check_bytes(bytes: Vec<u8>, expected: (u16, &str, &str), attempts: usize) {
    let script = move |_| {
        let bytes = bytes.clone();
        async move { Reply::Bytes(bytes) }
    };
    check(script, expected, attempts).await;
}

const CUT: (u16, &str, &str) = (
    502,
    "extension-unreachable",
    "connection failed: connection closed before the response was complete",
);
const NOT_HTTP: (u16, &str, &str) =
    (502, "extension-unreachable", "connection failed: response is not valid HTTP");

// covers: LC-035, LC-056, LC-058, LC-064
#[tokio::test]
async fn an_answer_that_breaks_off_is_tried_three_times_and_fails_the_call() {
    let chunked = "200 OK\r\ntransfer-encoding: chunked";
    join_all([
        check_bytes(Vec::new(), CUT, 3),
        check_bytes(b"HTTP/1.1 200 O".to_vec(), CUT, 3),
        check_bytes(wire("200 OK\r\ncontent-length: 31", GOOD), CUT, 3),
        check_bytes(wire("200 OK\r\ncontent-length: 99999999", GOOD), CUT, 3),
        check_bytes(wire(chunked, "1e\r\n{\"version\""), CUT, 3),
        check_bytes(wire(chunked, "1e\r\n{\"version\":20221218,\"data\":{}}\r\n"), CUT, 3),
    ])
    .await;
    let reset = |_| async { Reply::reset() };
    let expected = (502, "extension-unreachable", "connection failed: connection reset");
    check(reset, expected, 3).await;
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_tried_three_times_and_fails_the_call() {
    join_all([
        check_bytes(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec(), NOT_HTTP, 3),
        check_bytes(wire("200 OK\r\ncontent-length: -1", GOOD), NOT_HTTP, 3),
        check_bytes(wire("200 OK\r\ncontent-length: 1e3", GOOD), NOT_HTTP, 3),
        check_bytes(wire("200 OK\r\ncontent-length: 30\r\ncontent-length: 2", GOOD), NOT_HTTP, 3),
        check_bytes(wire("200 OK\r\ntransfer-encoding: chunked", "zz\r\n{}\r\n"), NOT_HTTP, 3),
        check_bytes(wire("200 OK\r\n: empty-name\r\ncontent-length: 30", GOOD), NOT_HTTP, 3),
    ])
    .await;
    let large = format!("200 OK\r\nx-large: {}", "x".repeat(1 << 20));
    let text = "connection failed: response head is too large";
    check_bytes(wire(&large, GOOD), (502, "extension-unreachable", text), 3).await;
}

// covers: LC-040, LC-041, LC-042, LC-043
#[tokio::test]
async fn the_status_decides_over_html_and_other_bodies_that_are_no_answer() {
    let html = "<!doctype html><title>Error</title>";
    let cases = [
        (500, html, "extension-failed", "extension answered status 500", 3),
        (502, "", "extension-failed", "extension answered status 502", 3),
        (503, "null", "extension-failed", "extension answered status 503", 3),
        (504, "{", "extension-failed", "extension answered status 504", 3),
        (408, html, "extension-failed", "extension answered status 408", 3),
        (400, html, "extension-failed", "extension answered status 400", 1),
        (404, html, "extension-failed", "extension answered status 404", 1),
        (501, html, "extension-failed", "extension answered status 501", 1),
    ];
    join_all(cases.map(|(status, body, code, text, attempts)| {
        check(move |_| async move { Reply::status(status, body) }, (502, code, text), attempts)
    }))
    .await;
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_never_followed() {
    let elsewhere = Extension::echo().await;
    for status in [301, 302, 303, 307, 308] {
        for place in [elsewhere.url(), "/other".to_owned(), "http://169.254.169.254/".to_owned()] {
            let head = format!("{status} Moved\r\nlocation: {place}\r\ncontent-length: 0");
            let text = format!("extension answered status {status}");
            check_bytes(wire(&head, ""), (502, "extension-failed", &text), 1).await;
        }
    }
    assert_eq!(elsewhere.all().len(), 0);
}

#[tokio::test]
async fn a_success_that_is_no_answer_of_the_protocol_fails_the_call_at_once() {
    let unprocessed = "extension did not process the message: its answer has no version";
    let not_valid = "answer cannot be read: not valid JSON at byte 0";
    let cases = [
        ("<html>hello</html>", not_valid),
        ("", "answer cannot be read: not valid JSON: the text ends early"),
        ("{}", unprocessed),
        (r#"{"version":null,"data":{}}"#, unprocessed),
        (r#"{"version":1,"data":NaN}"#, "answer cannot be read: not valid JSON at byte 20"),
        (
            r#"{"version":1,"data":"\ud800"}"#,
            "answer cannot be read: a lone surrogate escape at byte 21",
        ),
        ("\u{feff}{}", not_valid),
        ("[]", "answer is not an answer of the protocol"),
        (r#"["",true,20221218,{}]"#, "answer is not an answer of the protocol"),
        ("17", "answer is not an answer of the protocol"),
        (r#"{"version":1,"continuations":7}"#, "answer is not an answer of the protocol"),
    ];
    join_all(cases.map(|(body, text)| {
        check(move |_| async move { Reply::status(200, body) }, (502, "bad-answer", text), 1)
    }))
    .await;
    let latin = |_| async { Reply::Status(200, b"{\"version\":1,\"data\":\"\xff\"}".to_vec()) };
    let text = "answer cannot be read: not valid UTF-8 at byte 21";
    check(latin, (502, "bad-answer", text), 1).await;
}

#[tokio::test]
async fn an_empty_answer_to_204_is_a_failure_and_no_hang() {
    let text = "answer cannot be read: not valid JSON: the text ends early";
    join_all([
        check_bytes(wire("204 No Content", ""), (502, "bad-answer", text), 1),
        check_bytes(
            wire("204 No Content\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
            (502, "bad-answer", text),
            1,
        ),
    ])
    .await;
}

#[tokio::test]
async fn headers_of_an_answer_that_are_not_ascii_or_doubled_do_no_harm() {
    let extension = Extension::start(|_| async {
        let head = b"HTTP/1.1 200 OK\r\nx-name: caf\xe9\r\nx-name: caf\xc3\xa9\r\nx-empty:\r\n";
        let mut bytes = head.to_vec();
        bytes.extend(
            format!("retry-after: \u{e9}\r\ncontent-length: {}\r\n\r\n{GOOD}", GOOD.len()).bytes(),
        );
        Reply::Bytes(bytes)
    });
    let extension = extension.await;
    let (_world, tenant) = World::with(&extension).await;
    assert_eq!(tenant.call("ext", "echo", "{}").await.text(), r#"{"data":{}}"#);
}

/// Calls an extension that sheds load with this `retry-after`, and waits until it is called again.
async fn shed(tenant: &Tenant, extension: &Extension, header: &str) -> String {
    let before = extension.requests("echo").len();
    let id = tenant.call_async("ext", "echo", &format!(r#"{{"text":"{header}"}}"#)).await;
    until("the first attempt's end", || async {
        (tenant.record(&id).await["status"] == "waiting").then_some(())
    })
    .await;
    assert_eq!(extension.requests("echo").len(), before + 1);
    id
}

// covers: LC-044, LC-045
#[tokio::test]
async fn a_429_waits_long_whatever_its_retry_after_says() {
    let extension = Extension::start(|message| async move {
        let Some(header) = message.value["request"]["data"]["text"].as_str() else {
            return Reply::data("{}");
        };
        Reply::Bytes(wire(&format!("429 X\r\nretry-after: {header}\r\ncontent-length: 0"), ""))
    });
    let extension = extension.await;
    let (world, tenant) = World::with(&extension).await;
    let headers = [
        "1e30",
        "inf",
        "-inf",
        "NaN",
        "9223372036854775807",
        "99999999999999",
        "9e15",
        "-1",
        "0",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "",
    ];
    for header in headers {
        shed(&tenant, &extension, header).await;
    }
    // None was tried again at once, none is lost, and the platform is well.
    assert_eq!(extension.requests("echo").len(), headers.len());
    let depth = world.store().depth(annex_core::ports::QueueName::Resume).await.unwrap();
    assert_eq!(depth.delayed, headers.len() as u64);
    assert_eq!(world.dead_letters().await, 0);
}

#[tokio::test]
async fn a_call_that_was_put_off_by_429_succeeds_in_the_end_under_the_same_key() {
    let extension = Extension::start(|message| async move {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static SHED: AtomicUsize = AtomicUsize::new(0);
        match message.action() {
            "echo" if SHED.fetch_add(1, Ordering::SeqCst) < 2 => Reply::status(429, ""),
            _ => Reply::data("7"),
        }
    });
    let extension = extension.await;
    // 30 s and 60 s take two seconds.
    let (world, tenant) = World::with_at_speed(&extension, FAST).await;
    let id = tenant.call_async("ext", "echo", "{}").await;
    let record = tenant.ended(&id).await;
    assert_eq!((&record["status"], &record["data"]), (&"succeeded".into(), &7.into()));
    let requests = extension.requests("echo");
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.key() == requests[0].key()));
    assert_eq!(tenant.errors().await, []);
    world.settled().await;
}

#[tokio::test]
async fn an_extension_that_fails_for_thirty_calls_fills_no_dead_letters() {
    let extension = Extension::start(|_| async { Reply::status(404, "<html>") }).await;
    let (world, tenant) = World::with(&extension).await;
    let calls: Vec<_> = join_all((0..30).map(|_| tenant.call_async("ext", "echo", "{}"))).await;
    for id in &calls {
        assert_eq!(tenant.ended(id).await["status"], "failed");
    }
    world.settled().await;
    let text = "extension answered status 404".to_owned();
    assert!(tenant.errors().await.contains(&("ext.echo".to_owned(), text))); // LC-063: one entry.
    assert_eq!(extension.requests("echo").len(), 30);
}

#[tokio::test]
async fn an_extension_that_is_not_there_fails_the_call_and_works_once_it_is() {
    let world = World::start_at_speed(FAST).await;
    let gone = Extension::echo().await;
    let url = gone.url();
    drop(gone);
    world.operator.register_at("ext", &url).await;
    let tenant = world.operator.tenant("demo").await;
    tenant.subscribe("ext").await;
    let (status, code, text) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!((status, code.as_str()), (502, "extension-unreachable"));
    assert_eq!(text, "schema request failed: could not connect: connection refused");
    // A name that does not exist is the extension's fault as well, not the platform's.
    world.operator.register_at("nameless", "https://no-such-name.invalid/").await;
    tenant.subscribe("nameless").await;
    let (status, code, _) = tenant.call("nameless", "echo", "{}").await.fault();
    assert_eq!((status, code.as_str()), (502, "extension-unreachable"));
    assert_eq!(world.dead_letters().await, 0);
}

#[tokio::test]
async fn no_connection_is_made_to_a_private_address_unless_that_is_allowed() {
    let inside = Extension::echo().await;
    let world = World::start_public().await;
    let tenant = world.operator.tenant("demo").await;
    let port = inside.address.port();
    for host in [
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "0177.0.0.1",
        "2130706433",
        "127.1",
        "[::1]",
        "169.254.169.254",
    ] {
        for url in [format!("http://{host}:{port}/"), format!("https://{host}:{port}/")] {
            let definition = json!({"name": "ext", "url": url, "secret": "s".repeat(32)});
            let path = "/v1/extension/definition";
            let answer = world.operator.json("POST", path, &definition.to_string()).await;
            assert_eq!(answer.fault().0, 400, "{url}");
        }
    }
    // A name is looked at when it is resolved.
    world.operator.register_at("ext", &format!("https://localhost:{port}/")).await;
    tenant.subscribe("ext").await;
    let (status, code, text) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!((status, code.as_str()), (502, "extension-unreachable"));
    assert!(text.starts_with("schema request failed: target refused: "), "{text}");
    assert_eq!(inside.all().len(), 0);
}
