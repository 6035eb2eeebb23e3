//! Certificates, and what of a request leaves before they are checked.

use std::sync::Arc;

use annex_egress::CertificateDer;
use annex_egress::draft::Scheme;
use annex_egress::vendor::{Answer, Outgoing, VendorFault};
use http::Method;
use rcgen::CertifiedKey;
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::peer::{
    INCOMPLETE, OK, Peer, Vendor, answer, client, not_sent, ok, outgoing, send, trusting, unknown,
};

type Secure = Peer<tokio_rustls::server::TlsStream<tokio::net::TcpStream>>;

/// A vendor with a certificate of its own making for `name`, which serves what comes through TLS.
async fn vendor<F: Future<Output = ()> + Send + 'static>(
    name: &str,
    serve: impl Fn(Secure) -> F + Send + Sync + Copy + 'static,
) -> (Vendor, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([name.to_owned()]).expect("it is a name");
    let certificate = cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("key and certificate belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let vendor = Vendor::start(move |peer| {
        let acceptor = acceptor.clone();
        async move {
            let shaken = peer.through(async |stream| acceptor.accept(stream).await.ok()).await;
            if let Some(peer) = shaken {
                serve(peer).await;
            }
        }
    })
    .await;
    (vendor, certificate)
}

async fn fine(mut peer: Secure) {
    while peer.request().await.is_some() {
        peer.send(OK).await;
    }
}

fn post(port: u16) -> Outgoing {
    outgoing(Method::POST, Scheme::Https, port)
}

/// Calls a vendor with a certificate for this name, and counts the requests that arrive.
async fn check(name: &str, trusted: bool, why: Option<&str>) {
    let (mut vendor, certificate) = vendor(name, fine).await;
    let client = if trusted { trusting(certificate) } else { client() };
    let peer = format!("connect api.vendor.example:{}", vendor.port);
    let expected = why.map_or_else(ok, |why| not_sent(&format!("{peer}: {why}")));
    assert_eq!(send(&client, post(vendor.port)).await, expected);
    assert_eq!(vendor.seen().len(), usize::from(why.is_none()));
}

// covers: AL-184, AL-185
#[tokio::test]
async fn certificate_that_does_not_fit_is_not_sent() {
    check("api.vendor.example", true, None).await;
    check("api.vendor.example", false, Some("certificate not trusted")).await;
    check("vendor.example", true, Some("certificate is for another name")).await;
    check("*.vendor.example", true, None).await;
    check("*.api.vendor.example", true, Some("certificate is for another name")).await;
}

// covers: AL-184
#[tokio::test]
async fn vendor_that_speaks_no_tls_is_not_sent() {
    let check = async |vendor: Vendor, why: &str| {
        let peer = format!("connect api.vendor.example:{}", vendor.port);
        let found = send(&client(), post(vendor.port)).await;
        assert_eq!(found, not_sent(&format!("{peer}: {why}")));
    };
    let plain = Vendor::start(|mut peer| async move {
        peer.send("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        std::future::pending().await
    });
    check(plain.await, "TLS handshake failed").await;
    let gone = Vendor::start(|mut peer| async move {
        // The greeting is read whole, so that closing sends an end and no reset.
        let mut record = [0; 5];
        peer.stream.read_exact(&mut record).await.expect("a TLS record starts with five bytes");
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        peer.stream.read_exact(&mut vec![0; length]).await.expect("it has its length");
    });
    check(gone.await, "connection closed during the TLS handshake").await;
}

// covers: AL-183
#[tokio::test]
async fn handshake_that_does_not_end_in_time_is_not_sent() {
    let silent = Vendor::start(|mut peer| async move {
        peer.closed().await;
    })
    .await;
    let short = std::time::Duration::from_millis(500);
    let found = client().send("a", post(silent.port), short).await;
    let why = format!("connect ETIMEDOUT api.vendor.example:{}", silent.port);
    assert_eq!(found, not_sent(&why));
}

// covers: AL-218, AL-219
#[tokio::test]
async fn connection_with_tls_is_kept_for_its_tenant() {
    let (vendor, certificate) = vendor("api.vendor.example", fine).await;
    let client = trusting(certificate);
    for _ in 0..3 {
        assert_eq!(send(&client, post(vendor.port)).await, ok());
    }
    assert_eq!(vendor.connections(), 1);
    let other = client.send("tenant-b", post(vendor.port), crate::peer::PATIENT).await;
    assert_eq!((other, vendor.connections()), (ok(), 2));
}

// covers: AL-221, AL-222
#[tokio::test]
async fn kept_connection_with_tls_that_was_closed_is_met_as_one_without() {
    let once = |mut peer: Secure| async move {
        use tokio::io::AsyncWriteExt;
        peer.answer(OK).await;
        if peer.number == 0 {
            peer.request().await;
            peer.stream.shutdown().await.ok();
        } else {
            peer.closed().await;
        }
    };
    let check = async |method: Method, expected: Result<Answer, VendorFault>, connections| {
        let (vendor, certificate) = vendor("api.vendor.example", once).await;
        let client = trusting(certificate);
        assert_eq!(send(&client, post(vendor.port)).await, ok());
        let request = outgoing(method, Scheme::Https, vendor.port);
        assert_eq!(send(&client, request).await, expected);
        assert_eq!(vendor.connections(), connections);
    };
    check(Method::PUT, ok(), 2).await;
    check(Method::POST, unknown(INCOMPLETE), 1).await;
}

/// An attacker on the way can end a connection, but not say that the answer ended there.
// covers: AL-186
#[tokio::test]
async fn answer_whose_end_tls_does_not_confirm_is_unknown() {
    let open = "HTTP/1.1 200 OK\r\n\r\nall of it";
    let cut = move |mut peer: Secure| async move { peer.answer(open).await };
    let whole = move |mut peer: Secure| async move {
        use tokio::io::AsyncWriteExt;
        peer.answer(open).await;
        peer.stream.shutdown().await.ok();
    };
    let (cut, certificate) = vendor("api.vendor.example", cut).await;
    let found = send(&trusting(certificate), post(cut.port)).await;
    assert_eq!(found, unknown(INCOMPLETE));
    let (whole, certificate) = vendor("api.vendor.example", whole).await;
    let found = send(&trusting(certificate), post(whole.port)).await;
    assert_eq!(found, answer(200, &[], "all of it"));
}
