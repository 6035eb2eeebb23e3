//! Which requests share a connection, and for how long.

use std::sync::Arc;
use std::time::Duration;

use annex_egress::ResolveFault;
use annex_egress::vendor::VendorClient;
use http::Method;
use tokio::sync::mpsc;

use crate::peer::{
    NOT_PERMITTED, Names, OK, PATIENT, TENANT, Vendor, answer, client, client_with, ok, refused,
    send, unknown,
};

// covers: AL-209, AL-218
#[tokio::test]
async fn requests_of_a_tenant_to_a_host_follow_each_other_over_one_connection() {
    let vendor = Vendor::fine().await;
    let names = Names::loopback();
    let client = client_with(names.clone(), true, VendorClient::KEEPALIVE);
    for method in [Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
        assert_eq!(send(&client, vendor.outgoing(method)).await, ok());
    }
    assert_eq!((vendor.connections(), names.lookups()), (1, 1));
}

// covers: AL-218
#[tokio::test]
async fn kept_connection_is_closed_when_its_time_has_ended() {
    let (closed, mut on_close) = mpsc::unbounded_channel();
    let vendor = Vendor::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.answer(OK).await;
            closed.send(peer.closed().await).unwrap();
        }
    })
    .await;
    let client = client_with(Names::loopback(), true, Duration::from_millis(50));
    for connections in 1..=2 {
        assert_eq!(send(&client, vendor.get()).await, ok());
        assert_eq!(on_close.recv().await, Some(false));
        assert_eq!(vendor.connections(), connections);
    }
}

#[tokio::test]
async fn without_a_time_to_keep_them_connections_are_not_kept() {
    let vendor = Vendor::fine().await;
    let client = client_with(Names::loopback(), true, Duration::ZERO);
    for connections in 1..=3 {
        assert_eq!(send(&client, vendor.outgoing(Method::POST)).await, ok());
        assert_eq!(vendor.connections(), connections);
    }
}

// covers: AL-219
#[tokio::test]
async fn another_tenant_gets_a_connection_of_its_own() {
    let vendor = Vendor::fine().await;
    let names = Names::loopback();
    let client = client_with(names.clone(), true, PATIENT);
    for tenant in ["a", "b", "a", "b", "A", "", "a"] {
        assert_eq!(client.send(tenant, vendor.get(), PATIENT).await, ok());
    }
    assert_eq!((vendor.connections(), names.lookups()), (4, 4));
}

#[tokio::test]
async fn another_name_of_the_same_address_gets_a_connection_of_its_own() {
    let vendor = Vendor::fine().await;
    let client = client();
    let mut other = vendor.get();
    other.url.host = "other.vendor.example".to_owned();
    for request in [vendor.get(), other.clone(), vendor.get(), other] {
        assert_eq!(send(&client, request).await, ok());
    }
    assert_eq!(vendor.connections(), 2);
}

// covers: AL-220
#[tokio::test]
async fn kept_connection_stays_where_it_is_and_a_new_one_is_checked_afresh() {
    let vendor = Vendor::fine().await;
    let names = Names::new(vec![Ok(vec!["127.0.0.1"]), Ok(vec!["169.254.169.254"])]);
    let client = client_with(names.clone(), true, PATIENT);
    for _ in 0..3 {
        assert_eq!(send(&client, vendor.get()).await, ok());
    }
    assert_eq!((vendor.connections(), names.lookups()), (1, 1));
    let other = client.send("tenant-b", vendor.get(), PATIENT).await;
    assert_eq!(other, refused(NOT_PERMITTED));
    assert_eq!(send(&client, vendor.get()).await, ok());
    assert_eq!((vendor.connections(), names.lookups()), (1, 2));
}

// covers: AL-209, AL-216, AL-220
#[tokio::test]
async fn each_new_connection_takes_one_lookup() {
    let vendor = Vendor::start(|mut peer| async move {
        peer.answer(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).await;
    })
    .await;
    let names = Names::new(vec![
        Ok(vec!["127.0.0.1"]),
        Ok(vec!["127.0.0.1"]),
        Ok(vec!["169.254.169.254"]),
        Err(ResolveFault::Failed),
    ]);
    let client = client_with(names.clone(), true, PATIENT);
    let closing = answer(200, &[("content-length", "2"), ("connection", "close")], "ok");
    for lookups in 1..=2 {
        assert_eq!(send(&client, vendor.get()).await, closing);
        assert_eq!((vendor.connections(), names.lookups()), (lookups, lookups));
    }
    assert_eq!(send(&client, vendor.get()).await, refused(NOT_PERMITTED));
    assert_eq!((vendor.connections(), names.lookups()), (2, 3));
}

/// Each answer ends its connection, one way or another, so the next request takes a new one.
#[tokio::test]
async fn connection_that_cannot_take_another_request_is_not_kept() {
    let check = async |bytes: &'static str| {
        let vendor = Vendor::start(move |mut peer| async move {
            peer.answer(bytes).await;
            peer.closed().await;
        })
        .await;
        let client = client();
        for connections in 1..=2 {
            send(&client, vendor.outgoing(Method::POST)).await.unwrap();
            assert_eq!(vendor.connections(), connections, "{bytes}");
        }
    };
    check("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    check("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    check("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n").await;
    // What follows an answer that nobody asked for: the next request must not get it.
    check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nsmuggled").await;
    check("HTTP/1.1 204 No Content\r\n\r\nsmuggled").await;
}

#[tokio::test]
async fn requests_at_the_same_time_do_not_share_a_connection() {
    let (arrived, mut on_arrival) = mpsc::unbounded_channel();
    let (go, gate) = tokio::sync::watch::channel(false);
    let vendor = Vendor::start(move |mut peer| {
        let (arrived, mut gate) = (arrived.clone(), gate.clone());
        async move {
            while peer.request().await.is_some() {
                arrived.send(peer.number).unwrap();
                gate.wait_for(|open| *open).await.unwrap();
                peer.send(OK).await;
            }
        }
    })
    .await;
    let client = Arc::new(client());
    let sending: Vec<_> = (0..20)
        .map(|_| {
            let (client, request) = (Arc::clone(&client), vendor.get());
            tokio::spawn(async move { client.send(TENANT, request, PATIENT).await })
        })
        .collect();
    for _ in 0..20 {
        on_arrival.recv().await.unwrap();
    }
    assert_eq!(vendor.connections(), 20);
    go.send(true).unwrap();
    for request in sending {
        assert_eq!(request.await.unwrap(), ok());
    }
    assert_eq!(send(&client, vendor.get()).await, ok());
    assert_eq!(vendor.connections(), 20);
}

// covers: AL-188
#[tokio::test]
async fn failure_over_a_kept_connection_is_never_not_sent() {
    let vendor = Vendor::start(|mut peer| async move {
        peer.answer(OK).await;
        peer.request().await;
        peer.closed().await;
    })
    .await;
    for method in [Method::GET, Method::POST] {
        let client = client();
        assert_eq!(send(&client, vendor.outgoing(method.clone())).await, ok());
        let short = Duration::from_millis(500);
        let found = client.send(TENANT, vendor.outgoing(method), short).await;
        assert_eq!(found, unknown("no complete answer within 500 ms"));
    }
    assert_eq!(vendor.connections(), 2);
}
