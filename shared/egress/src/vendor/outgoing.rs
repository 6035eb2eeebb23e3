//! A request as it is handed to the client, and the message it becomes.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Uri};
use hyper::body::{Body, Frame, SizeHint};

use super::fault::VendorFault;
use crate::draft::SentUrl;

/// Headers that the client alone sets, or nobody (AL-154): two opinions about them are how requests are smuggled.
pub const RESERVED_HEADERS: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::EXPECT,
    header::UPGRADE,
];

/// Why a body could not be read to its end. Its text goes to the log only.
pub type BodyFault = Box<dyn Error + Send + Sync>;

/// The bytes of a body, piece by piece.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, BodyFault>> + Send>>;

/// Opens a body from its start; called once for each time the request goes out, two times at most.
pub type OpenBody = Arc<dyn Fn() -> ByteStream + Send + Sync>;

/// A request, complete but for the headers that frame it. Its `Debug` shows what holds no secret.
#[derive(Clone)]
pub struct Outgoing {
    /// One of those of the contract; which may go out twice depends on it.
    pub method: Method,
    /// An approved target.
    pub url: SentUrl,
    /// Everything but [`RESERVED_HEADERS`], `user-agent` included. Values are sent a byte for each character, as Fetch
    /// does: those above U+00FF are refused.
    pub headers: Vec<(String, String)>,
    /// What follows the head.
    pub body: OutgoingBody,
}

/// The body of a request.
#[derive(Clone)]
pub enum OutgoingBody {
    /// None, which a `POST`, `PUT` or `PATCH` says by a length of 0.
    None,
    /// These bytes.
    Bytes(Bytes),
    /// Bytes that are read while they are sent; a stream that is not exactly as long as said breaks the request off.
    Stream {
        /// In bytes.
        length: u64,
        /// Opens it.
        open: OpenBody,
    },
}

impl fmt::Debug for OutgoingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no body"),
            Self::Bytes(bytes) => write!(f, "a body of {} bytes", bytes.len()),
            Self::Stream { length, .. } => write!(f, "a stream of {length} bytes"),
        }
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("method", &self.method)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl Outgoing {
    /// Every header as it goes out, `host` first and `content-length`, where there is one, last (AL-156).
    pub fn sent_headers(&self) -> Vec<(String, String)> {
        let mut sent = vec![("host".to_owned(), self.url.host_header())];
        sent.extend(self.headers.iter().cloned());
        sent.extend(
            self.content_length().map(|size| ("content-length".to_owned(), size.to_string())),
        );
        sent
    }

    /// A method whose requests usually have a body says that there is none (RFC 9110, 8.6).
    fn content_length(&self) -> Option<u64> {
        match &self.body {
            OutgoingBody::None => {
                let expected = [Method::POST, Method::PUT, Method::PATCH];
                expected.contains(&self.method).then_some(0)
            }
            OutgoingBody::Bytes(bytes) => Some(bytes.len() as u64),
            OutgoingBody::Stream { length, .. } => Some(*length),
        }
    }
}

/// A request that is known to fit into HTTP.
pub(super) struct Prepared {
    method: Method,
    url: SentUrl,
    /// Path and query alone, as they stand in the request line.
    target: Uri,
    absolute: Uri,
    headers: HeaderMap,
    body: OutgoingBody,
}

impl Prepared {
    pub(super) fn new(outgoing: Outgoing) -> Result<Self, VendorFault> {
        let reserved = |(name, _): &&(String, String)| {
            RESERVED_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own.as_str()))
        };
        if let Some((name, _)) = outgoing.headers.iter().find(reserved) {
            return Err(VendorFault::refused(format!("header {name:?} is set by the host")));
        }
        let headers = header_map(&outgoing.sent_headers())?;
        let (target, absolute) = uris(&outgoing.url)?;
        let Outgoing { method, url, body, .. } = outgoing;
        Ok(Self { method, url, target, absolute, headers, body })
    }

    pub(super) fn url(&self) -> &SentUrl {
        &self.url
    }

    pub(super) fn absolute(&self) -> &Uri {
        &self.absolute
    }

    /// Whether the request may go out again after a kept connection was closed (AL-221, AL-222).
    pub(super) fn may_go_twice(&self) -> bool {
        [Method::GET, Method::HEAD, Method::PUT, Method::DELETE].contains(&self.method)
    }

    pub(super) fn build(&self) -> Request<SentBody> {
        let mut request = Request::new(SentBody::of(&self.body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, VendorFault> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let refused = |why| VendorFault::refused(format!("header {name:?} {why}"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("has no name"))?;
        let value = latin1(value).and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
        let value = value.ok_or_else(|| refused("has no value for HTTP"))?;
        map.try_append(header, value).map_err(|_full| refused("is one too many"))?;
    }
    Ok(map)
}

/// A byte for each character, where every one is a byte.
fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn uris(url: &SentUrl) -> Result<(Uri, Uri), VendorFault> {
    let refused = || VendorFault::refused("URL cannot be sent over HTTP");
    // Read as a path: a whole URI's parser takes what follows two slashes for a host.
    let path = PathAndQuery::try_from(url.target.as_str()).map_err(|_bad| refused())?;
    if !url.target.starts_with('/') || path.as_str() != url.target {
        return Err(refused());
    }
    let absolute = Uri::builder()
        .scheme(url.scheme.as_str())
        .authority(url.host_header())
        .path_and_query(path.clone())
        .build()
        .map_err(|_bad| refused())?;
    // Credentials are no part of a host; where the reader of URLs lets some through, they end here (AL-144).
    let same = absolute.host() == Some(url.host.as_str()) && absolute.port_u16() == url.port;
    if url.host.is_empty() || !same {
        return Err(refused());
    }
    Ok((Uri::from(path), absolute))
}

/// A body on its way out.
pub(super) enum SentBody {
    Nothing,
    Bytes(Bytes),
    Stream { stream: ByteStream, left: u64 },
}

impl SentBody {
    fn of(body: &OutgoingBody) -> Self {
        match body {
            OutgoingBody::None | OutgoingBody::Stream { length: 0, .. } => Self::Nothing,
            OutgoingBody::Bytes(bytes) if bytes.is_empty() => Self::Nothing,
            OutgoingBody::Bytes(bytes) => Self::Bytes(bytes.clone()),
            OutgoingBody::Stream { length, open } => Self::Stream { stream: open(), left: *length },
        }
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let body = self.get_mut();
        match body {
            Self::Nothing => Poll::Ready(None),
            Self::Bytes(bytes) => {
                let frame = Frame::data(std::mem::take(bytes));
                *body = Self::Nothing;
                Poll::Ready(Some(Ok(frame)))
            }
            Self::Stream { left: 0, .. } => Poll::Ready(None),
            Self::Stream { stream, left } => {
                Poll::Ready(Some(match ready!(stream.as_mut().poll_next(context)) {
                    Some(Ok(piece)) if piece.len() as u64 > *left => {
                        Err("request body is longer than it was said to be".into())
                    }
                    Some(Ok(piece)) => {
                        *left -= piece.len() as u64;
                        Ok(Frame::data(piece))
                    }
                    Some(Err(error)) => Err(error),
                    None => Err("request body is shorter than it was said to be".into()),
                }))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Nothing | Self::Stream { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Nothing => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream { left, .. } => *left,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Scheme;

    fn outgoing(method: Method, headers: &[(&str, &str)], body: OutgoingBody) -> Outgoing {
        let url = SentUrl {
            scheme: Scheme::Https,
            host: "h.example".to_owned(),
            port: Some(8443),
            target: "/a?b='c'".to_owned(),
        };
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Outgoing { method, url, headers: headers.iter().map(own).collect(), body }
    }

    #[test]
    fn debug_shows_no_value_of_a_request() {
        let outgoing = outgoing(Method::GET, &[("x-key", "s3cret")], OutgoingBody::None);
        let shown = r#"Outgoing { method: GET, body: no body, .. }"#;
        assert_eq!(format!("{outgoing:?}"), shown);
    }

    #[track_caller]
    fn check_length(method: Method, body: OutgoingBody, expected: Option<&str>) {
        let request = Prepared::new(outgoing(method, &[], body)).unwrap();
        let length = request.headers.get(header::CONTENT_LENGTH);
        assert_eq!(length.map(|value| value.to_str().unwrap()), expected);
    }

    // covers: AL-156
    #[test]
    fn length_is_said_wherever_a_body_is_or_could_be_expected() {
        let bytes = |text: &'static str| OutgoingBody::Bytes(Bytes::from_static(text.as_bytes()));
        check_length(Method::GET, OutgoingBody::None, None);
        check_length(Method::HEAD, OutgoingBody::None, None);
        check_length(Method::DELETE, OutgoingBody::None, None);
        check_length(Method::POST, OutgoingBody::None, Some("0"));
        check_length(Method::PUT, OutgoingBody::None, Some("0"));
        check_length(Method::PATCH, OutgoingBody::None, Some("0"));
        check_length(Method::POST, bytes(""), Some("0"));
        check_length(Method::GET, bytes("abc"), Some("3"));
        check_length(Method::DELETE, bytes("abc"), Some("3"));
    }

    #[track_caller]
    fn check_headers(headers: &[(&str, &str)], expected: Result<&str, &str>) {
        let prepared = Prepared::new(outgoing(Method::GET, headers, OutgoingBody::None));
        let seen = prepared.map(|request| format!("{:?}", request.headers));
        let expected = expected.map(str::to_owned).map_err(VendorFault::refused);
        assert_eq!(seen, expected);
    }

    // covers: AL-154
    #[test]
    fn header_that_frames_the_message_is_refused_however_it_is_written() {
        let names =
            ["host", "Content-Length", "TRANSFER-encoding", "connection", "Expect", "upgrade"];
        for name in names {
            let why = format!("header {name:?} is set by the host");
            check_headers(&[("x-a", "1"), (name, "1")], Err(&why));
        }
    }

    #[test]
    fn header_values_are_bytes() {
        check_headers(
            &[("X-A", "caf\u{e9}")],
            Ok(r#"{"host": "h.example:8443", "x-a": "caf\xe9"}"#),
        );
        check_headers(&[("x-a", "\u{100}")], Err(r#"header "x-a" has no value for HTTP"#));
        check_headers(&[("x-a", "1\r\nx-b: 2")], Err(r#"header "x-a" has no value for HTTP"#));
        check_headers(&[("x a", "1")], Err(r#"header "x a" has no name"#));
        check_headers(&[("", "1")], Err(r#"header "" has no name"#));
        check_headers(
            &[("x-a", "1"), ("x-a", "")],
            Ok(r#"{"host": "h.example:8443", "x-a": "1", "x-a": ""}"#),
        );
    }

    #[track_caller]
    fn check_target(host: &str, target: &str, expected: Option<&str>) {
        let mut outgoing = outgoing(Method::GET, &[], OutgoingBody::None);
        outgoing.url.host = host.to_owned();
        outgoing.url.target = target.to_owned();
        let seen = Prepared::new(outgoing).ok().map(|request| request.target.to_string());
        assert_eq!(seen.as_deref(), expected, "{host} {target}");
    }

    #[test]
    fn target_is_sent_as_it_is_or_not_at_all() {
        for target in ["/", "/?", "//x/y?z", "/a?b='c'&d=%2f+{}|", "/a/%2e%2fb", "/a;b=c/@:"] {
            check_target("h.example", target, Some(target));
        }
        for target in ["", "*", "a", "?a", "/a b", "/a#b", "/a\r\nb", "https://h.example/"] {
            check_target("h.example", target, None);
        }
        for host in ["u@h.example", "u:p@h.example", "h.example:1", "h.example/x", "h ex", ""] {
            check_target(host, "/", None);
        }
        check_target("[2606:4700::1111]", "/", Some("/"));
    }

    // covers: AL-221, AL-222
    #[test]
    fn only_some_methods_go_twice() {
        let twice = |method| {
            Prepared::new(outgoing(method, &[], OutgoingBody::None)).unwrap().may_go_twice()
        };
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
            assert!(twice(method));
        }
        for method in [Method::POST, Method::PATCH, Method::OPTIONS] {
            assert!(!twice(method));
        }
    }
}
