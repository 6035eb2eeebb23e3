//! Bodies of every length, told and untold.

use std::sync::Arc;
use std::time::Duration;

use annex_core::limits::{LARGE_BODIES_AT_ONCE, RESPONSE_BYTES_MAX};
use annex_core::ports::{Outbound, SendFault, WebhookAnswer};
use tokio::sync::{Semaphore, mpsc};

use crate::receiver::{Peer, Receiver, answer, answer_to, broken, client, ok, request, send};

const SHORT: Duration = Duration::from_millis(200);
const MIB: usize = 1 << 20;

/// How the sender tells where a body ends.
#[derive(Clone, Copy)]
enum Framing {
    Declared,
    Chunked,
    UntilClose,
}

async fn send_body(peer: &mut Peer, framing: Framing, size: usize) {
    let head = match framing {
        Framing::Declared => format!("content-length: {size}\r\n"),
        Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
        Framing::UntilClose => String::new(),
    };
    peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n")).await;
    let piece = vec![b'x'; MIB];
    let mut left = size;
    while left > 0 {
        let now = left.min(MIB);
        if let Framing::Chunked = framing {
            peer.send(format!("{now:x}\r\n")).await;
        }
        peer.send(&piece[..now]).await;
        if let Framing::Chunked = framing {
            peer.send("\r\n").await;
        }
        left -= now;
    }
    if let Framing::Chunked = framing {
        peer.send("0\r\n\r\n").await;
    }
}

/// What comes of a body of `size` bytes where `max` are permitted: its length.
async fn check(framing: Framing, size: usize, max: usize) -> Result<usize, SendFault> {
    let receiver = Receiver::start(move |mut peer| async move {
        peer.request().await;
        send_body(&mut peer, framing, size).await;
    })
    .await;
    let mut request = request(receiver.url());
    request.response_bytes_max = max;
    let answer = client().send(request).await?;
    let piece = vec![b'x'; MIB];
    assert!(answer.body.chunks(MIB).all(|part| part == &piece[..part.len()]));
    Ok(answer.body.len())
}

fn too_large<T>(size: usize) -> Result<T, SendFault> {
    Err(SendFault::TooLarge { status: 200, size: size as u64 })
}

#[tokio::test]
async fn body_of_the_limit_passes_and_one_byte_more_does_not_lc_047() {
    for framing in [Framing::Declared, Framing::Chunked, Framing::UntilClose] {
        assert_eq!(check(framing, 0, 0).await, Ok(0));
        assert_eq!(check(framing, 1, 0).await, too_large(1));
        assert_eq!(check(framing, 1_000, 1_000).await, Ok(1_000));
        assert_eq!(check(framing, 1_001, 1_000).await, too_large(1_001));
        assert_eq!(check(framing, MIB, MIB).await, Ok(MIB));
        assert_eq!(check(framing, MIB + 1, MIB + 1).await, Ok(MIB + 1));
    }
}

// covers: LC-047
#[tokio::test]
async fn hundred_megabytes_pass_declared_lc_047() {
    let max = RESPONSE_BYTES_MAX;
    assert_eq!(check(Framing::Declared, 100_000_000, max).await, Ok(100_000_000));
}

// covers: LC-047
#[tokio::test]
async fn hundred_megabytes_pass_chunked_lc_047() {
    let max = RESPONSE_BYTES_MAX;
    assert_eq!(check(Framing::Chunked, 100_000_000, max).await, Ok(100_000_000));
}

// covers: LC-047
#[tokio::test]
async fn one_byte_more_than_hundred_megabytes_is_refused_chunked_lc_047() {
    let max = RESPONSE_BYTES_MAX;
    assert_eq!(check(Framing::Chunked, 100_000_001, max).await, too_large(100_000_001));
}

// covers: LC-048
#[tokio::test]
async fn larger_declared_body_is_refused_unread_lc_048() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.answer("HTTP/1.1 200 OK\r\ncontent-length: 100000001\r\n\r\n").await;
        std::future::pending().await
    })
    .await;
    let mut request = request(receiver.url());
    request.response_bytes_max = RESPONSE_BYTES_MAX;
    let fault = client().send(request).await.unwrap_err();
    assert_eq!(fault, SendFault::TooLarge { status: 200, size: 100_000_001 });
    assert_eq!(fault.to_string(), "response body size 100000001 exceeds limit");
}

#[tokio::test]
async fn endless_body_ends_at_the_limit() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.request().await;
        send_body(&mut peer, Framing::UntilClose, usize::MAX).await;
    })
    .await;
    let mut request = request(receiver.url());
    request.response_bytes_max = 3 * MIB;
    match client().send(request).await {
        Err(SendFault::TooLarge { size, .. }) => {
            assert!(size > 3 << 20 && size <= (3 << 20) + 65_536)
        }
        other => panic!("{other:?}"),
    }
}

// covers: LC-032
#[tokio::test]
async fn dribbling_body_ends_at_the_deadline_lc_032() {
    let receiver = Receiver::start(|mut peer| async move {
        peer.answer("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            peer.send("x").await;
        }
    })
    .await;
    let mut request = request(receiver.url());
    request.timeout = SHORT;
    assert_eq!(client().send(request).await, Err(SendFault::TimedOut(SHORT)));
}

#[tokio::test]
async fn body_shorter_than_declared_is_a_broken_connection() {
    let cut = || broken("connection closed before the response was complete");
    assert_eq!(answer_to("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await, cut());
    assert_eq!(
        answer_to("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf").await,
        cut()
    );
    assert_eq!(
        answer_to("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await,
        cut()
    );
}

#[tokio::test]
async fn chunks_that_are_none_are_a_broken_connection() {
    for chunks in ["zz\r\nhalf", "ffffffffffffffffff\r\nhalf", "4\r\nhalfhalf\r\n0\r\n\r\n"] {
        let bytes = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(answer_to(bytes).await, broken("response is not valid HTTP"), "{chunks}");
    }
}

#[tokio::test]
async fn status_without_a_body_has_none_whatever_follows() {
    let told = "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello";
    let chunked =
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    for bytes in [told, chunked] {
        let receiver = Receiver::answering(bytes).await;
        assert_eq!(send(&client(), receiver.url()).await, answer(204, ""));
    }
}

#[tokio::test]
async fn compressed_body_stays_as_it_came() {
    let bytes = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(answer_to(bytes).await, ok());
}

/// Large bodies wait for each other, and only for each other.
#[tokio::test]
async fn large_bodies_are_read_a_few_at_a_time() {
    let finish = Arc::new(Semaphore::new(0));
    let (half_read, mut half_reads) = mpsc::unbounded_channel();
    // Far more than the sockets between can hold: what has left the endpoint was read by the client.
    let size = 32 * MIB;
    let receiver = {
        let finish = Arc::clone(&finish);
        Receiver::start(move |mut peer| {
            let (finish, half_read) = (Arc::clone(&finish), half_read.clone());
            async move {
                peer.request().await;
                peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", size + 1)).await;
                for _ in 0..32 {
                    peer.send(vec![b'x'; MIB]).await;
                }
                half_read.send(()).ok();
                let _permit = finish.acquire().await;
                peer.send("x").await;
            }
        })
        .await
    };
    let client = Arc::new(client());
    let large = |timeout| {
        let mut request = request(receiver.url());
        request.response_bytes_max = RESPONSE_BYTES_MAX;
        request.timeout = timeout;
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.send(request).await.map(|answer| answer.body.len()) })
    };
    let held: Vec<_> = (0..LARGE_BODIES_AT_ONCE).map(|_| large(Duration::from_secs(60))).collect();
    for _ in 0..LARGE_BODIES_AT_ONCE {
        half_reads.recv().await;
    }
    assert_eq!(large(SHORT).await.unwrap(), Err(SendFault::TimedOut(SHORT)));
    let small = Receiver::fine().await;
    let expected: Result<WebhookAnswer, SendFault> = ok();
    assert_eq!(send(&client, small.url()).await, expected);

    finish.add_permits(1);
    for send in held {
        assert_eq!(send.await.unwrap(), Ok(size + 1));
    }
    assert_eq!(large(Duration::from_secs(60)).await.unwrap(), Ok(size + 1));
}
