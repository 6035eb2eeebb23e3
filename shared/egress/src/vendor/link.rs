//! One connection to a vendor, driven by the request that holds it.
//!
//! Nothing runs beside a request: whoever holds a [`Link`] drives its connection, so dropping a request closes it, and
//! whether a connection is new or was kept is never a guess.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use annex_core::limits::{VENDOR_ANSWER_BYTES_MAX, VENDOR_HEAD_BYTES_MAX, VENDOR_HEADERS_MAX};
use annex_core::ports::SendFault;
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Answer;
use super::outgoing::{BodyFault, SentBody};
use crate::connect::{Connector, SocketFault};
use crate::{body, failure};

/// Why a request over a connection has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkFault {
    /// The connection ended before a byte of an answer had come.
    Unanswered(String),
    /// The answer broke off, or is none.
    Broken(String),
    /// The answer was not complete in time.
    TimedOut,
    HeadTooLarge,
    BodyTooLarge,
}

/// An open connection.
pub(super) struct Link {
    sender: SendRequest<SentBody>,
    /// None once it has ended.
    connection: Option<Connection<TokioIo<Counted>, SentBody>>,
    /// Whether what was answered last lets another request follow.
    reusable: bool,
    /// Bytes that have come so far.
    read: Arc<AtomicU64>,
}

impl Link {
    /// Connects to the host of an absolute URI, and shakes hands where it is `https`.
    pub(super) async fn open(
        connector: &HttpsConnector<Connector>,
        uri: Uri,
    ) -> Result<Self, BodyFault> {
        let stream = tower::Service::call(&mut connector.clone(), uri).await?;
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { stream: TokioIo::new(stream), read: Arc::clone(&read) };
        let (sender, connection) = Builder::new()
            .max_buf_size(VENDOR_HEAD_BYTES_MAX)
            .max_header_size(VENDOR_HEAD_BYTES_MAX)
            .max_headers(VENDOR_HEADERS_MAX)
            .handshake(TokioIo::new(counted))
            .await?;
        Ok(Self { sender, connection: Some(connection), reusable: true, read })
    }

    /// Whether a request can be sent: nothing is under way, and as far as is known nothing ended.
    pub(super) async fn is_idle(&mut self) -> bool {
        poll_fn(|context| {
            self.poll_connection(context);
            Poll::Ready(())
        })
        .await;
        self.reusable && self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request and reads its answer to the end.
    pub(super) async fn exchange(
        &mut self,
        request: Request<SentBody>,
    ) -> Result<Answer, LinkFault> {
        let before = self.read.load(Ordering::Relaxed);
        let sending = self.sender.try_send_request(request);
        let response = match self.beside(sending).await {
            Ok(response) => response,
            Err(error) => {
                let answered = self.read.load(Ordering::Relaxed) != before;
                return Err(fault_of(&error.into_error(), answered));
            }
        };
        self.reusable = response.version() == Version::HTTP_11;
        let (head, body) = split(response)?;
        let status = head.0.as_u16();
        let body = self.beside(body::read(status, body, VENDOR_ANSWER_BYTES_MAX, None)).await;
        let body = body.map_err(fault_of_body)?;
        Ok(Answer { status, headers: decoded(&head.1), body })
    }

    /// Does `work` while the connection carries its bytes.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            self.poll_connection(context);
            work.as_mut().poll(context)
        })
        .await
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) {
        let Some(connection) = &mut self.connection else { return };
        if let Poll::Ready(end) = Pin::new(connection).poll(context) {
            // Whoever waits for an answer hears of the fault by itself.
            if let Err(error) = end {
                tracing::debug!(error = &error as &dyn std::error::Error, "connection ended");
            }
            self.connection = None;
        }
    }
}

/// The parts of a response that is an answer: hyper has left out the informational ones before it.
fn split(response: Response<Incoming>) -> Result<((StatusCode, HeaderMap), Incoming), LinkFault> {
    let (head, body) = response.into_parts();
    match head.status {
        StatusCode::SWITCHING_PROTOCOLS => {
            Err(LinkFault::Broken("the vendor switched to another protocol".to_owned()))
        }
        status => Ok(((status, head.headers), body)),
    }
}

/// A character for each byte, as Fetch reads header values.
fn decoded(headers: &HeaderMap) -> Vec<(String, String)> {
    let latin1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    headers.iter().map(|(name, value)| (name.to_string(), latin1(value.as_bytes()))).collect()
}

fn fault_of(error: &hyper::Error, answered: bool) -> LinkFault {
    if error.is_parse_too_large() {
        return LinkFault::HeadTooLarge;
    }
    let text = match failure::of_exchange(error) {
        SendFault::Broken(text) => text,
        other => other.to_string(),
    };
    if error.is_user() {
        return LinkFault::Broken("the request body could not be read to its end".to_owned());
    }
    match !answered && ended(error) {
        true => LinkFault::Unanswered(text),
        false => LinkFault::Broken(text),
    }
}

/// Whether the other side ended the connection, or hyper found it ended before it sent.
fn ended(error: &hyper::Error) -> bool {
    let socket = failure::find::<io::Error>(error).map(SocketFault::of);
    error.is_incomplete_message()
        || error.is_canceled()
        || error.is_closed()
        || matches!(socket, Some(SocketFault::Reset | SocketFault::Closed))
}

fn fault_of_body(fault: SendFault) -> LinkFault {
    match fault {
        SendFault::TooLarge { .. } => LinkFault::BodyTooLarge,
        SendFault::Broken(text) => LinkFault::Broken(text),
        other => LinkFault::Broken(other.to_string()),
    }
}

/// A stream that counts what is read of it.
struct Counted {
    stream: TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>,
    read: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let size = buffer.filled().len() - before;
        self.read.fetch_add(size as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
