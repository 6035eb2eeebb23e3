//! The client of the platform: what an extension does with its developer token.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// How long the platform may take: a call lasts ten seconds at most.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The platform, as one extension sees it.
pub struct Annex {
    url: String,
    authorization: String,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why the platform did not do something.
#[derive(Debug)]
pub enum Error {
    /// It refused. Programs go by the code; what it may be stands in docs/capability-extensions.md.
    Refused {
        /// For example `rate-limited`.
        code: String,
        /// For example `{"bucket": "extension", "retryAfterSeconds": 240}`.
        details: Value,
    },
    /// It was not reached, or answered something else than JSON.
    Unreachable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, details: Value::Null } => f.write_str(code),
            Self::Refused { code, details } => write!(f, "{code} {details}"),
            Self::Unreachable(why) => write!(f, "the platform was not reached: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl Annex {
    /// The platform at `url`, for the extension of this developer token.
    pub fn new(url: &str, developer_token: &str) -> Self {
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .build();
        Self {
            url: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {developer_token}"),
            http: Client::builder(TokioExecutor::new()).build(https),
        }
    }

    /// Declares a manifest. A list that is left out stays as it was, an empty one is cleared.
    pub async fn declare(&self, manifest: &Value) -> Result<(), Error> {
        self.ask(Method::PUT, "manifest", manifest).await.map(drop)
    }

    /// Calls a command on the lock of a session of ours: the invocation record. The call may have failed for all that:
    /// `status` says so. `body` is `{input?, actor?, idempotencyKey?, causationId?}`.
    pub async fn call(&self, session: &str, command: &str, body: &Value) -> Result<Value, Error> {
        self.ask(Method::POST, &format!("sessions/{session}/commands/{command}"), body).await
    }

    /// The choices for a field of a command's input.
    pub async fn options(&self, session: &str, id: &str, field: &str) -> Result<Value, Error> {
        let body = json!({ "id": id, "field": field });
        self.ask(Method::POST, &format!("sessions/{session}/options"), &body).await
    }

    /// Emits an event on the lock of a session of ours. `body` is `{type, payload?, actor?, causationId?}`.
    pub async fn emit(&self, session: &str, body: &Value) -> Result<Value, Error> {
        self.ask(Method::POST, &format!("sessions/{session}/events"), body).await
    }

    /// Adds a line to the history of the lock of a session of ours.
    pub async fn log(&self, session: &str, title: &str) -> Result<(), Error> {
        let path = format!("sessions/{session}/logs/custom");
        self.ask(Method::POST, &path, &json!({ "title": title })).await.map(drop)
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, Error> {
        let exchange = async {
            let request = Request::builder()
                .method(method)
                .uri(format!("{}/api/extensions/{path}", self.url))
                .header(header::AUTHORIZATION, &self.authorization)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body.to_string())))
                .map_err(|error| error.to_string())?;
            let response = self.http.request(request).await.map_err(|error| error.to_string())?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
            Ok::<_, String>((status, body))
        };
        let answered = tokio::time::timeout(TIMEOUT, exchange).await;
        let (status, mut body) = answered
            .unwrap_or_else(|_| Err("no answer in time".to_owned()))
            .map_err(Error::Unreachable)?;
        if status.is_success() {
            return Ok(body);
        }
        let code = body["code"].as_str().unwrap_or(status.as_str()).to_owned();
        Err(Error::Refused { code, details: body["details"].take() })
    }
}
