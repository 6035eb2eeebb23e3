//! The way out to extensions.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// A request to an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// Where to.
    pub url: String,
    /// Header names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The bytes on the wire.
    pub body: Bytes,
    /// Over connecting, sending, waiting and reading the whole answer.
    pub timeout: Duration,
    /// More of a body than this is not read.
    pub response_bytes_max: usize,
}

/// What an extension answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// HTTP status.
    pub status: u16,
    /// The `retry-after` header, if there was one that is text.
    pub retry_after: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendFault {
    /// Our own rules refuse the target: nothing was sent, and a retry changes nothing.
    #[error("target refused: {0}")]
    Refused(String),
    /// No connection, so nothing was sent.
    #[error("could not connect: {0}")]
    NotSent(String),
    /// The connection broke after something may have been sent.
    #[error("connection failed: {0}")]
    Broken(String),
    /// The time is over.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The body is too large: its declared size, or what was read when the limit was passed.
    #[error("response body size {size} exceeds limit")]
    TooLarge {
        /// HTTP status of the answer.
        status: u16,
        /// Bytes declared, or read.
        size: u64,
    },
}

/// The way out to extensions.
///
/// **Contract.** Names are resolved once and every address is checked; a redirect is an answer, never followed;
/// `timeout` ends the body as well as the headers; nothing is sent again by itself.
#[async_trait]
pub trait Outbound: Send + Sync {
    /// Whether a URL may be registered at all: its form and its literal addresses. The text says why not.
    fn check_url(&self, url: &str) -> Result<(), String>;
    /// Sends, and reads the whole answer.
    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault>;
}
