//! What a module gets of what a vendor answers.

use annex_egress::vendor::{Answer, VendorFault};
use http::Method;

use crate::peer::{INCOMPLETE, NOT_HTTP, OK, Vendor, answer, client, ok, refused, send, unknown};

const BODY_MAX: usize = 8 << 20;
const HEAD_MAX: usize = 64 << 10;
const HEAD_TOO_LARGE: &str = "response head is larger than 65536 bytes or 256 lines";

async fn check_method(method: Method, bytes: &[u8], expected: Result<Answer, VendorFault>) {
    let vendor = Vendor::answering(bytes).await;
    let found = send(&client(), vendor.outgoing(method)).await;
    // Eight megabytes are no text to print.
    assert!(found == expected, "{:?}", found.map(|answer| (answer.status, answer.body.len())));
}

async fn check(bytes: impl AsRef<[u8]>, expected: Result<Answer, VendorFault>) {
    check_method(Method::GET, bytes.as_ref(), expected).await;
}

// covers: AL-173
#[tokio::test]
async fn any_status_is_an_answer() {
    for status in [200, 204, 301, 304, 401, 404, 429, 500, 599, 999] {
        let head = format!("HTTP/1.1 {status} Whatever\r\nx-a: 1\r\nconnection: close\r\n\r\n");
        check(head, answer(status, &[("x-a", "1"), ("connection", "close")], "")).await;
    }
}

// covers: AL-171
#[tokio::test]
async fn headers_come_in_lower_case_each_as_often_as_it_was_sent() {
    check(
        "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 0\r\nx-a: 2\r\nx-empty:\r\n\r\n",
        answer(200, &[("x-a", "1"), ("x-a", "2"), ("content-length", "0"), ("x-empty", "")], ""),
    )
    .await;
}

#[tokio::test]
async fn header_outside_ascii_is_read_byte_by_byte() {
    check(
        b"HTTP/1.1 200 OK\r\nx-a: caf\xe9\r\nx-b: caf\xc3\xa9\r\ncontent-length: 0\r\n\r\n",
        answer(
            200,
            &[("x-a", "caf\u{e9}"), ("x-b", "caf\u{c3}\u{a9}"), ("content-length", "0")],
            "",
        ),
    )
    .await;
}

#[tokio::test]
async fn body_comes_as_it_was_sent() {
    let bytes = |head: &str, body: &[u8]| [head.as_bytes(), body].concat();
    let all: Vec<u8> = (0..=255).collect();
    let length = "HTTP/1.1 200 OK\r\ncontent-length: 256\r\n\r\n";
    check(bytes(length, &all), answer(200, &[("content-length", "256")], &all)).await;
    check(bytes("HTTP/1.1 200 OK\r\n\r\n", &all), answer(200, &[], &all)).await;
    check(bytes("HTTP/1.0 200 OK\r\n\r\n", &all), answer(200, &[], &all)).await;
    let gzip = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n";
    check(bytes(gzip, b"no gzip"), answer(200, &[("content-encoding", "gzip")], "no gzip")).await;
    check(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\none\r\n3\r\ntwo\r\n0\r\n\
         x-trailer: 1\r\n\r\n",
        answer(200, &[("transfer-encoding", "chunked")], "onetwo"),
    )
    .await;
}

#[tokio::test]
async fn answer_without_a_body_has_none_whatever_its_headers_say() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let expected = answer(200, &[("content-length", "99999999999")], "");
    check_method(Method::HEAD, head.as_bytes(), expected).await;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let expected = answer(200, &[("transfer-encoding", "chunked")], "");
    check_method(Method::HEAD, chunked.as_bytes(), expected).await;
    check(
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        answer(204, &[("transfer-encoding", "chunked")], ""),
    )
    .await;
    check(
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        answer(304, &[("content-length", "5")], ""),
    )
    .await;
}

#[tokio::test]
async fn informational_answers_are_left_out() {
    let before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    check(format!("{before}{OK}"), ok()).await;
    check(format!("{}{OK}", before.repeat(500)), ok()).await;
    check(before, unknown(INCOMPLETE)).await;
}

#[tokio::test]
async fn answer_that_leaves_http_is_none() {
    check(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes",
        unknown("the vendor switched to another protocol"),
    )
    .await;
    check("HTTP/2 200\r\n\r\n", unknown(NOT_HTTP)).await;
    check("SSH-2.0-OpenSSH_9.9\r\n", unknown(NOT_HTTP)).await;
    check("HTTP/1.1 99 Low\r\n\r\n", unknown(NOT_HTTP)).await;
    check("HTTP/1.1 200 OK\r\nx a: 1\r\n\r\n", unknown(NOT_HTTP)).await;
    check("HTTP/1.1 200 OK\r\nx-a : 1\r\n\r\n", unknown(NOT_HTTP)).await;
    check("HTTP/1.1 200 OK\r\nx-a: 1\r\n folded\r\n\r\n", unknown(NOT_HTTP)).await;
    check("HTTP/1.1 200 OK\r\nx-a: 1\0\r\n\r\n", unknown(NOT_HTTP)).await;
}

#[tokio::test]
async fn answer_whose_length_is_not_clear_is_none() {
    let head = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nok");
    check(head("content-length: 2\r\ncontent-length: 3"), unknown(NOT_HTTP)).await;
    check(head("content-length: 2, 3"), unknown(NOT_HTTP)).await;
    check(head("content-length: +2"), unknown(NOT_HTTP)).await;
    check(head("content-length: -1"), unknown(NOT_HTTP)).await;
    check(head("content-length: 99999999999999999999"), unknown(NOT_HTTP)).await;
    let chunked =
        |body: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
    check(chunked("zz\r\n"), unknown(NOT_HTTP)).await;
    check(chunked("2\r\nokay\r\n0\r\n\r\n"), unknown(NOT_HTTP)).await;
    check(chunked("fffffffffffffffff\r\n"), unknown(NOT_HTTP)).await;
    check(chunked("2\r\nok\r\n"), unknown(INCOMPLETE)).await;
}

// covers: AL-192, AL-225
#[tokio::test]
async fn largest_body_is_answered_and_a_byte_more_is_refused() {
    let too_large = || refused("response is larger than 8388608 bytes");
    let body = |size: usize| vec![b'x'; size];
    let declared = |size: usize| {
        [format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").as_bytes(), &body(size)]
            .concat()
    };
    let headers = [("content-length", "8388608")];
    check(declared(BODY_MAX), answer(200, &headers, body(BODY_MAX))).await;
    check(declared(BODY_MAX + 1), too_large()).await;
    let open = |size: usize| [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &body(size)].concat();
    check(open(BODY_MAX), answer(200, &[], body(BODY_MAX))).await;
    check(open(BODY_MAX + 1), too_large()).await;
    let chunked = |size: usize| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let half =
            |size: usize| [format!("{size:x}\r\n").as_bytes(), &body(size), b"\r\n"].concat();
        [head.as_bytes(), &half(size / 2), &half(size - size / 2), b"0\r\n\r\n"].concat()
    };
    let headers = [("transfer-encoding", "chunked")];
    check(chunked(BODY_MAX), answer(200, &headers, body(BODY_MAX))).await;
    check(chunked(BODY_MAX + 1), too_large()).await;
}

// covers: AL-192, AL-225
#[tokio::test]
async fn body_that_is_said_to_be_too_large_is_not_waited_for() {
    let vendor = Vendor::start(|mut peer| async move {
        peer.answer("HTTP/1.1 200 OK\r\ncontent-length: 8388609\r\n\r\n").await;
        peer.closed().await;
    })
    .await;
    let found = send(&client(), vendor.get()).await;
    assert_eq!(found, refused("response is larger than 8388608 bytes"));
}

#[tokio::test]
async fn head_is_bounded() {
    let head = |size: usize| {
        let (first, last) = ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-a: ", "\r\n\r\n");
        format!("{first}{}{last}", "x".repeat(size - first.len() - last.len()))
    };
    let vendor = Vendor::answering(head(HEAD_MAX)).await;
    assert_eq!(send(&client(), vendor.get()).await.unwrap().headers.len(), 2);
    let too_large = || refused(HEAD_TOO_LARGE);
    check(head(HEAD_MAX + 1), too_large()).await;
    check(head(10 * HEAD_MAX), too_large()).await;
    let endless = Vendor::start(|mut peer| async move {
        peer.answer("HTTP/1.1 200 OK\r\n").await;
        peer.send_forever(&[b'x'; 8 << 10]).await;
    })
    .await;
    assert_eq!(send(&client(), endless.get()).await, too_large());
}

#[tokio::test]
async fn header_lines_are_bounded() {
    let head = |lines: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a:1\r\n".repeat(lines));
    let vendor = Vendor::answering(head(256)).await;
    assert_eq!(send(&client(), vendor.get()).await.unwrap().headers.len(), 256);
    check(head(257), refused(HEAD_TOO_LARGE)).await;
}
