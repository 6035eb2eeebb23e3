//! An extension made of a bare socket: it keeps what it got, and answers from a script, well or badly.

use std::collections::HashMap;
use std::future::Future;
use std::io::Read as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use annex_core::delivery::wire::Signer;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::wait::until;

/// The shared secret of every extension here, unless a test has another.
pub const SECRET: &str = "shared-secret-of-the-test-extension";

/// A schema with what the tests need. `secret` fields take references, `any` takes any object, `json` any array too.
pub const SCHEMA: &str = r#"{
  "config_schema": {"fields": {"api_key": {"data_type": "secret"}, "note": {"data_type": "string"}}},
  "request_schema": {
    "echo": {"parameters": {"fields": {
      "text": {"data_type": "string"}, "number": {"data_type": "integer"},
      "any": {"data_type": "object"}, "json": {"data_type": "json"}, "key": {"data_type": "secret"}}}},
    "other": {"parameters": {"fields": {"text": {"data_type": "string"}}}},
    "more": {"is_user_facing": false, "parameters": {"fields": {}}}
  },
  "required_events": ["subscribe", "unsubscribe", "update"]
}"#;

/// A message as it came over the wire.
#[derive(Debug, Clone)]
pub struct Message {
    /// Request line and header lines.
    pub head: Vec<String>,
    /// The body's bytes: gzip.
    pub wire: Vec<u8>,
    /// What the body decompresses to.
    pub json: String,
    /// The same, read; without its data where they hold a number that is too large to be read.
    pub value: Value,
}

impl Message {
    fn new(head: Vec<String>, wire: Vec<u8>) -> Self {
        let mut json = String::new();
        let mut decoder = flate2::bufread::GzDecoder::new(&wire[..]);
        decoder.read_to_string(&mut json).unwrap();
        assert!(decoder.into_inner().is_empty(), "bytes after the gzip member");
        let value = serde_json::from_str(&json).unwrap_or_else(|_| without_data(&json));
        Self { head, wire, json, value }
    }

    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Whether its signature is that of this secret over the decompressed bytes.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let expected = Signer::new(secret).sign(self.json.as_bytes());
        self.header("lc-ext-sig") == Some(expected.as_str())
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        self.value["idempotency_key"].as_str().unwrap()
    }

    /// The action of a request; empty for anything else.
    pub fn action(&self) -> &str {
        self.value["request"]["action"].as_str().unwrap_or_default()
    }

    /// The name of an event; empty for anything else.
    pub fn event(&self) -> &str {
        self.value["event"]["event_name"].as_str().unwrap_or_default()
    }

    /// The organization of a request or an event.
    pub fn oid(&self) -> &str {
        let of = |part: &str| self.value[part]["org"]["oid"].as_str();
        of("request").or_else(|| of("event")).unwrap_or_default()
    }

    /// The data of a request, byte for byte.
    pub fn data(&self) -> String {
        let message: Members = serde_json::from_str(&self.json).unwrap();
        let request: Members = serde_json::from_str(message["request"].get()).unwrap();
        request["data"].get().to_owned()
    }
}

/// Members of an object, as they came.
type Members = HashMap<String, Box<RawValue>>;

fn without_data(json: &str) -> Value {
    let mut message: Members = serde_json::from_str(json).unwrap();
    let mut request: Members = serde_json::from_str(message["request"].get()).unwrap();
    request.remove("data");
    message.insert("request".to_owned(), serde_json::value::to_raw_value(&request).unwrap());
    serde_json::to_value(message).unwrap()
}

/// What is done with a connection that is not simply answered.
type Takeover = Box<dyn FnOnce(TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// How a message is answered.
pub enum Reply {
    /// With a status and a body.
    Status(u16, Vec<u8>),
    /// With these bytes, head included; then the connection is closed.
    Bytes(Vec<u8>),
    /// By whatever this does with the connection.
    Takeover(Takeover),
}

impl Reply {
    /// A success with these data.
    pub fn data(json: &str) -> Self {
        Self::ok(&format!(r#""data":{json}"#))
    }

    /// A success with these members.
    pub fn ok(members: &str) -> Self {
        Self::Status(200, format!(r#"{{"version":20221218,{members}}}"#).into_bytes())
    }

    /// A status with a text.
    pub fn status(status: u16, body: &str) -> Self {
        Self::Status(status, body.as_bytes().to_vec())
    }

    /// Whatever `serve` does with the connection.
    pub fn by<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) -> Self {
        Self::Takeover(Box::new(move |stream| Box::pin(serve(stream))))
    }

    /// The connection ends without an answer.
    pub fn dropped() -> Self {
        Self::Bytes(Vec::new())
    }

    /// The connection is reset without an answer.
    pub fn reset() -> Self {
        Self::by(|stream| async move { stream.set_zero_linger().unwrap() })
    }
}

/// A running extension. Dropped, it answers nobody any more.
pub struct Extension {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Message>>>,
    server: AbortHandle,
}

impl Drop for Extension {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Extension {
    /// Answers schema requests with [`SCHEMA`], and every other message with what `script` says.
    pub async fn start<F>(script: impl Fn(Message) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let script = Arc::new(script);
        Self::start_bare(move |message| {
            let script = Arc::clone(&script);
            async move {
                if message.value.get("schema_request").is_some() {
                    return Reply::data(SCHEMA);
                }
                script(message).await
            }
        })
        .await
    }

    /// Answers requests with their own data, and everything else with an empty success.
    pub async fn echo() -> Self {
        Self::start(|message| async move { echo(&message) }).await
    }

    /// Answers every message with what `script` says.
    pub async fn start_bare<F>(script: impl Fn(Message) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, kept) = (Arc::new(script), Arc::clone(&seen));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&kept)));
            }
        });
        Self { address, seen, server: server.abort_handle() }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The messages so far, but for schema requests.
    pub fn seen(&self) -> Vec<Message> {
        self.all().into_iter().filter(|m| m.value.get("schema_request").is_none()).collect()
    }

    /// Every message so far.
    pub fn all(&self) -> Vec<Message> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests of an action so far.
    pub fn requests(&self, action: &str) -> Vec<Message> {
        self.seen().into_iter().filter(|message| message.action() == action).collect()
    }

    /// The texts of the error reports so far.
    pub fn reports(&self) -> Vec<String> {
        let text = |m: Message| m.value["error_report"]["error"].as_str().map(str::to_owned);
        self.seen().into_iter().filter_map(text).collect()
    }

    /// Waits for this many requests of an action.
    #[track_caller]
    pub fn await_requests(&self, action: &str, count: usize) -> impl Future<Output = Vec<Message>> {
        until(format!("request {count} of {action}"), move || {
            let found = self.requests(action);
            async move { (count <= found.len()).then_some(found) }
        })
    }
}

/// A request's own data, or an empty success.
pub fn echo(message: &Message) -> Reply {
    match message.action() {
        "" => Reply::data("{}"),
        _ => Reply::data(&message.data()),
    }
}

async fn serve<F>(
    stream: TcpStream,
    script: Arc<impl Fn(Message) -> F>,
    kept: Arc<Mutex<Vec<Message>>>,
) where
    F: Future<Output = Reply>,
{
    let mut stream = BufReader::new(stream);
    while let Some((head, wire)) = request(&mut stream).await {
        let message = Message::new(head, wire);
        kept.lock().unwrap().push(message.clone());
        match script(message).await {
            Reply::Status(status, body) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                if stream.write_all(head.as_bytes()).await.is_err()
                    || stream.write_all(&body).await.is_err()
                {
                    return;
                }
            }
            Reply::Bytes(bytes) => {
                // The platform may have seen enough.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Takeover(serve) => return serve(stream.into_inner()).await,
        }
    }
}

/// The next request; `None` when the client has closed.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(Vec<String>, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let head: Vec<String> = head.trim_end().split("\r\n").map(str::to_owned).collect();
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}
