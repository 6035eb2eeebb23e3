//! What a vendor gets, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use annex_egress::vendor::{BodyFault, ByteStream, OutgoingBody};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Method;

use crate::peer::{Seen, Vendor, client, ok, refused, send, unknown};

async fn check(
    method: Method,
    headers: &[(&str, &str)],
    body: OutgoingBody,
    expected: &[&str],
    expected_body: impl AsRef<[u8]>,
) {
    let mut vendor = Vendor::fine().await;
    let mut outgoing = vendor.outgoing(method);
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    outgoing.headers = headers.iter().map(own).collect();
    outgoing.body = body;
    assert_eq!(send(&client(), outgoing).await, ok());
    let host = format!("host: api.vendor.example:{}", vendor.port);
    let head = expected.iter().map(|line| line.replace("HOST", &host)).collect();
    assert_eq!(vendor.seen(), [Seen { head, body: expected_body.as_ref().to_vec() }]);
}

fn bytes(text: &'static str) -> OutgoingBody {
    OutgoingBody::Bytes(Bytes::from_static(text.as_bytes()))
}

// covers: AL-152, AL-153
#[tokio::test]
async fn request_holds_what_it_was_given_and_nothing_else() {
    for method in [Method::GET, Method::DELETE] {
        let line = format!("{method} /v1?a=1 HTTP/1.1");
        check(method, &[], OutgoingBody::None, &[&line, "HOST"], "").await;
    }
    for method in [Method::POST, Method::PUT, Method::PATCH] {
        let line = format!("{method} /v1?a=1 HTTP/1.1");
        check(method, &[], bytes("{}"), &[&line, "HOST", "content-length: 2"], "{}").await;
    }
    check(
        Method::GET,
        &[("user-agent", "Aletheia-Apps/1"), ("X-B", "2"), ("x-a", "caf\u{e9}"), ("x-b", "")],
        OutgoingBody::None,
        &[
            "GET /v1?a=1 HTTP/1.1",
            "HOST",
            "user-agent: Aletheia-Apps/1",
            "x-b: 2",
            "x-b: ",
            "x-a: caf\u{e9}",
        ],
        "",
    )
    .await;
}

// covers: AL-156
#[tokio::test]
async fn length_of_the_body_is_set_by_the_client() {
    let line = "POST /v1?a=1 HTTP/1.1";
    check(Method::POST, &[], bytes("{}"), &[line, "HOST", "content-length: 2"], "{}").await;
    check(Method::POST, &[], OutgoingBody::None, &[line, "HOST", "content-length: 0"], "").await;
    let line = "GET /v1?a=1 HTTP/1.1";
    check(Method::GET, &[], bytes("abc"), &[line, "HOST", "content-length: 3"], "abc").await;
}

// covers: AL-154
#[tokio::test]
async fn header_of_the_connection_is_refused_and_nothing_is_sent() {
    let vendor = Vendor::fine().await;
    for name in ["host", "content-length", "Transfer-Encoding", "connection", "EXPECT", "upgrade"] {
        let mut outgoing = vendor.get();
        outgoing.headers = vec![(name.to_owned(), "x".to_owned())];
        let why = format!("header {name:?} is set by the host");
        assert_eq!(send(&client(), outgoing).await, refused(&why));
    }
    assert_eq!(vendor.connections(), 0);
}

/// A body of these pieces, and how often it was opened.
fn streamed(length: u64, pieces: &'static [&'static str]) -> (OutgoingBody, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let open = move || -> ByteStream {
        count.fetch_add(1, Ordering::SeqCst);
        stream::iter(pieces.iter().map(|piece| match *piece {
            "fault" => Err(BodyFault::from("the document is gone")),
            piece => Ok(Bytes::from_static(piece.as_bytes())),
        }))
        .boxed()
    };
    (OutgoingBody::Stream { length, open: Arc::new(open) }, opened)
}

#[tokio::test]
async fn stream_is_sent_as_a_body_of_its_length() {
    let line = "PUT /v1?a=1 HTTP/1.1";
    let (body, opened) = streamed(6, &["one", "", "two"]);
    check(Method::PUT, &[], body, &[line, "HOST", "content-length: 6"], "onetwo").await;
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    let (body, _) = streamed(0, &[]);
    check(Method::PUT, &[], body, &[line, "HOST", "content-length: 0"], "").await;
}

#[tokio::test]
async fn stream_that_is_not_as_long_as_said_breaks_the_request_off() {
    let vendor = Vendor::fine().await;
    for pieces in [&["one"][..], &["one", "two!"], &["one", "fault"]] {
        let mut outgoing = vendor.outgoing(Method::PUT);
        (outgoing.body, _) = streamed(6, pieces);
        let broken = unknown("the request body could not be read to its end");
        assert_eq!(send(&client(), outgoing).await, broken, "{pieces:?}");
    }
}

#[tokio::test]
async fn large_body_arrives_whole() {
    const SIZE: usize = 3 << 20;
    let mut vendor = Vendor::fine().await;
    let mut outgoing = vendor.outgoing(Method::POST);
    let body: Vec<u8> = (0..SIZE).map(|index| index as u8).collect();
    outgoing.body = OutgoingBody::Bytes(body.clone().into());
    assert_eq!(send(&client(), outgoing).await, ok());
    assert!(vendor.seen().remove(0).body == body);
}
