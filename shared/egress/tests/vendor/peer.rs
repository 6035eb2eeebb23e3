//! A vendor made of a bare socket, so that it can misbehave, and the requests that go to it.

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annex_egress::draft::{Scheme, SentUrl};
use annex_egress::vendor::{Answer, Network, Outgoing, OutgoingBody, VendorClient, VendorFault};
use annex_egress::{CertificateDer, Policy, Resolve, ResolveFault};
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Long enough never to end in a test that is not about time.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);

/// The tenant of a test that is not about tenants.
pub(crate) const TENANT: &str = "tenant-a";

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Request line and header lines.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// One connection of the vendor.
pub(crate) struct Peer<S = TcpStream> {
    pub(crate) stream: S,
    /// Which connection it is, counted from 0.
    pub(crate) number: usize,
    seen: mpsc::UnboundedSender<Seen>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// The next request's head alone; `None` when the client has closed.
    pub(crate) async fn head(&mut self) -> Option<Vec<String>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.ok()?);
        }
        // A character for each byte, so that no header is lost.
        let head: String = head.into_iter().map(char::from).collect();
        Some(head.trim_end().split("\r\n").map(str::to_owned).collect())
    }

    /// The next request, whole; `None` when the client has closed.
    pub(crate) async fn request(&mut self) -> Option<Seen> {
        let head = self.head().await?;
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |text| text.parse().expect("it is a number"))];
        self.stream.read_exact(&mut body).await.ok()?;
        let seen = Seen { head, body };
        self.seen.send(seen.clone()).ok();
        Some(seen)
    }

    /// Sends bytes; a client that has gone is fine.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.ok();
        self.stream.flush().await.ok();
    }

    /// Sends bytes; whether the client has gone.
    pub(crate) async fn gone_after(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_err()
    }

    /// Sends bytes again and again until the client has gone.
    pub(crate) async fn send_forever(&mut self, bytes: &[u8]) {
        while !self.gone_after(bytes).await {}
    }

    /// Reads a request and sends bytes.
    pub(crate) async fn answer(&mut self, bytes: impl AsRef<[u8]>) {
        if self.request().await.is_some() {
            self.send(bytes).await;
        }
    }

    /// Waits until the client has closed; whether it sent anything before.
    pub(crate) async fn closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.ok();
        !rest.is_empty()
    }
}

impl Peer {
    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket can linger");
    }

    /// The same connection, spoken to through `wrap`.
    pub(crate) async fn through<S, F: Future<Output = Option<S>>>(
        self,
        wrap: impl FnOnce(TcpStream) -> F,
    ) -> Option<Peer<S>> {
        let stream = wrap(self.stream).await?;
        Some(Peer { stream, number: self.number, seen: self.seen })
    }
}

/// A vendor on a port of its own.
pub(crate) struct Vendor {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Vendor {
    /// Serves every connection with `serve`.
    pub(crate) async fn start<F, S>(serve: S) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
        S: Fn(Peer) -> F + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has ports");
        let port = listener.local_addr().expect("it is bound").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, seen) = mpsc::unbounded_channel();
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Peer { stream, number, seen: sender.clone() }));
            }
        });
        Self { port, connections, seen }
    }

    /// Answers the first request of every connection with these bytes, and closes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start(move |mut peer| {
            let bytes = Arc::clone(&bytes);
            async move { peer.answer(bytes.as_slice()).await }
        })
        .await
    }

    /// Answers every request of every connection with `200` and `ok`.
    pub(crate) async fn fine() -> Self {
        Self::start(|mut peer| async move {
            while peer.request().await.is_some() {
                peer.send(OK).await;
            }
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests seen so far.
    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }

    /// A `GET` without TLS.
    pub(crate) fn get(&self) -> Outgoing {
        self.outgoing(Method::GET)
    }

    pub(crate) fn outgoing(&self, method: Method) -> Outgoing {
        outgoing(method, Scheme::Http, self.port)
    }
}

/// A request to `api.vendor.example`.
pub(crate) fn outgoing(method: Method, scheme: Scheme, port: u16) -> Outgoing {
    let host = "api.vendor.example".to_owned();
    let url = SentUrl { scheme, host, port: Some(port), target: "/v1?a=1".to_owned() };
    Outgoing { method, url, headers: Vec::new(), body: OutgoingBody::None }
}

/// A name service that says what the test wants: each lookup takes the next answer, the last one stays.
pub(crate) struct Names {
    answers: Mutex<Vec<Result<Vec<IpAddr>, ResolveFault>>>,
    lookups: AtomicUsize,
}

impl Names {
    pub(crate) fn new(answers: Vec<Result<Vec<&str>, ResolveFault>>) -> Arc<Self> {
        let parse = |text: &str| text.parse().expect("an address");
        let answers = answers
            .into_iter()
            .map(|answer| answer.map(|addresses| addresses.into_iter().map(parse).collect()))
            .collect();
        Arc::new(Self { answers: Mutex::new(answers), lookups: AtomicUsize::new(0) })
    }

    /// Every name is this machine.
    pub(crate) fn loopback() -> Arc<Self> {
        Self::new(vec![Ok(vec!["127.0.0.1"])])
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, ResolveFault> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().expect("no lookup panics");
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.remove(0),
        }
    }
}

/// A client that may reach this machine, and keeps connections as long as a test lasts.
pub(crate) fn client() -> VendorClient {
    client_with(Names::loopback(), true, PATIENT)
}

pub(crate) fn client_with(
    names: Arc<dyn Resolve>,
    allow_private_networks: bool,
    keepalive: Duration,
) -> VendorClient {
    let policy = Policy { allow_private_networks, extra_roots: Vec::new() };
    VendorClient::new(policy, names, keepalive).expect("good roots")
}

pub(crate) fn trusting(root: CertificateDer<'static>) -> VendorClient {
    let policy = Policy { allow_private_networks: true, extra_roots: vec![root] };
    VendorClient::new(policy, Names::loopback(), PATIENT).expect("good roots")
}

pub(crate) async fn send(client: &VendorClient, outgoing: Outgoing) -> Result<Answer, VendorFault> {
    client.send(TENANT, outgoing, PATIENT).await
}

/// What comes back for [`OK`].
pub(crate) fn ok() -> Result<Answer, VendorFault> {
    answer(200, &[("content-length", "2")], "ok")
}

pub(crate) fn answer(
    status: u16,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Result<Answer, VendorFault> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let body = Bytes::copy_from_slice(body.as_ref());
    Ok(Answer { status, headers: headers.iter().map(own).collect(), body })
}

fn fault(text: &str, network: Option<Network>) -> Result<Answer, VendorFault> {
    Err(VendorFault { text: text.to_owned(), network })
}

pub(crate) fn refused(text: &str) -> Result<Answer, VendorFault> {
    fault(text, None)
}

pub(crate) fn not_sent(text: &str) -> Result<Answer, VendorFault> {
    fault(text, Some(Network::NotSent))
}

pub(crate) fn unknown(text: &str) -> Result<Answer, VendorFault> {
    fault(text, Some(Network::Unknown))
}

pub(crate) const INCOMPLETE: &str = "connection closed before the response was complete";
pub(crate) const RESET: &str = "connection reset";
pub(crate) const NOT_HTTP: &str = "response is not valid HTTP";
pub(crate) const NOT_PERMITTED: &str = "the host has an address that is not permitted";
