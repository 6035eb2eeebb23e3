//! One `http_request` as a module asks for it, read strictly (AL-029 to AL-037, AL-138 to AL-169).
//!
//! What is read here is still unfilled: texts may hold placeholders, and the URL's host is not approved yet.

mod auth;
mod body;
mod sign;

use std::time::Duration;

use annex_core::strict::{self, Fields, RequestFault};

use crate::auth::Auth;

pub(crate) use body::base64;
pub use body::{Body, Part, PartContent};
pub use sign::{KeySource, SignRequest};
pub(crate) use sign::{hash, key, key_encoding, signature_encoding};

/// Bytes of a request as JSON. A base64 body of the largest answer fits in.
pub const REQUEST_BYTES_MAX: usize = 32 << 20;

/// Longest URL, in characters, placeholders included (AL-142).
pub const URL_CHARS_MAX: usize = crate::target::URL_CHARS_MAX;

/// Headers of one request. The contract names no limit; servers refuse heads far smaller than this many make.
pub const HEADERS_MAX: usize = 200;

/// Milliseconds that a request may take (AL-165).
pub const TIMEOUT_MS: std::ops::RangeInclusive<i64> = 100..=30_000;

/// Milliseconds that a request may take where it does not say (AL-164).
pub const TIMEOUT_MS_DEFAULT: i64 = 10_000;

/// A method that a module may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    #[default]
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
    /// `HEAD`
    Head,
}

impl Method {
    /// As HTTP's libraries have it.
    pub fn http(self) -> http::Method {
        match self {
            Self::Get => http::Method::GET,
            Self::Post => http::Method::POST,
            Self::Put => http::Method::PUT,
            Self::Patch => http::Method::PATCH,
            Self::Delete => http::Method::DELETE,
            Self::Head => http::Method::HEAD,
        }
    }

    /// As it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Head => "HEAD",
        }
    }
}

/// How an answer's body is given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseAs {
    /// As `bodyText`, read as UTF-8.
    #[default]
    Text,
    /// As `bodyBase64`.
    Base64,
}

/// A request as it was asked for. Shows nothing in its `Debug`: headers, body and auth may hold credentials.
#[derive(Clone)]
pub struct HttpRequest {
    /// How it is sent.
    pub method: Method,
    /// Where it goes; may hold placeholders.
    pub url: String,
    /// Names as they were written, and values that may hold placeholders; in their order.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<Body>,
    /// The vendor's authentication; texts may hold placeholders.
    pub auth: Auth,
    /// A signature over the final request.
    pub sign: Option<SignRequest>,
    /// How long it may take.
    pub timeout: Duration,
    /// How the answer's body is given back.
    pub response_as: ResponseAs,
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// Reads the JSON of a request, of at most [`REQUEST_BYTES_MAX`] bytes.
    pub fn read(json: &[u8]) -> Result<Self, RequestFault> {
        if REQUEST_BYTES_MAX < json.len() {
            let problem = format!("request: longer than {REQUEST_BYTES_MAX} bytes");
            return Err(RequestFault::Invalid(problem));
        }
        strict::read(json, Self::fields)
    }

    fn fields(request: &mut Fields<'_>) -> Option<Self> {
        use Method::{Delete, Get, Head, Patch, Post, Put};
        let methods = [
            ("GET", Get),
            ("POST", Post),
            ("PUT", Put),
            ("PATCH", Patch),
            ("DELETE", Delete),
            ("HEAD", Head),
        ];
        let forms = [("text", ResponseAs::Text), ("base64", ResponseAs::Base64)];
        let method = request.optional("method", |it| it.word(&methods));
        let url = request.required("url", |it| it.text(1..=URL_CHARS_MAX));
        let headers =
            request.optional("headers", |it| it.each_member(HEADERS_MAX, |it| it.any_text()));
        let body = request.optional("body", body::read);
        let auth = request.optional("auth", auth::read);
        let sign = request.optional("sign", sign::read);
        let timeout = request.optional("timeoutMs", |it| it.whole(TIMEOUT_MS));
        let response_as = request.optional("responseAs", |it| it.word(&forms));
        let timeout = timeout?.unwrap_or(TIMEOUT_MS_DEFAULT);
        Some(Self {
            method: method?.unwrap_or_default(),
            url: url?,
            headers: headers?.unwrap_or_default(),
            body: body?,
            auth: auth?.unwrap_or_default(),
            sign: sign?,
            timeout: Duration::from_millis(timeout.unsigned_abs()),
            response_as: response_as?.unwrap_or_default(),
        })
    }
}
