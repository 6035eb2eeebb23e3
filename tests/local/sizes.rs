//! Answers that are as large as they may be, larger, or never end.

use std::time::{Duration, Instant};

use annex_core::limits::{RESPONSE_BYTES_MAX, WEBHOOK_TIMEOUT};
use annex_tests::extension::{Extension, Message, Reply};
use annex_tests::platform::World;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::answers::{GOOD, check};

/// Sends a head, then a body of so many bytes, most of them blanks behind a good answer.
async fn sized(mut stream: TcpStream, declared: bool, size: usize) {
    let length = match declared {
        true => format!("content-length: {size}\r\n"),
        false => "connection: close\r\n".to_owned(),
    };
    let head = format!("HTTP/1.1 200 OK\r\n{length}\r\n{GOOD}");
    let mut left = size - GOOD.len();
    let blanks = vec![b' '; 1 << 20];
    let mut sent = stream.write_all(head.as_bytes()).await;
    while sent.is_ok() && 0 < left {
        let now = left.min(blanks.len());
        sent = stream.write_all(&blanks[..now]).await;
        left -= now;
    }
    let _ = stream.shutdown().await;
    // Not closed with unread bytes, so that no reset overtakes the end.
    let _ = stream.read(&mut [0; 1]).await;
}

// covers: LC-047, LC-048
#[tokio::test]
async fn an_answer_of_100_000_000_bytes_is_taken_and_one_byte_more_is_refused() {
    let of_size = |declared: bool, size: usize| {
        move |_: Message| async move { Reply::by(move |stream| sized(stream, declared, size)) }
    };
    let one_more = RESPONSE_BYTES_MAX + 1;
    let text = "response body size 100000001 exceeds limit";
    let extension = Extension::start(of_size(true, RESPONSE_BYTES_MAX)).await;
    let (_world, tenant) = World::with(&extension).await;
    assert_eq!(tenant.call("ext", "echo", "{}").await.text(), r#"{"data":{}}"#);
    check(of_size(true, one_more), (502, "bad-answer", text), 1).await;

    // Undeclared: how many bytes there were when the limit was passed.
    let extension = Extension::start(of_size(false, 2 * RESPONSE_BYTES_MAX)).await;
    let (_world, tenant) = World::with(&extension).await;
    let (_, code, text) = tenant.call("ext", "echo", "{}").await.fault();
    assert_eq!(code, "bad-answer");
    let size: usize = text
        .strip_prefix("response body size ")
        .and_then(|rest| rest.strip_suffix(" exceeds limit"))
        .unwrap()
        .parse()
        .unwrap();
    assert!((one_more..one_more + (1 << 20)).contains(&size), "{text}");
    assert_eq!(extension.requests("echo").len(), 1);
}

#[tokio::test]
async fn a_large_answer_is_stored_beside_the_record_and_read_back_whole() {
    for size in [1 << 16, (1 << 16) + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20] {
        let text = format!("\"{}\"", "x".repeat(size - 2));
        let extension = Extension::start(move |_| {
            let text = text.clone();
            async move { Reply::data(&text) }
        });
        let extension = extension.await;
        let (world, tenant) = World::with(&extension).await;
        let key = [("idempotency-key", "k")];
        let answer = tenant.call_with("ext", "echo", "{}", &key).await;
        assert_eq!((answer.status, answer.body.len()), (200, size + 9));
        assert_eq!(tenant.call_with("ext", "echo", "{}", &key).await.body, answer.body);
        let record = tenant.record(answer.header("annex-invocation-id").unwrap()).await;
        assert_eq!(record["data"], answer.json()["data"]);
        world.settled().await;
    }
}

/// An answer that never ends, or dribbles: it holds its own call, the caller gets a receipt, and others go on.
#[tokio::test]
async fn an_answer_that_never_ends_holds_its_own_call_only() {
    let slow = Extension::start(|_| async {
        Reply::by(|mut stream| async move {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let mut sent = stream.write_all(head.as_bytes()).await;
            while sent.is_ok() {
                sent = stream.write_all(b"1\r\n \r\n").await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    });
    let (slow, good) = (slow.await, Extension::echo().await);
    let (world, tenant) = World::with(&slow).await;
    world.operator.register("good", &good).await;
    tenant.subscribe("good").await;
    let began = Instant::now();
    let answer = tenant.call_with("ext", "echo", "{}", &[("prefer", "wait=1")]).await;
    assert_eq!(answer.status, 202);
    assert!(Duration::from_secs(1) <= began.elapsed() && began.elapsed() < Duration::from_secs(10));
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("location"), Some(format!("/v1/invocations/{id}").as_str()));
    assert_eq!(tenant.record(&id).await["status"], "running");
    tenant.call("good", "echo", r#"{"text":"x"}"#).await.ok();
    // What ends it is this; how it ends is checked with shorter timeouts where the way out is tested.
    assert_eq!(WEBHOOK_TIMEOUT, Duration::from_secs(120)); // LC-031
    assert_eq!(slow.requests("echo").len(), 1);
}
