//! The extensions of a world: they verify what they get as a real receiver does, keep it, and answer from a script.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annex_core::ports::{Clock, Outbound, SendFault, WebhookAnswer, WebhookRequest};
use annex_core::testkit::ManualClock;
use annex_core::time::Timestamp;
use async_trait::async_trait;
use aws_lc_rs::hmac;
use bytes::Bytes;
use serde_json::{Value, json};

/// A message that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// At which extension.
    pub(crate) to: String,
    /// When.
    pub(crate) at: Timestamp,
    /// Its JSON, as it was signed.
    pub(crate) json: String,
    /// The same, read.
    pub(crate) message: Value,
    /// Header names and values; the signature is verified.
    pub(crate) headers: BTreeMap<String, String>,
    /// How long the sender waits.
    pub(crate) timeout: Duration,
    /// How much the sender reads.
    pub(crate) bytes_max: usize,
}

/// One extension: its secret and its script.
#[derive(Debug, Default)]
struct Script {
    secret: String,
    schema: Value,
    answers: BTreeMap<String, Vec<Value>>,
    /// How often each list was used.
    used: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct State {
    scripts: BTreeMap<String, Script>,
    deliveries: Vec<Delivery>,
    faults: Vec<String>,
}

/// The way out of a world.
pub(crate) struct Extensions {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
}

/// Where an extension of a world lives.
pub(crate) fn url(name: &str) -> String {
    format!("https://{name}.example.com/hook?v=1")
}

impl Extensions {
    pub(crate) fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Adds an extension, or changes what it answers.
    pub(crate) fn set(
        &self,
        name: &str,
        secret: &str,
        schema: Value,
        answers: BTreeMap<String, Vec<Value>>,
    ) {
        let script = Script { secret: secret.to_owned(), schema, answers, used: HashMap::new() };
        self.state().scripts.insert(name.to_owned(), script);
    }

    /// What was delivered since the last call, and what was wrong with it.
    pub(crate) fn take(&self) -> (Vec<Delivery>, Vec<String>) {
        let mut state = self.state();
        (std::mem::take(&mut state.deliveries), state.faults.clone())
    }

    /// The token of the last message that had one.
    pub(crate) fn last_token(&self) -> Option<String> {
        let state = self.state();
        state.deliveries.iter().rev().find_map(|found| token(&found.message).map(str::to_owned))
    }

    /// Verifies and keeps a message; answers how it is answered.
    fn receive(&self, request: &WebhookRequest) -> Result<Value, String> {
        let mut state = self.state();
        let name = request.url.strip_prefix("https://").and_then(|url| url.split('.').next());
        let name = name.unwrap_or_default().to_owned();
        let script = state.scripts.get_mut(&name).ok_or("nobody lives there")?;
        if request.url != url(&name) {
            return Err(format!("the URL is {}, not as it was registered", request.url));
        }
        let mut headers = BTreeMap::new();
        for (header, value) in &request.headers {
            if headers.insert((*header).to_owned(), value.clone()).is_some() {
                return Err(format!("the header {header} stands twice"));
            }
        }
        let json = one_gzip_member(&request.body)?;
        verify(&script.secret, &json, headers.get("lc-ext-sig"))?;
        let message: Value =
            serde_json::from_str(&json).map_err(|error| format!("{error}: {json}"))?;
        let word = word(&message)?;
        let answer = script.next(&word);
        state.deliveries.push(Delivery {
            to: name,
            at: self.clock.steady(),
            json,
            message,
            headers,
            timeout: request.timeout,
            bytes_max: request.response_bytes_max,
        });
        Ok(answer)
    }
}

impl Script {
    /// The next answer to such a message.
    fn next(&mut self, word: &str) -> Value {
        if let Some(answers) = self.answers.get(word).filter(|answers| !answers.is_empty()) {
            let used = self.used.entry(word.to_owned()).or_default();
            let answer = answers[(*used).min(answers.len() - 1)].clone();
            *used += 1;
            return answer;
        }
        if word == "schema" { json!({ "data": self.schema }) } else { json!({}) }
    }
}

/// What a script calls a message: its action, `event:NAME`, `schema`, `validate` or `report`.
fn word(message: &Value) -> Result<String, String> {
    let text = |part: &str, member: &str| {
        message[part][member].as_str().map(str::to_owned).ok_or(format!("{part} has no {member}"))
    };
    let parts = message.as_object().ok_or("the message is no object")?;
    match parts.keys().nth(2).map(String::as_str) {
        _ if parts.len() != 3 => Err(format!("the message has {} members", parts.len())),
        Some("schema_request") => Ok("schema".to_owned()),
        Some("conf_validation") => Ok("validate".to_owned()),
        Some("error_report") => Ok("report".to_owned()),
        Some("request") => text("request", "action"),
        Some("event") => Ok(format!("event:{}", text("event", "event_name")?)),
        other => Err(format!("unknown message: {other:?}")),
    }
}

/// The token in a message.
pub(crate) fn token(message: &Value) -> Option<&str> {
    ["request", "event", "conf_validation"]
        .iter()
        .find_map(|part| message[part]["org"]["jwt"].as_str())
}

/// A body is exactly one gzip member of UTF-8 text.
fn one_gzip_member(body: &[u8]) -> Result<String, String> {
    let mut decoder = flate2::bufread::GzDecoder::new(body);
    let mut text = String::new();
    decoder.read_to_string(&mut text).map_err(|error| format!("the body is no gzip: {error}"))?;
    match decoder.into_inner() {
        [] => Ok(text),
        rest => Err(format!("{} bytes after the gzip member", rest.len())),
    }
}

/// The signature is 64 lower-case hex characters of the HMAC-SHA256 of the JSON.
fn verify(secret: &str, json: &str, signature: Option<&String>) -> Result<(), String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let expected = hex::encode(hmac::sign(&key, json.as_bytes()));
    match signature {
        Some(found) if *found == expected => Ok(()),
        found => Err(format!("the signature is {found:?}, not {expected}")),
    }
}

#[async_trait]
impl Outbound for Extensions {
    fn check_url(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("only https is allowed".to_owned()) }
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        let answer = match self.receive(&request) {
            Ok(answer) => answer,
            Err(fault) => {
                self.state().faults.push(fault.clone());
                return Err(SendFault::Refused(fault));
            }
        };
        let answer = Scripted::read(answer);
        if let Some(takes) = answer.takes {
            if request.timeout < takes {
                self.clock.advance(request.timeout);
                return Err(SendFault::TimedOut(request.timeout));
            }
            self.clock.advance(takes);
        }
        // Others go on meanwhile.
        tokio::task::yield_now().await;
        match (answer.fault, answer.size) {
            (Some(fault), _) => Err(fault),
            (None, Some(size)) if request.response_bytes_max < size => {
                Err(SendFault::TooLarge { status: answer.answer.0.status, size: size as u64 })
            }
            (None, Some(size)) => Ok(answer.answer.padded(size)),
            (None, None) => Ok(answer.answer.0),
        }
    }
}

/// An answer as it is scripted: a status, or an object whose members `status`, `retry_after`, `raw`, `size`, `takes_s`
/// and `fault` are about HTTP, and whose other members are those of the body. `version` and, in a success, `data` are
/// added where they are absent; a version of null is left out. `{"count": n}` stands for as many continuations, whose
/// states are numbered from 1, or as many metrics.
struct Scripted {
    answer: Padded,
    fault: Option<SendFault>,
    takes: Option<Duration>,
    size: Option<usize>,
}

struct Padded(WebhookAnswer);

impl Padded {
    /// The answer with spaces before it, up to a size.
    fn padded(self, size: usize) -> WebhookAnswer {
        let mut body = vec![b' '; size - self.0.body.len()];
        body.extend_from_slice(&self.0.body);
        WebhookAnswer { body: Bytes::from(body), ..self.0 }
    }
}

impl Scripted {
    fn read(script: Value) -> Self {
        let mut body = match script {
            Value::Number(status) => json!({ "status": status, "raw": "" }),
            other => other,
        };
        let members = body.as_object_mut().expect("a scripted answer is an object or a status");
        let mut take = |name: &str| members.remove(name);
        let status = take("status").and_then(|v| v.as_u64()).map_or(200, |v| v as u16);
        let retry_after = take("retry_after").map(|v| v.as_str().unwrap_or_default().to_owned());
        let raw = take("raw").map(|v| v.as_str().unwrap_or_default().to_owned());
        let size = take("size").and_then(|v| v.as_u64()).map(|v| v as usize);
        let takes = take("takes_s").and_then(|v| v.as_f64()).map(Duration::from_secs_f64);
        let fault = take("fault").map(|v| fault(v.as_str().unwrap_or_default()));
        if let Some(count) = members.get("continuations").and_then(|many| many["count"].as_u64()) {
            let one = |n: u64| json!({ "in_delay_sec": 0, "action": "next", "state": { "n": n } });
            members.insert("continuations".to_owned(), (1..=count).map(one).collect());
        }
        if let Some(count) = members.get("metrics").and_then(|many| many["count"].as_u64()) {
            let one = |n: u64| json!({ "sku": format!("s{n}"), "value": n });
            let metrics: Value = (1..=count).map(one).collect();
            members.insert("metrics".to_owned(), json!({ "metrics": metrics }));
        }
        let version = members.remove("version").unwrap_or(json!(20_221_218));
        let mut whole = serde_json::Map::new();
        if !version.is_null() {
            whole.insert("version".to_owned(), version);
        }
        if status == 200 && !members.contains_key("data") && !members.contains_key("error") {
            whole.insert("data".to_owned(), json!({}));
        }
        whole.append(members);
        let body = Bytes::from(raw.unwrap_or_else(|| Value::Object(whole).to_string()));
        let answer = Padded(WebhookAnswer { status, retry_after, body });
        Self { answer, fault, takes, size }
    }
}

fn fault(word: &str) -> SendFault {
    match word {
        "refused" => SendFault::Refused("the target is private".to_owned()),
        "not_sent" => SendFault::NotSent("connection refused".to_owned()),
        "broken" => SendFault::Broken("connection reset".to_owned()),
        other => panic!("unknown fault in a script: {other}"),
    }
}
