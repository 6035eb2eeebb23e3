//! The way in: HTTP requests as clients send them, through the router, in this process.

use std::io::Write as _;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use base64::Engine as _;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

/// A request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// An answer; a body that is no JSON is a JSON string here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), ..Self::default() }
    }

    pub(crate) fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A form, as browsers and the vendor's clients encode it.
    pub(crate) fn form<'a>(mut self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        self.headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        self.body = form.finish().into_bytes();
        self
    }

    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.headers.push(("content-type", "application/json".to_owned()));
        self.body = body.to_string().into_bytes();
        self
    }

    /// Sends it.
    pub(crate) async fn send(self, router: &Router) -> Reply {
        let mut request = Request::builder().method(self.method.as_str()).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::from(self.body)).expect("a step makes a valid request");
        let response = match router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body in memory can be read").to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Reply { status: parts.status, headers: parts.headers, body }
    }
}

/// `gzdata`: base64 of gzip.
pub(crate) fn pack(data: &[u8]) -> String {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).expect("memory can be written");
    let packed = encoder.finish().expect("memory can be written");
    base64::engine::general_purpose::STANDARD.encode(packed)
}
