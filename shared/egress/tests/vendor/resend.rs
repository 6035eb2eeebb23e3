//! What happens to a request that meets a kept connection which the vendor has closed.

use std::sync::Arc;

use annex_egress::ResolveFault;
use annex_egress::vendor::{Answer, VendorClient, VendorFault};
use http::Method;
use tokio::sync::{mpsc, watch};

use crate::peer::{
    INCOMPLETE, NOT_PERMITTED, Names, OK, PATIENT, Peer, RESET, Vendor, client, client_with, ok,
    refused, send, unknown,
};

const CLOSED: &str = "the vendor closed the connection that was kept for this request";
const TWICE: [Method; 4] = [Method::GET, Method::HEAD, Method::PUT, Method::DELETE];
const ONCE: [Method; 2] = [Method::POST, Method::PATCH];

/// What comes back for [`OK`].
fn ok_for(method: &Method) -> Result<Answer, VendorFault> {
    let answer = ok();
    match *method {
        Method::HEAD => answer.map(|answer| Answer { body: bytes::Bytes::new(), ..answer }),
        _ => answer,
    }
}

/// A client whose kept connection was closed by the vendor while it was idle.
async fn left_behind(names: Arc<Names>, reset: bool) -> (VendorClient, Vendor) {
    let (close, gate) = watch::channel(false);
    let (closed, mut on_close) = mpsc::unbounded_channel();
    let mut vendor = Vendor::start(move |mut peer| {
        let (closed, mut gate) = (closed.clone(), gate.clone());
        async move {
            peer.answer(OK).await;
            if peer.number > 0 {
                peer.closed().await;
                return;
            }
            gate.wait_for(|open| *open).await.expect("the test opens it");
            match reset {
                true => peer.reset(),
                false => drop(peer),
            }
            closed.send(()).expect("the test waits");
        }
    })
    .await;
    let client = client_with(names, true, PATIENT);
    assert_eq!(send(&client, vendor.get()).await, ok());
    close.send(true).expect("the vendor waits");
    on_close.recv().await.expect("the vendor closes");
    assert_eq!((vendor.connections(), vendor.seen().len()), (1, 1));
    (client, vendor)
}

// covers: AL-221
#[tokio::test]
async fn request_that_may_go_twice_goes_out_over_a_new_connection() {
    for method in TWICE {
        let names = Names::loopback();
        let (client, mut vendor) = left_behind(names.clone(), false).await;
        assert_eq!(send(&client, vendor.outgoing(method.clone())).await, ok_for(&method));
        assert_eq!((vendor.connections(), vendor.seen().len()), (2, 1), "{method}");
        assert_eq!(names.lookups(), 2);
    }
}

// covers: AL-222
#[tokio::test]
async fn request_that_must_not_go_twice_is_unknown_and_goes_nowhere() {
    for method in ONCE {
        let (client, mut vendor) = left_behind(Names::loopback(), false).await;
        let found = send(&client, vendor.outgoing(method.clone())).await;
        // Whether the end of the connection was noticed before or after it was written to.
        let either = [unknown(CLOSED), unknown(INCOMPLETE), unknown(RESET)];
        assert!(either.contains(&found), "{found:?}");
        assert_eq!((vendor.connections(), vendor.seen()), (1, Vec::new()), "{method}");
        // The connection is gone, so the next one is new.
        assert_eq!(send(&client, vendor.outgoing(method)).await, ok());
        assert_eq!((vendor.connections(), vendor.seen().len()), (2, 1));
    }
}

/// Over its first connection the vendor answers one request and does this with the next one; over later ones it answers.
async fn misbehaving<F: Future<Output = ()> + Send + 'static>(
    second: impl Fn(Peer) -> F + Send + Sync + Copy + 'static,
    number: usize,
) -> Vendor {
    Vendor::start(move |mut peer| async move {
        peer.answer(OK).await;
        if peer.number >= number {
            peer.closed().await;
            return;
        }
        if peer.request().await.is_some() {
            second(peer).await;
        }
    })
    .await
}

// covers: AL-221, AL-222
#[tokio::test]
async fn connection_that_ends_on_the_request_is_treated_as_closed_before_it() {
    for reset in [false, true] {
        let end = move |peer: Peer| async move {
            match reset {
                true => peer.reset(),
                false => drop(peer),
            }
        };
        for method in TWICE {
            let (client, mut vendor) = (client(), misbehaving(end, 1).await);
            assert_eq!(send(&client, vendor.get()).await, ok());
            assert_eq!(send(&client, vendor.outgoing(method.clone())).await, ok_for(&method));
            assert_eq!((vendor.connections(), vendor.seen().len()), (2, 3));
        }
        for method in ONCE {
            let (client, mut vendor) = (client(), misbehaving(end, 1).await);
            assert_eq!(send(&client, vendor.get()).await, ok());
            let found = send(&client, vendor.outgoing(method)).await;
            assert_eq!(found, unknown(if reset { RESET } else { INCOMPLETE }));
            assert_eq!((vendor.connections(), vendor.seen().len()), (1, 2));
        }
    }
}

// covers: AL-186
#[tokio::test]
async fn kept_connection_that_breaks_in_the_answer_is_unknown_for_every_method() {
    let half = |mut peer: Peer| async move { peer.send("HTTP/1.1 2").await };
    for method in TWICE.into_iter().chain(ONCE) {
        let (client, mut vendor) = (client(), misbehaving(half, 1).await);
        assert_eq!(send(&client, vendor.get()).await, ok());
        assert_eq!(send(&client, vendor.outgoing(method)).await, unknown(INCOMPLETE));
        assert_eq!((vendor.connections(), vendor.seen().len()), (1, 2));
    }
}

// covers: AL-221
#[tokio::test]
async fn request_goes_out_once_more_and_not_again() {
    let mut vendor = Vendor::start(|mut peer| async move {
        match peer.number {
            0 => {
                peer.answer(OK).await;
                peer.request().await;
            }
            _ => drop(peer.request().await),
        }
    })
    .await;
    let client = client();
    assert_eq!(send(&client, vendor.get()).await, ok());
    assert_eq!(send(&client, vendor.get()).await, unknown(INCOMPLETE));
    assert_eq!((vendor.connections(), vendor.seen().len()), (2, 3));
}

/// The new connection is made under the rules of any new one, and what the vendor may have stays unknown.
#[tokio::test]
async fn second_sending_that_fails_is_not_said_to_be_unsent() {
    let drop_it = |peer: Peer| async move { drop(peer) };
    let check = async |second, expected| {
        let vendor = misbehaving(drop_it, 1).await;
        let names = Names::new(vec![Ok(vec!["127.0.0.1"]), second]);
        let client = client_with(names, true, PATIENT);
        assert_eq!(send(&client, vendor.get()).await, ok());
        assert_eq!(send(&client, vendor.get()).await, expected);
        assert_eq!(vendor.connections(), 1);
    };
    let lookup = "getaddrinfo EAI_AGAIN api.vendor.example";
    check(Err(ResolveFault::Failed), unknown(lookup)).await;
    check(Ok(vec!["169.254.169.254"]), refused(NOT_PERMITTED)).await;
}

#[tokio::test]
async fn kept_connection_that_was_reset_is_not_used() {
    let (client, mut vendor) = left_behind(Names::loopback(), true).await;
    assert_eq!(send(&client, vendor.get()).await, ok());
    assert_eq!((vendor.connections(), vendor.seen().len()), (2, 1));
}

/// Some servers say that they were waited for too long before they close.
#[tokio::test]
async fn bytes_that_nobody_asked_for_end_a_kept_connection() {
    let (sent, mut on_sent) = mpsc::unbounded_channel();
    let (go, gate) = watch::channel(false);
    let mut vendor = Vendor::start(move |mut peer| {
        let (sent, mut gate) = (sent.clone(), gate.clone());
        async move {
            peer.answer(OK).await;
            if peer.number == 0 {
                gate.wait_for(|open| *open).await.unwrap();
                peer.send("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n").await;
                sent.send(()).unwrap();
            }
            peer.closed().await;
        }
    })
    .await;
    let client = client();
    assert_eq!(send(&client, vendor.get()).await, ok());
    go.send(true).unwrap();
    on_sent.recv().await.unwrap();
    assert_eq!(send(&client, vendor.get()).await, ok());
    assert_eq!((vendor.connections(), vendor.seen().len()), (2, 2));
}
