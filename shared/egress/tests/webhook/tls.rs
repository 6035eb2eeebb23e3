//! Certificates: whose, from whom, and what is not sent where they do not fit (LC-012).

use std::sync::Arc;

use annex_core::ports::{SendFault, WebhookAnswer};
use annex_egress::{CertificateDer, Policy, WebhookClient};
use rcgen::CertifiedKey;
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::receiver::{Names, OK, Receiver, client_with, not_sent, ok, send};

/// An endpoint with a certificate of its own making for `name`.
async fn endpoint(name: &str) -> (Receiver, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([name.to_owned()]).expect("it is a name");
    let certificate = cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("key and certificate belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let receiver = Receiver::start(move |peer| {
        let acceptor = acceptor.clone();
        async move {
            let shaken = peer.through(async |stream| acceptor.accept(stream).await.ok()).await;
            let Some(mut peer) = shaken else { return };
            while peer.request().await.is_some() {
                peer.send(OK).await;
            }
        }
    })
    .await;
    (receiver, certificate)
}

/// Calls `hooks.example`, and counts the requests that arrive.
async fn check(
    certificate_name: &str,
    trusted: bool,
    expected: Result<WebhookAnswer, SendFault>,
    requests: usize,
) {
    let (mut receiver, certificate) = endpoint(certificate_name).await;
    let roots = if trusted { vec![certificate] } else { Vec::new() };
    let client = client_with(Names::loopback(), true, roots);
    let url = format!("https://hooks.example:{}/", receiver.port);
    assert_eq!(send(&client, &url).await, expected);
    assert_eq!(receiver.seen().len(), requests);
}

// covers: LC-012
#[tokio::test]
async fn self_signed_certificate_is_refused_before_the_handler_is_reached_lc_012() {
    check("hooks.example", false, not_sent("certificate not trusted"), 0).await;
}

#[tokio::test]
async fn certificate_of_an_extra_root_is_accepted() {
    check("hooks.example", true, ok(), 1).await;
}

#[tokio::test]
async fn certificate_for_another_name_is_refused() {
    check("other.example", true, not_sent("certificate is for another name"), 0).await;
}

#[tokio::test]
async fn kept_connection_with_tls_is_used_again() {
    let (receiver, certificate) = endpoint("hooks.example").await;
    let client = client_with(Names::loopback(), true, vec![certificate]);
    let url = format!("https://hooks.example:{}/", receiver.port);
    for _ in 0..3 {
        assert_eq!(send(&client, &url).await, ok());
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn endpoint_that_speaks_no_tls_is_not_sent() {
    let client = client_with(Names::loopback(), true, Vec::new());
    let check = async |receiver: Receiver, why| {
        let url = format!("https://hooks.example:{}/", receiver.port);
        assert_eq!(send(&client, url).await, not_sent(why));
    };
    let plain = Receiver::start(|mut peer| async move {
        peer.send("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        std::future::pending().await
    });
    check(plain.await, "TLS handshake failed").await;
    let gone = Receiver::start(|mut peer| async move {
        // The greeting is read whole, so that closing sends an end and no reset.
        let mut record = [0; 5];
        peer.stream.read_exact(&mut record).await.expect("a TLS record starts with five bytes");
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        peer.stream.read_exact(&mut vec![0; length]).await.expect("it has its length");
    });
    check(gone.await, "connection closed during the TLS handshake").await;
}

#[test]
fn root_that_is_no_certificate_is_named() {
    let extra_roots = vec![CertificateDer::from(vec![1, 2, 3])];
    let policy = Policy { allow_private_networks: false, extra_roots };
    let fault = WebhookClient::new(policy, Names::loopback()).err().unwrap();
    assert_eq!(fault.index, 0);
}
