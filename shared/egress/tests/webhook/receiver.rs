//! An extension's endpoint made of a bare socket, so that it can misbehave, and the requests that go to it.

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annex_core::ports::{Outbound, SendFault, WebhookAnswer, WebhookRequest};
use annex_egress::{CertificateDer, Policy, Resolve, ResolveFault, WebhookClient};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Long enough never to end in a test that is not about time.
const PATIENT: Duration = Duration::from_secs(60);

/// A request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Request line and header lines.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// One connection of the endpoint.
pub(crate) struct Peer<S = TcpStream> {
    pub(crate) stream: S,
    seen: mpsc::UnboundedSender<Seen>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// The next request, whole; `None` when the client has closed.
    pub(crate) async fn request(&mut self) -> Option<Seen> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("our own heads are text");
        let head: Vec<String> = head.trim_end().split("\r\n").map(str::to_owned).collect();
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.expect("it is sent").parse().expect("it is a number")];
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

    /// Reads a request and sends bytes.
    pub(crate) async fn answer(&mut self, bytes: impl AsRef<[u8]>) {
        if self.request().await.is_some() {
            self.send(bytes).await;
        }
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
        Some(Peer { stream, seen: self.seen })
    }
}

/// An endpoint on a port of its own.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Receiver {
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
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Peer { stream, seen: sender.clone() }));
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

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests seen so far.
    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What comes back for [`OK`].
pub(crate) fn ok() -> Result<WebhookAnswer, SendFault> {
    answer(200, "ok")
}

pub(crate) fn answer(status: u16, body: &str) -> Result<WebhookAnswer, SendFault> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Ok(WebhookAnswer { status, retry_after: None, body })
}

/// A name service that says what the test wants: each lookup takes the next answer, the last one stays.
pub(crate) struct Names {
    answers: Mutex<Vec<Result<Vec<IpAddr>, ResolveFault>>>,
    pub(crate) lookups: AtomicUsize,
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

/// A client that may reach this machine.
pub(crate) fn client() -> WebhookClient {
    client_with(Names::loopback(), true, Vec::new())
}

pub(crate) fn client_with(
    names: Arc<Names>,
    allow_private_networks: bool,
    extra_roots: Vec<CertificateDer<'static>>,
) -> WebhookClient {
    WebhookClient::new(Policy { allow_private_networks, extra_roots }, names).expect("good roots")
}

pub(crate) fn request(url: impl Into<String>) -> WebhookRequest {
    WebhookRequest {
        url: url.into(),
        headers: Vec::new(),
        body: Bytes::from_static(b"{}"),
        timeout: PATIENT,
        response_bytes_max: 1_000,
    }
}

/// Sends a small request.
pub(crate) async fn send(
    client: &WebhookClient,
    url: impl Into<String>,
) -> Result<WebhookAnswer, SendFault> {
    client.send(request(url)).await
}

/// Sends one request to an endpoint that answers these bytes and closes.
pub(crate) async fn answer_to(bytes: impl Into<Vec<u8>>) -> Result<WebhookAnswer, SendFault> {
    let receiver = Receiver::answering(bytes).await;
    send(&client(), receiver.url()).await
}

pub(crate) fn broken(why: &str) -> Result<WebhookAnswer, SendFault> {
    Err(SendFault::Broken(why.to_owned()))
}

pub(crate) fn not_sent(why: &str) -> Result<WebhookAnswer, SendFault> {
    Err(SendFault::NotSent(why.to_owned()))
}

pub(crate) fn refused(why: &str) -> Result<WebhookAnswer, SendFault> {
    Err(SendFault::Refused(why.to_owned()))
}
