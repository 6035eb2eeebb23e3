//! How far a request got: `not_sent`, `unknown`, or refused.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use annex_egress::draft::Scheme;
use annex_egress::vendor::{Answer, OutgoingBody, VendorFault};
use annex_egress::{Resolve, ResolveFault};
use async_trait::async_trait;
use http::Method;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;

use crate::peer::{
    INCOMPLETE, NOT_PERMITTED, Names, OK, PATIENT, Peer, RESET, TENANT, Vendor, client,
    client_with, not_sent, ok, outgoing, refused, send, unknown,
};
/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(500);

/// A chunk of 1,024 bytes.
const CHUNK: &[u8] = &{
    let mut chunk = [b'x'; 1024 + 7];
    (chunk[0], chunk[1], chunk[2], chunk[3], chunk[4]) = (b'4', b'0', b'0', b'\r', b'\n');
    (chunk[1029], chunk[1030]) = (b'\r', b'\n');
    chunk
};

/// A name service that never answers.
struct Silence;

#[async_trait]
impl Resolve for Silence {
    async fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, ResolveFault> {
        std::future::pending().await
    }
}

// covers: AL-179, AL-180
#[tokio::test]
async fn name_that_does_not_resolve_is_not_sent() {
    let check = async |answer, text| {
        let client = client_with(Names::new(vec![answer]), false, PATIENT);
        let found = send(&client, outgoing(Method::POST, Scheme::Https, 443)).await;
        assert_eq!(found, not_sent(text));
    };
    check(Err(ResolveFault::NotFound), "getaddrinfo ENOTFOUND api.vendor.example").await;
    check(Ok(Vec::new()), "getaddrinfo ENOTFOUND api.vendor.example").await;
    check(Err(ResolveFault::Failed), "getaddrinfo EAI_AGAIN api.vendor.example").await;
}

// covers: AL-174, AL-181
#[tokio::test]
async fn refused_connection_is_not_sent() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let found = send(&client(), outgoing(Method::POST, Scheme::Http, port)).await;
    assert_eq!(found, not_sent(&format!("connect ECONNREFUSED api.vendor.example:{port}")));
}

/// The next address is tried where one refuses.
#[tokio::test]
async fn name_with_several_addresses_is_reached_at_the_one_that_answers() {
    let vendor = Vendor::fine().await;
    let names = Names::new(vec![Ok(vec!["127.0.0.2", "127.0.0.1"])]);
    assert_eq!(send(&client_with(names, true, PATIENT), vendor.get()).await, ok());
}

// covers: AL-183
#[tokio::test]
async fn connection_that_is_not_there_in_time_is_not_sent() {
    // A listener whose queue is full lets nobody in, and says so to nobody.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queued = TcpStream::connect(address).await.unwrap();
    let request = outgoing(Method::POST, Scheme::Http, address.port());
    let timed_out = format!("connect ETIMEDOUT api.vendor.example:{}", address.port());
    assert_eq!(client().send(TENANT, request, SHORT).await, not_sent(&timed_out));

    let client = client_with(Arc::new(Silence), false, PATIENT);
    let request = outgoing(Method::POST, Scheme::Https, 443);
    let found = client.send(TENANT, request, SHORT).await;
    assert_eq!(found, not_sent("connect ETIMEDOUT api.vendor.example:443"));
}

/// Sends to a vendor that reads the request and then does this.
async fn check_method<F>(
    method: Method,
    then: impl Fn(Peer) -> F + Send + Sync + Copy + 'static,
    timeout: Duration,
    expected: Result<Answer, VendorFault>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut vendor = Vendor::start(move |mut peer| async move {
        if peer.request().await.is_some() {
            then(peer).await;
        }
    })
    .await;
    let found = client().send(TENANT, vendor.outgoing(method), timeout).await;
    assert_eq!(found, expected);
    // Nothing goes out twice over new connections; a vendor on a busy machine may not have come to read it yet.
    assert!(vendor.connections() <= 1 && vendor.seen().len() <= 1);
}

async fn check<F>(
    then: impl Fn(Peer) -> F + Send + Sync + Copy + 'static,
    expected: Result<Answer, VendorFault>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    check_method(Method::GET, then, PATIENT, expected.clone()).await;
    check_method(Method::POST, then, PATIENT, expected).await;
}

// covers: AL-186
#[tokio::test]
async fn connection_that_breaks_before_or_in_the_answer_is_unknown() {
    check(|peer| async move { drop(peer) }, unknown(INCOMPLETE)).await;
    check(|peer| async move { peer.reset() }, unknown(RESET)).await;
    check(|mut peer| async move { peer.send("HTTP/1.1 2").await }, unknown(INCOMPLETE)).await;
    check(
        |mut peer| async move { peer.send("HTTP/1.1 200 OK\r\nx-a: 1\r\n").await },
        unknown(INCOMPLETE),
    )
    .await;
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf.";
    check(move |mut peer| async move { peer.send(half).await }, unknown(INCOMPLETE)).await;
}

// covers: AL-186
#[tokio::test]
async fn reset_in_the_middle_of_a_body_is_unknown() {
    // The client may find the reset before or after it has read the head.
    check(
        |mut peer| async move {
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf.").await;
            peer.reset();
        },
        unknown(RESET),
    )
    .await;
}

// covers: AL-187
#[tokio::test]
async fn no_complete_answer_in_time_is_unknown() {
    let late = || unknown("no complete answer within 500 ms");
    let check = async |bytes: &'static str| {
        let then = move |mut peer: Peer| async move {
            peer.send(bytes).await;
            peer.closed().await;
        };
        tokio::join!(
            check_method(Method::GET, then, SHORT, late()),
            check_method(Method::POST, then, SHORT, late()),
        );
    };
    tokio::join!(
        check(""),
        check("HTTP/1.1 100 Continue\r\n\r\n"),
        check("HTTP/1.1 200 OK\r\nx-a: "),
        check("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf."),
        check("HTTP/1.1 200 OK\r\n\r\nno end"),
    );
}

#[tokio::test]
async fn answer_that_drips_or_never_ends_is_ended() {
    let drip = |mut peer: Peer| async move {
        peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").await;
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while !peer.gone_after(b"x").await {
            tick.tick().await;
        }
    };
    check_method(Method::GET, drip, SHORT, unknown("no complete answer within 500 ms")).await;
    let endless = |head: &'static str, piece: &'static [u8]| {
        move |mut peer: Peer| async move {
            peer.send(head).await;
            peer.send_forever(piece).await;
        }
    };
    let too_large = refused("response is larger than 8388608 bytes");
    check(endless("HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 4096]), too_large.clone()).await;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    check(endless(chunked, CHUNK), too_large).await;
    let hints = endless("", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    check_method(Method::GET, hints, SHORT, unknown("no complete answer within 500 ms")).await;
}

// covers: AL-191
#[tokio::test]
async fn private_address_is_refused_where_a_failed_lookup_is_not_sent() {
    let client = client_with(Names::new(vec![Ok(vec!["10.0.0.1"])]), false, PATIENT);
    let found = send(&client, outgoing(Method::POST, Scheme::Https, 443)).await;
    assert_eq!(found, refused(NOT_PERMITTED));
}

// covers: AL-145, AL-208
#[tokio::test]
async fn plain_http_is_for_runners_with_private_networks() {
    let vendor = Vendor::fine().await;
    let strict = client_with(Names::new(vec![Ok(vec!["93.184.216.34"])]), false, PATIENT);
    let found = send(&strict, outgoing(Method::GET, Scheme::Http, 80)).await;
    assert_eq!(found, refused("plain http is not permitted"));
    assert_eq!(send(&client(), vendor.get()).await, ok());
}

/// A request that nobody waits for any more takes its connection with it.
#[tokio::test]
async fn dropped_request_closes_its_connection() {
    let (arrived, on_arrival) = oneshot::channel();
    let (closed, on_close) = oneshot::channel();
    let ends = Arc::new(std::sync::Mutex::new(Some((arrived, closed))));
    let vendor = Vendor::start(move |mut peer| {
        let ends = ends.lock().unwrap().take();
        async move {
            let Some((arrived, closed)) = ends else { return };
            peer.request().await;
            arrived.send(()).unwrap();
            closed.send(peer.closed().await).unwrap();
        }
    })
    .await;
    let client = client();
    tokio::select! {
        found = send(&client, vendor.get()) => panic!("{found:?}"),
        arrived = on_arrival => arrived.unwrap(),
    }
    let sent_more = on_close.await.unwrap();
    assert!(!sent_more);
}

/// A vendor that answers before it has read the whole body.
#[tokio::test]
async fn early_answer_is_an_answer_and_its_connection_is_not_kept() {
    let vendor = Vendor::start(|mut peer| async move {
        peer.head().await;
        peer.send(OK).await;
        peer.closed().await;
    })
    .await;
    let client = client();
    for expected in 1..=2 {
        let mut request = vendor.outgoing(Method::POST);
        request.body = OutgoingBody::Bytes(vec![0; 16 << 20].into());
        assert_eq!(send(&client, request).await, ok());
        assert_eq!(vendor.connections(), expected);
    }
}
