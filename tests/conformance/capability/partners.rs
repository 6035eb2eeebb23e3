//! The capability extensions of a world: they check what they get as a real receiver does, keep it, and answer by script.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use annex_core::ports::{Clock as _, Outbound, SendFault, WebhookAnswer, WebhookRequest};
use annex_core::testkit::ManualClock;
use annex_core::time::Timestamp;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::extension::Extensions;

/// Where the partners of a world live, each under its slug.
const DOMAIN: &str = ".partner.example/";

/// The URL of a partner.
pub(crate) fn url(slug: &str) -> String {
    format!("https://{slug}{DOMAIN}")
}

/// A message that arrived, whose form was as it should be.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// At which partner.
    pub(crate) to: String,
    /// When, on the steady clock.
    pub(crate) at: Timestamp,
    /// `event` of the envelope.
    pub(crate) event: String,
    /// `data` of the envelope.
    pub(crate) data: Value,
    /// `requestId` of the envelope.
    pub(crate) request_id: String,
    /// How long the sender waits.
    pub(crate) timeout: Duration,
    /// How much of an answer the sender reads.
    pub(crate) bytes_max: usize,
}

impl Received {
    /// What scripts call it: the id of the capability, or `<slug>:<event>` of a webhook.
    pub(crate) fn word(&self) -> String {
        match self.data["capability"].as_str() {
            Some(capability) => capability.to_owned(),
            None => format!("{}:{}", self.to, self.event),
        }
    }
}

/// How a message is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The input is the output.
    Echo,
    /// A status and a body.
    Is(u16, Vec<u8>),
    /// No answer.
    Fails(SendFault),
    /// After a time, if the sender waits so long.
    After(Duration, Box<Self>),
    /// When the test lets go.
    Held(Box<Self>),
}

impl Answer {
    /// 200 with this as the output.
    pub(crate) fn output(output: &Value) -> Self {
        Self::Is(200, json!({ "output": output }).to_string().into_bytes())
    }

    /// 200 with the partner's own error.
    pub(crate) fn error(error: &Value) -> Self {
        Self::Is(200, json!({ "error": error }).to_string().into_bytes())
    }

    /// A status without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self::Is(status, Vec::new())
    }

    /// 200 with an output that is a text, the whole of so many bytes.
    pub(crate) fn of_bytes(bytes: usize) -> Self {
        let empty = json!({ "output": "" }).to_string().len();
        Self::output(&Value::from("x".repeat(bytes - empty)))
    }

    /// The same, once the test lets go.
    pub(crate) fn held(self) -> Self {
        Self::Held(Box::new(self))
    }

    /// The same, after so many milliseconds.
    pub(crate) fn after_millis(self, millis: u64) -> Self {
        Self::After(Duration::from_millis(millis), Box::new(self))
    }
}

#[derive(Default)]
struct State {
    /// Who lives here, with the Basic credentials.
    credentials: BTreeMap<String, Option<(String, String)>>,
    /// Answers by the word of the message; the last of them stays.
    scripts: BTreeMap<String, VecDeque<Answer>>,
    received: Vec<Received>,
    request_ids: BTreeSet<String>,
    faults: Vec<String>,
}

/// The partners of a world.
pub(crate) struct Partners {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
    waiting: watch::Sender<usize>,
    let_go: watch::Sender<bool>,
}

impl Partners {
    pub(crate) fn new(clock: Arc<ManualClock>) -> Self {
        let (waiting, let_go) = (watch::Sender::new(0), watch::Sender::new(false));
        Self { clock, state: Mutex::default(), waiting, let_go }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// A partner lives here from now on, and expects these credentials.
    pub(crate) fn move_in(&self, slug: &str, credentials: Option<(&str, &str)>) {
        let owned = credentials.map(|(name, password)| (name.to_owned(), password.to_owned()));
        self.state().credentials.insert(slug.to_owned(), owned);
    }

    /// How a message of this word is answered from now on.
    pub(crate) fn answer(&self, word: &str, answer: Answer) {
        self.answers(word, [answer]);
    }

    /// How the next messages of this word are answered; the last of these stays.
    pub(crate) fn answers(&self, word: &str, answers: impl IntoIterator<Item = Answer>) {
        self.state().scripts.insert(word.to_owned(), answers.into_iter().collect());
    }

    /// What arrived since the last call.
    pub(crate) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.state().received)
    }

    /// What arrived under a word since then.
    pub(crate) fn received(&self, word: &str) -> Vec<Received> {
        let state = self.state();
        state.received.iter().filter(|found| found.word() == word).cloned().collect()
    }

    /// How much arrived since then.
    pub(crate) fn count(&self) -> usize {
        self.state().received.len()
    }

    /// What was wrong with what arrived.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    /// Waits until so many answers are held.
    pub(crate) async fn held(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        waiting.wait_for(|&found| count <= found).await.expect("the sender lives as long as this");
    }

    /// Whatever is held, now and later, goes on.
    pub(crate) fn let_go(&self) {
        self.let_go.send_replace(true);
    }

    /// Checks and keeps a message; answers how it is answered, and its input.
    fn receive(&self, request: &WebhookRequest) -> Result<(Answer, Value), String> {
        let mut state = self.state();
        let slug = request.url.strip_prefix("https://").and_then(|rest| rest.strip_suffix(DOMAIN));
        let slug = slug.ok_or_else(|| format!("the URL is {}", request.url))?.to_owned();
        let credentials =
            state.credentials.get(&slug).ok_or_else(|| format!("nobody is called {slug}"))?;
        check_headers(&request.headers, credentials.as_ref())?;
        let envelope: Value =
            serde_json::from_slice(&request.body).map_err(|error| format!("no JSON: {error}"))?;
        let found = read(&envelope, &slug, request, self.clock.steady())?;
        if !state.request_ids.insert(found.request_id.clone()) {
            return Err(format!("the requestId {} came before", found.request_id));
        }
        let usual = match found.data.get("capability") {
            Some(_) => Answer::Echo,
            None => Answer::status(204),
        };
        let answer = match state.scripts.get_mut(&found.word()) {
            Some(answers) if 1 < answers.len() => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        let input = found.data["input"].clone();
        state.received.push(found);
        Ok((answer.unwrap_or(usual), input))
    }

    async fn give(
        &self,
        answer: Answer,
        input: Value,
        request: &WebhookRequest,
    ) -> Result<WebhookAnswer, SendFault> {
        let (mut answer, mut left) = (answer, request.timeout);
        loop {
            answer = match answer {
                Answer::Echo => Answer::output(&input),
                Answer::Fails(fault) => return Err(fault),
                Answer::Is(status, body) if request.response_bytes_max < body.len() => {
                    return Err(SendFault::TooLarge { status, size: body.len() as u64 });
                }
                Answer::Is(status, body) => {
                    return Ok(WebhookAnswer {
                        status,
                        retry_after: None,
                        body: Bytes::from(body),
                    });
                }
                Answer::After(time, _) if left < time => {
                    self.clock.advance(left);
                    return Err(SendFault::TimedOut(request.timeout));
                }
                Answer::After(time, then) => {
                    self.clock.advance(time);
                    left -= time;
                    *then
                }
                Answer::Held(then) => {
                    self.waiting.send_modify(|waiting| *waiting += 1);
                    let mut open = self.let_go.subscribe();
                    open.wait_for(|open| *open).await.expect("the sender lives as long as this");
                    self.waiting.send_modify(|waiting| *waiting -= 1);
                    *then
                }
            };
        }
    }
}

/// `content-type`, the credentials or none, and for calls a trace: nothing else, and nothing twice.
fn check_headers(
    headers: &[(&'static str, String)],
    credentials: Option<&(String, String)>,
) -> Result<(), String> {
    let mut expected = BTreeMap::from([("content-type", "application/json".to_owned())]);
    if let Some((name, password)) = credentials {
        let pair = STANDARD.encode(format!("{name}:{password}"));
        expected.insert("authorization", format!("Basic {pair}"));
    }
    let mut found = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != "traceparent") {
        if found.insert(*name, value.clone()).is_some() {
            return Err(format!("the header {name} stands twice"));
        }
    }
    if found == expected { Ok(()) } else { Err(format!("headers are {found:?}, not {expected:?}")) }
}

/// Reads the envelope: `{event, data, sentAt, requestId}` and nothing else.
fn read(
    envelope: &Value,
    slug: &str,
    request: &WebhookRequest,
    at: Timestamp,
) -> Result<Received, String> {
    let members = envelope.as_object().ok_or("the envelope is no object")?;
    let names: BTreeSet<&str> = members.keys().map(String::as_str).collect();
    if names != BTreeSet::from(["event", "data", "sentAt", "requestId"]) {
        return Err(format!("the envelope has the members {names:?}"));
    }
    let text = |name: &str| envelope[name].as_str().ok_or(format!("{name} is no text"));
    let sent_at = text("sentAt")?;
    if !sent_at.ends_with('Z') || Timestamp::parse(sent_at).is_none() {
        return Err(format!("sentAt is {sent_at}"));
    }
    let request_id = text("requestId")?.to_owned();
    if request_id.len() != 36 || uuid::Uuid::try_parse(&request_id).is_err() {
        return Err(format!("requestId is {request_id}"));
    }
    Ok(Received {
        to: slug.to_owned(),
        at,
        event: text("event")?.to_owned(),
        data: envelope["data"].clone(),
        request_id,
        timeout: request.timeout,
        bytes_max: request.response_bytes_max,
    })
}

/// The way out of a world: to the extensions of either contract.
pub(crate) struct Outlets {
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) partners: Arc<Partners>,
}

#[async_trait]
impl Outbound for Outlets {
    fn check_url(&self, url: &str) -> Result<(), String> {
        self.extensions.check_url(url)
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        if !request.url.ends_with(DOMAIN) {
            return self.extensions.send(request).await;
        }
        match self.partners.receive(&request) {
            Ok((answer, input)) => {
                // Others go on meanwhile.
                tokio::task::yield_now().await;
                self.partners.give(answer, input, &request).await
            }
            Err(fault) => {
                self.partners.state().faults.push(fault.clone());
                Err(SendFault::Refused(fault))
            }
        }
    }
}
