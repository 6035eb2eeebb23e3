//! Calls against a vendor that answers from a list, and notes what it was sent.

mod auths;
mod bodies;
mod digest;
mod documents;
mod echoes;
mod final_request;
mod hosts;
mod keyed;
mod limits;
mod secrets;
mod signed;

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::nonces::GivenNonces;
use crate::vendor::{Answer, Network, Outgoing, OutgoingBody, VendorFault};

/// The tag of every call here.
const TAG: &str = "w3Kp9xV2mQ8rT1zL5nB7cA";

/// A request as the vendor has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Whether the body was read piece by piece while it was sent.
    is_streamed: bool,
    timeout: Duration,
}

impl Sent {
    fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known == name);
        let found = named.next().map(|(_, value)| value.as_str());
        assert_eq!(named.next(), None, "{name} is sent once");
        found
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A vendor that answers from a list.
#[derive(Default)]
struct Vendor {
    sent: Mutex<Vec<Sent>>,
    answers: Mutex<VecDeque<Result<Answer, VendorFault>>>,
    /// Whether it tells all that it was sent, before any answer.
    echoes: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Vendor {
    async fn send(
        &self,
        tenant: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Answer, VendorFault> {
        use futures_util::StreamExt as _;
        assert_eq!(tenant, "tenant-a");
        let is_streamed = matches!(outgoing.body, OutgoingBody::Stream { .. });
        let body = match &outgoing.body {
            OutgoingBody::None => Vec::new(),
            OutgoingBody::Bytes(bytes) => bytes.to_vec(),
            OutgoingBody::Stream { length, open } => {
                let pieces: Vec<_> = open().map(|piece| piece.unwrap().to_vec()).collect().await;
                assert_eq!(pieces.concat().len() as u64, *length);
                pieces.concat()
            }
        };
        let (url, headers) = (outgoing.url.to_string(), outgoing.sent_headers());
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}"));
        let echo = [url.clone()].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
        let method = outgoing.method.to_string();
        let sent = Sent { method, url, headers, body, is_streamed, timeout };
        self.sent.lock().unwrap().push(sent);
        if self.echoes.load(Ordering::Acquire) {
            return Err(fault(&echo, Some(Network::Unknown)));
        }
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(answer(204, &[], "")))
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = headers.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    Answer { status, headers, body: bytes::Bytes::copy_from_slice(body.as_bytes()) }
}

/// A call and the vendor that it reaches.
struct Scene {
    vendor: Arc<Vendor>,
    call: Call,
}

/// What differs between calls.
#[derive(Clone)]
struct Given {
    hosts: Vec<&'static str>,
    secrets: Vec<(&'static str, &'static str)>,
    allow_private_networks: bool,
    time_left: Duration,
    nonces: Vec<&'static str>,
    documents: Option<Arc<dyn Documents>>,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            hosts: vec!["api.vendor.example", "*.wild.example", "alt.vendor.example:8443"],
            secrets: vec![
                ("apiKey", "key-12345678"),
                ("odd", "a\"b\\c d"),
                ("dots", ".."),
                ("base", "https://api.vendor.example/base"),
                ("url", "x/y?z=1#f@h&i"),
                ("jefe", "Jefe"),
            ],
            allow_private_networks: false,
            time_left: Duration::from_secs(60),
            nonces: vec!["nonce-1", "nonce-2", "nonce-3"],
            documents: None,
        }
    }
}

impl Scene {
    fn new() -> Self {
        Self::given(Given::default())
    }

    fn given(given: Given) -> Self {
        let vendor = Arc::new(Vendor::default());
        let patterns: Vec<String> = given.hosts.iter().map(|&host| host.into()).collect();
        let secrets = given.secrets.iter().map(|&(name, value)| (name.into(), value.into()));
        let binding = Binding {
            tenant: "tenant-a".into(),
            hosts: Hosts::parse(&patterns).unwrap(),
            secrets: Secrets::new(secrets, TAG),
            allow_private_networks: given.allow_private_networks,
            time_left: given.time_left,
        };
        let outside = Outside {
            transport: Arc::clone(&vendor) as Arc<dyn Transport>,
            now: Arc::new(|| "2026-01-02T03:04:05Z".parse().unwrap()),
            nonces: Arc::new(GivenNonces::new(given.nonces.iter().map(|&n| n.into()).collect())),
            documents: given.documents,
        };
        Self { vendor, call: Call::new(binding, outside) }
    }

    fn answering(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.vendor.answers.lock().unwrap().extend(answers.into_iter().map(Ok));
        self
    }

    /// Asks, with the call's tag in place of `TAG`.
    async fn ask(&self, request: &Value) -> Value {
        self.ask_text(&request.to_string()).await
    }

    async fn ask_text(&self, request: &str) -> Value {
        let answer = self.call.http_request(request.replace("TAG", TAG).as_bytes()).await;
        assert!(!answer.contains(TAG), "the tag left: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn sent(&self) -> Vec<Sent> {
        let sent = self.vendor.sent.lock().unwrap().clone();
        for Sent { url, headers, body, .. } in &sent {
            let text = format!("{url} {headers:?} {}", String::from_utf8_lossy(body));
            assert!(!text.contains(TAG), "the tag left (AL-092): {text}");
        }
        sent
    }

    /// What one request sends.
    async fn sends(&self, request: &Value) -> Sent {
        let before = self.sent().len();
        let answered = self.ask(request).await;
        assert_eq!(answered.get("error"), None, "{request}");
        let mut sent = self.sent();
        assert_eq!(sent.len(), before + 1, "{request}");
        sent.remove(before)
    }
}

/// A request to an approved host with further fields.
fn to_vendor(fields: Value) -> Value {
    let mut request = json!({"url": "https://api.vendor.example/v1"});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

/// A request that is refused with exactly this text, without `network`, and nothing sent.
#[track_caller]
fn refused(request: Value, text: &str) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    let text = text.to_owned();
    async move {
        let scene = Scene::new();
        let answered = scene.ask(&request).await;
        assert_eq!(answered, json!({"error": text}), "{request} at {at}");
        assert_eq!(scene.sent(), [], "{request} at {at}");
    }
}

/// A request that is refused with a text that begins so, without `network`, and nothing sent.
async fn refused_with(request: Value, beginning: &str) {
    let scene = Scene::new();
    let answered = scene.ask(&request).await;
    let text = answered["error"].as_str().unwrap_or_default();
    assert!(text.starts_with(beginning), "{request}: {answered}");
    assert_eq!(answered.get("network"), None, "{request}");
    assert_eq!(scene.sent(), [], "{request}");
}

/// Hides a text as everything is hidden that leaves the call.
fn hidden(scene: &Scene, text: &str) -> String {
    scene.call.redactions().hide(text).into_owned()
}

fn fault(text: &str, network: Option<Network>) -> VendorFault {
    VendorFault { text: text.into(), network }
}
