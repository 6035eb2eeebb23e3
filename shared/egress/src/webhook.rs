//! The client that extensions are called through.

use std::sync::Arc;
use std::time::Duration;

use annex_core::limits::LARGE_BODIES_AT_ONCE;
use annex_core::ports::{Outbound, SendFault, WebhookAnswer, WebhookRequest};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;

use crate::connect::{Connector, PlainHttp};
use crate::known::KnownTargets;
use crate::policy::Policy;
use crate::resolve::Resolve;
use crate::tls::{self, BadRoot};
use crate::{body, failure};

/// How long a connection without a request is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections without a request that are kept for one host. As many as deliveries run at a time for one extension.
const IDLE_PER_HOST_MAX: usize = 64;

/// What is read of a connection at a time, and so the largest head of a response, in bytes.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// How the platform names itself.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("annex/", env!("CARGO_PKG_VERSION")));

/// Headers that the connection sets. Two opinions about them are how requests are smuggled.
const FRAMING: &[HeaderName] = &[
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
];

/// Sends webhooks and reads their answers.
///
/// **Contract.** That of [`Outbound`]. Over one kept connection requests follow each other, never overlap. A request
/// goes out a second time only where the kept connection it was meant for turned out closed before a byte of it was
/// handed to the network (hyper gives such a request back; once it is being written, it never does). Environment
/// variables that name proxies are not read. Bodies are not decompressed, and none is asked for.
pub struct WebhookClient {
    http: Client<HttpsConnector<Connector>, Full<Bytes>>,
    large_bodies: Semaphore,
    targets: KnownTargets,
}

impl WebhookClient {
    /// A client under `policy`, with its own kept connections.
    ///
    /// One process needs one: what it bounds, it bounds for its own requests only.
    pub fn new(policy: Policy, resolver: Arc<dyn Resolve>) -> Result<Self, BadRoot> {
        let allow_private_networks = policy.allow_private_networks;
        let connector = tls::connector(policy, resolver, PlainHttp::Loopback)?;
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
            .http1_max_buf_size(READ_BUFFER_BYTES)
            .retry_canceled_requests(true)
            .build(connector);
        let large_bodies = Semaphore::new(LARGE_BODIES_AT_ONCE);
        Ok(Self { http, large_bodies, targets: KnownTargets::new(allow_private_networks) })
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<WebhookAnswer, SendFault> {
        let response =
            self.http.request(request).await.map_err(|error| failure::of_request(&error))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(&response);
        let body =
            body::read(status, response.into_body(), bytes_max, Some(&self.large_bodies)).await?;
        Ok(WebhookAnswer { status, retry_after, body })
    }
}

#[async_trait]
impl Outbound for WebhookClient {
    fn check_url(&self, url: &str) -> Result<(), String> {
        self.targets.parse(url).map(drop).map_err(|refusal| refusal.to_string())
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        let WebhookRequest { url, headers, body, timeout, response_bytes_max } = request;
        let uri =
            self.targets.parse(&url).map_err(|refusal| SendFault::Refused(refusal.to_string()))?;
        let request = build(uri, &headers, body)?;
        tokio::time::timeout(timeout, self.exchange(request, response_bytes_max))
            .await
            .unwrap_or(Err(SendFault::TimedOut(timeout)))
    }
}

/// A `POST` (LC-013) of `body`; `host` is set where it is sent.
fn build(
    uri: Uri,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, SendFault> {
    let length = HeaderValue::from(body.len());
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let map = request.headers_mut();
    for (name, value) in headers {
        let refused = |why| SendFault::Refused(format!("header {name:?} {why}"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("has no name"))?;
        if FRAMING.contains(&header) {
            return Err(refused("is not for callers to set"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| refused("has no value for HTTP"))?;
        map.append(header, value);
    }
    map.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
    map.entry(header::USER_AGENT).or_insert(USER_AGENT);
    // hyper leaves it out where the body is empty; some servers then answer 411.
    map.insert(header::CONTENT_LENGTH, length);
    Ok(request)
}

/// The `retry-after` header, where it is text.
fn retry_after(response: &Response<Incoming>) -> Option<String> {
    response.headers().get(header::RETRY_AFTER)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, value: &str) -> Result<String, SendFault> {
        let headers = [(name, value.to_owned())];
        build(Uri::from_static("https://h.example/"), &headers, Bytes::new())
            .map(|request| format!("{:?}", request.headers()))
    }

    #[test]
    fn caller_headers_stand_beside_our_own() {
        assert_eq!(
            check("x-a", "1"),
            Ok(format!(
                r#"{{"x-a": "1", "accept": "application/json", "user-agent": "annex/{}", "content-length": "0"}}"#,
                env!("CARGO_PKG_VERSION")
            ))
        );
    }

    #[test]
    fn header_that_frames_or_breaks_the_message_is_refused() {
        let refused = |text: &str| Err(SendFault::Refused(text.to_owned()));
        check("x-a", "1\r\nhost: evil").expect_err("line break");
        assert_eq!(check("x-a", "a\nb"), refused(r#"header "x-a" has no value for HTTP"#));
        assert_eq!(check("", "a"), refused(r#"header "" has no name"#));
        assert_eq!(check("host", "a"), refused(r#"header "host" is not for callers to set"#));
        assert_eq!(
            check("content-length", "1"),
            refused(r#"header "content-length" is not for callers to set"#)
        );
    }
}
