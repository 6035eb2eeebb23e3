//! What arrives, over which connections, and what a broken exchange is called.

use std::sync::Arc;
use std::time::Duration;

use annex_core::ports::{Outbound, SendFault, WebhookAnswer};
use bytes::Bytes;
use tokio::net::TcpSocket;
use tokio::sync::Notify;

use crate::receiver::{
    Names, OK, Receiver, Seen, answer, answer_to, broken, client, client_with, not_sent, ok,
    request, send,
};

const SHORT: Duration = Duration::from_millis(200);

// covers: LC-013, LC-016
#[tokio::test]
async fn post_arrives_once_with_its_headers_and_the_exact_body_lc_013_lc_016() {
    let mut receiver = Receiver::fine().await;
    let mut request = request(format!("{}?a='b'&c=%2f#part", receiver.url()));
    request.headers = vec![
        ("content-type", "application/json".to_owned()),
        ("content-encoding", "gzip".to_owned()),
        ("lc-ext-sig", "ab12".to_owned()),
    ];
    request.body = Bytes::from_static(b"\x1f\x8b\x00\xff");
    assert_eq!(client().send(request).await, ok());
    let head = [
        "POST /hook?a='b'&c=%2f HTTP/1.1",
        "content-type: application/json",
        "content-encoding: gzip",
        "lc-ext-sig: ab12",
        "accept: application/json",
        concat!("user-agent: annex/", env!("CARGO_PKG_VERSION")),
        "content-length: 4",
        &format!("host: 127.0.0.1:{}", receiver.port),
    ];
    let head = head.map(str::to_owned).to_vec();
    assert_eq!(receiver.seen(), [Seen { head, body: b"\x1f\x8b\x00\xff".to_vec() }]);
}

#[tokio::test]
async fn empty_body_has_a_length_of_zero() {
    let mut receiver = Receiver::fine().await;
    let mut request = request(receiver.url());
    request.body = Bytes::new();
    assert_eq!(client().send(request).await, ok());
    let head = &receiver.seen()[0].head;
    assert_eq!(head.iter().filter(|line| *line == "content-length: 0").count(), 1);
}

#[tokio::test]
async fn kept_connection_is_used_again() {
    let mut receiver = Receiver::fine().await;
    let client = client();
    for _ in 0..5 {
        assert_eq!(send(&client, receiver.url()).await, ok());
    }
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 5));
}

#[tokio::test]
async fn connection_closed_while_idle_is_replaced() {
    let closed = Arc::new(Notify::new());
    let mut receiver = {
        let closed = Arc::clone(&closed);
        Receiver::start(move |mut peer| {
            let closed = Arc::clone(&closed);
            async move {
                peer.answer(OK).await;
                drop(peer);
                closed.notify_one();
            }
        })
        .await
    };
    let client = client();
    for _ in 0..3 {
        assert_eq!(send(&client, receiver.url()).await, ok());
        closed.notified().await;
        // Each turn lets the runtime look at its sockets; the connection's own task then reads the end.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((receiver.connections(), receiver.seen().len()), (3, 3));
}

/// The close and the next request cross. Whoever wins, no request is delivered twice.
#[tokio::test]
async fn request_that_meets_a_closing_connection_is_never_sent_twice() {
    let mut receiver = Receiver::answering(OK).await;
    let client = client();
    for number in 0..100 {
        let mut request = request(receiver.url());
        request.headers = vec![("x-number", number.to_string())];
        let outcome = client.send(request).await;
        assert!(matches!(outcome, Ok(_) | Err(SendFault::Broken(_))), "{outcome:?}");
    }
    let mut numbers: Vec<String> =
        receiver.seen().into_iter().map(|seen| seen.head[1].clone()).collect();
    let all = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), all);
}

#[tokio::test]
async fn request_that_was_read_and_not_answered_is_not_sent_again() {
    let mut receiver = Receiver::start(|mut peer| async move {
        peer.answer(OK).await;
        peer.request().await;
    })
    .await;
    let client = client();
    assert_eq!(send(&client, receiver.url()).await, ok());
    assert_eq!(
        send(&client, receiver.url()).await,
        broken("connection closed before the response was complete")
    );
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 2));
}

#[tokio::test]
async fn reset_before_the_head_and_in_the_body_is_a_broken_connection() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    assert_eq!(send(&client(), receiver.url()).await, broken("connection reset"));

    let go = Arc::new(Notify::new());
    let receiver = {
        let go = Arc::clone(&go);
        Receiver::start(move |mut peer| {
            let go = Arc::clone(&go);
            async move {
                peer.answer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
                go.notified().await;
                peer.reset();
            }
        })
        .await
    };
    let (client, url) = (client(), receiver.url());
    let sending = tokio::spawn(async move { send(&client, url).await });
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    assert_eq!(sending.await.unwrap(), broken("connection reset"));
}

#[tokio::test]
async fn redirect_is_an_answer_and_never_followed() {
    let mut elsewhere = Receiver::fine().await;
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url();
        let bytes = format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 4\r\n\r\ngone"
        );
        assert_eq!(answer_to(bytes).await, answer(status, "gone"));
    }
    assert_eq!((elsewhere.connections(), elsewhere.seen()), (0, Vec::new()));
}

#[tokio::test]
async fn retry_after_is_handed_over_as_text_where_it_is_text() {
    let retry_after = async |value: &[u8]| {
        let head = b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\nretry-after: ";
        let answer = answer_to([head, value, b"\r\n\r\n"].concat()).await.unwrap();
        (answer.status, answer.retry_after)
    };
    assert_eq!(retry_after(b"120").await, (429, Some("120".to_owned())));
    assert_eq!(retry_after(b"1e30").await, (429, Some("1e30".to_owned())));
    assert_eq!(retry_after(b"\xff\xfe").await, (429, None));
}

#[tokio::test]
async fn header_bytes_outside_ascii_do_not_fail_the_call() {
    let bytes = b"HTTP/1.1 200 D\xe9j\xe0\r\nx-note: caf\xe9 \xf0\x9f\x98\x80\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(answer_to(*bytes).await, ok());
}

#[tokio::test]
async fn answer_that_is_not_http_is_a_broken_connection() {
    assert_eq!(answer_to("SSH-2.0-OpenSSH\r\n\r\n").await, broken("response is not valid HTTP"));
    assert_eq!(
        answer_to("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n").await,
        broken("response is not valid HTTP")
    );
    assert_eq!(answer_to("").await, broken("connection closed before the response was complete"));
}

#[tokio::test]
async fn endless_head_is_given_up() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.answer("HTTP/1.1 200 OK\r\nx-filler: ").await;
        let filler = vec![b'a'; 32 << 10];
        for _ in 0..64 {
            peer.send(&filler).await;
        }
    })
    .await;
    assert_eq!(send(&client(), receiver.url()).await, broken("response head is too large"));
}

// covers: LC-031
#[tokio::test]
async fn deadline_ends_a_wait_for_the_head_lc_031() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.request().await;
        std::future::pending().await
    })
    .await;
    let mut request = request(receiver.url());
    request.timeout = SHORT;
    assert_eq!(client().send(request).await, Err(SendFault::TimedOut(SHORT)));
}

#[tokio::test]
async fn closed_port_is_not_sent() {
    // Bound and not listening, so that nobody else can come to listen there.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(send(&client(), url).await, not_sent("connection refused"));
}

#[tokio::test]
async fn next_address_is_tried_where_one_refuses() {
    let receiver = Receiver::fine().await;
    let names = Names::new(vec![Ok(vec!["127.0.0.2", "::1", "127.0.0.1"])]);
    let client = client_with(names, true, Vec::new());
    let url = format!("http://localhost:{}/", receiver.port);
    assert_eq!(send(&client, url).await, ok());
}

#[tokio::test]
async fn sixty_four_requests_at_a_time_all_arrive() {
    let mut receiver = Receiver::fine().await;
    let client = Arc::new(client());
    let sends: Vec<_> = (0..64)
        .map(|_| {
            let (client, url) = (Arc::clone(&client), receiver.url());
            tokio::spawn(async move { send(&client, url).await })
        })
        .collect();
    let mut answers: Vec<Result<WebhookAnswer, SendFault>> = Vec::new();
    for send in sends {
        answers.push(send.await.unwrap());
    }
    assert_eq!(answers, vec![ok(); 64]);
    assert_eq!(receiver.seen().len(), 64);
}
