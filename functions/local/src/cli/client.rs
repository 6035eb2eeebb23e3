//! The HTTP client of the command line: tokens, calls, and errors that say what to do.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use url::Url;
use url::form_urlencoded::Serializer;

use super::error::Error;
use super::progress;

/// Largest answer that is read, in bytes: an extension's largest answer and room for what is around it.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// How long the platform may take to answer: longer than its longest wait, shorter than a person's patience.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The organization of a token that is for none.
pub const NO_ORG: &str = "-";

/// A connection to the platform for one key.
pub struct Client {
    base: Url,
    secret: Option<String>,
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Tokens by organization. They live as long as the command does.
    tokens: Mutex<HashMap<String, String>>,
}

/// What the platform answered: a success.
#[derive(Debug)]
pub struct Answer {
    /// The status; from 200 to 299 in what [`Call::send`] answers.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as it came.
    pub body: Bytes,
}

/// The body of a call.
enum Content {
    Empty,
    Form(String),
    Json(String),
}

/// A call that is being put together.
pub struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    /// The organization of the token; `None`: no token is sent.
    org: Option<String>,
    headers: HeaderMap,
    content: Content,
}

impl Client {
    /// A client of the platform at `base` that signs in with `secret`.
    pub fn new(base: &str, secret: Option<String>) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Usage(format!("ANNEX_URL is not a usable URL: {why}"));
        let base = Url::parse(base).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("it must begin with http:// or https://"));
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(https);
        Ok(Self { base, secret, http, tokens: Mutex::default() })
    }

    /// Where the platform is.
    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Starts a call of the route with these path segments, which are encoded, for an organization.
    pub fn call(&self, method: Method, segments: &[&str], org: Option<&str>) -> Call<'_> {
        Call {
            client: self,
            method,
            url: address(&self.base, segments),
            org: org.map(str::to_owned),
            headers: HeaderMap::new(),
            content: Content::Empty,
        }
    }

    /// A token for an organization, or for none ([`NO_ORG`]).
    pub async fn token(&self, org: &str) -> Result<String, Error> {
        let known = |tokens: &HashMap<String, String>| tokens.get(org).cloned();
        if let Some(token) = known(&self.tokens.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(token);
        }
        let secret = self.secret.as_deref().ok_or_else(|| {
            Error::Usage(
                "no key: set ANNEX_API_KEY to a key of the organization, or ANNEX_ROOT_KEY to the root key \
                 (`annex serve` keeps it in root-key of its data folder)"
                    .into(),
            )
        })?;
        let fields = [("secret", secret), ("oid", org)];
        let answer = self.call(Method::POST, &["jwt"], None).form(&fields).exchange().await?;
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = value.get("jwt").and_then(|jwt| jwt.as_str()).ok_or_else(|| {
            Error::Local(format!("{} answered without a token: is it Annex?", self.base()))
        })?;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(org.to_owned(), token.to_owned());
        Ok(token.to_owned())
    }

    /// Sends a request and reads its whole answer, within bounds. One that was too large for a response is fetched from
    /// where the platform has put it.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        let answer = self.exchange(request).await?;
        let answer = match elsewhere(&answer) {
            Some((status, url)) => {
                // The URL says for itself that its bearer may read: no token goes there.
                let fetch = Request::get(url).body(Full::default());
                let fetch = fetch.map_err(|error| Error::Local(error.to_string()))?;
                let fetched = self.exchange(fetch).await?;
                let status = if fetched.status == 200 { status } else { fetched.status };
                Answer { status, headers: answer.headers, body: fetched.body }
            }
            None => answer,
        };
        if (200..300).contains(&answer.status) {
            Ok(answer)
        } else {
            Err(Error::refused(answer.status, &answer.body))
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        let broke = |why: String| Error::Unreachable(format!("{}: {why}", self.base()));
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| {
                if error.is_connect() && self.base().starts_with("http://") {
                    broke("could not connect: is `annex serve` running?".into())
                } else if error.is_connect() {
                    broke(format!("could not connect: {}", root_cause(&error)))
                } else {
                    broke(format!("the connection broke: {}", root_cause(&error)))
                }
            })?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| broke(format!("the answer broke off: {error}")))?;
            Ok::<_, Error>(Answer { status, headers, body: body.to_bytes() })
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .map_err(|_| broke(format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs())))?
    }
}

/// The status of an answer that is too large for a response, and where it is found.
fn elsewhere(answer: &Answer) -> Option<(u16, String)> {
    if answer.status != 413 {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    let status = value.get("status")?.as_u64().and_then(|status| u16::try_from(status).ok())?;
    (value["code"] == "answer-too-large")
        .then(|| Some((status, value["url"].as_str()?.to_owned())))?
}

impl Call<'_> {
    /// Adds parameters to the query.
    pub fn query(mut self, fields: &[(&str, &str)]) -> Self {
        if !fields.is_empty() {
            self.url.query_pairs_mut().extend_pairs(fields);
        }
        self
    }

    /// Sends a form.
    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let form = Serializer::new(String::new()).extend_pairs(fields).finish();
        self.content = Content::Form(form);
        self
    }

    /// Sends a JSON text.
    pub fn json(mut self, json: String) -> Self {
        self.content = Content::Json(json);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, Error> {
        let value = http::HeaderValue::from_str(value)
            .map_err(|_| Error::Usage(format!("{name} holds a character that it may not")))?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Makes the call. `doing` is what a person at a terminal sees when it takes longer than a second.
    pub async fn send(self, doing: &str) -> Result<Answer, Error> {
        progress::during(doing, async {
            match self.org.clone() {
                None => self.exchange().await,
                Some(org) => {
                    let token = self.client.token(&org).await?;
                    let call = self.header("authorization", &format!("Bearer {token}"))?;
                    call.exchange().await
                }
            }
        })
        .await
    }

    async fn exchange(self) -> Result<Answer, Error> {
        let mut request = Request::builder().method(self.method).uri(self.url.as_str());
        let content = match self.content {
            Content::Empty => String::new(),
            Content::Form(form) => {
                request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
                form
            }
            Content::Json(json) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                json
            }
        };
        let mut request = request
            .body(Full::new(Bytes::from(content)))
            .map_err(|error| Error::Usage(format!("the request cannot be sent: {error}")))?;
        request.headers_mut().extend(self.headers);
        self.client.send(request).await
    }
}

/// The URL of a route below `base`, with every segment encoded.
fn address(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// The innermost reason of an error: the outer ones only say that something failed.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(base: &str, segments: &[&str], expected: &str) {
        let url = address(&Url::parse(base).unwrap(), segments);
        assert_eq!(url.as_str(), expected);
    }

    #[test]
    fn segments_are_encoded_and_a_path_prefix_stays() {
        check_address("http://h:1", &["v1", "orgs"], "http://h:1/v1/orgs");
        check_address("https://h/annex/", &["jwt"], "https://h/annex/jwt");
        check_address("http://h", &["errors", "ext-two/x y"], "http://h/errors/ext-two%2Fx%20y");
        check_address("http://h/?q#f", &["healthz"], "http://h/healthz");
    }

    #[track_caller]
    fn check_base(base: &str, expected: &str) {
        let error = Client::new(base, None).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn addresses_that_are_not_http_are_refused() {
        check_base(
            "ftp://h",
            "ANNEX_URL is not a usable URL: it must begin with http:// or https://",
        );
        check_base("127.0.0.1", "ANNEX_URL is not a usable URL: relative URL without a base");
    }

    #[tokio::test]
    async fn nobody_there_is_a_connection_error_that_says_what_to_check() {
        // The port was free a moment ago: nobody listens on it.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::new(&base, Some("key".into())).unwrap();
        let error = client.token(NO_ORG).await.unwrap_err();
        assert_eq!(
            (error.exit_code(), error.to_string()),
            (3, format!("{base}: could not connect: is `annex serve` running?"))
        );
    }

    #[tokio::test]
    async fn without_a_key_the_error_names_both_variables() {
        let client = Client::new("http://127.0.0.1:1", None).unwrap();
        let error = client.token(NO_ORG).await.unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().starts_with("no key: set ANNEX_API_KEY"), "{error}");
    }
}
