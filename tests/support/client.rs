//! A client of the HTTP API: what real clients send, and what none should.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Status, code and text of a fault. Every fault has exactly these members.
    #[track_caller]
    pub fn fault(&self) -> (u16, String, String) {
        let body = self.json();
        let members = body.as_object().unwrap();
        assert_eq!(members.len(), 2, "{body}");
        assert_eq!(self.headers["content-type"], JSON);
        assert_ne!(self.status, 504, "a real client sends again on 504");
        assert!((400..600).contains(&self.status), "{}: {body}", self.status);
        let text = |name: &str| members[name].as_str().unwrap().to_owned();
        (self.status, text("code"), text("error"))
    }

    /// The same of an endpoint of the contract of capability extensions, which has members of its own.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String, String) {
        let body = self.json();
        let members = body.as_object().unwrap();
        assert_eq!(members.keys().collect::<Vec<_>>(), ["statusCode", "code", "message"], "{body}");
        assert_eq!(members["statusCode"], self.status);
        assert_eq!(self.headers["content-type"], JSON);
        assert!((400..600).contains(&self.status) && self.status != 504, "{body}");
        let text = |name: &str| members[name].as_str().unwrap().to_owned();
        (self.status, text("code"), text("message"))
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Asks one platform, with one token.
#[derive(Debug, Clone)]
pub struct Client {
    /// Where the platform listens.
    pub address: SocketAddr,
    /// The token; empty: none.
    pub token: String,
}

impl Client {
    /// A client without a token.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, token: String::new() }
    }

    /// The same client with a token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// Signs in, and is the client of that token.
    pub async fn sign_in(&self, secret: &str, oid: &str) -> Self {
        let fields = [("secret", secret), ("oid", oid)];
        let answer = self.with_token("").form("POST", "/jwt", &fields).await.ok();
        self.with_token(answer["jwt"].as_str().unwrap())
    }

    /// Sends a request on a connection of its own; `Err`: there is no answer.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> std::io::Result<Answer> {
        let mut request =
            Request::builder().method(method).uri(path).header("host", self.address.to_string());
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        let driver = tokio::spawn(connection);
        let answer = async {
            let response = sender.send_request(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
        };
        let answer = answer.await.map_err(|error: hyper::Error| std::io::Error::other(error));
        driver.abort();
        answer
    }

    /// Sends a request that is answered.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let sent = self.try_send(method, path, headers, body).await;
        sent.unwrap_or_else(|error| panic!("{method} {path} was not answered: {error}"))
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    /// Sends a form.
    pub async fn form(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(method, path, &[("content-type", FORM)], form(fields)).await
    }

    /// Sends JSON.
    pub async fn json(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, &[("content-type", JSON)], body.to_owned()).await
    }

    /// Sends bytes as they are and reads what comes back until the platform closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A platform that has answered already may close before all is sent.
        let _ = stream.write_all(bytes).await;
        let mut back = Vec::new();
        let _ = stream.read_to_end(&mut back).await;
        back
    }
}

/// A form as `urlencode` writes it.
pub fn form(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        out.push_str(&encode(value));
    }
    out
}

/// A text, encoded for a form.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
