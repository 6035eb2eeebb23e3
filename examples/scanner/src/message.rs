//! What Annex sends.
//!
//! Members that this extension has no use for are left out: unknown members are ignored, so that a newer platform
//! can add some.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One message: a key, and exactly one of the other members.
#[derive(Deserialize)]
pub struct Message<'a> {
    /// The name of the logical call, the same on every retry of it.
    #[serde(borrow, default)]
    pub idempotency_key: Cow<'a, str>,
    heartbeat: Option<Empty>,
    schema_request: Option<Empty>,
    #[serde(borrow)]
    event: Option<Event<'a>>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
    conf_validation: Option<Config>,
    error_report: Option<ErrorReport>,
}

/// An object whose members do not matter.
#[derive(Deserialize)]
struct Empty {}

/// An event in an organization that is subscribed.
#[derive(Deserialize)]
pub struct Event<'a> {
    /// In which organization.
    pub org: Org,
    /// `subscribe`, `unsubscribe` or `update`.
    #[serde(borrow)]
    pub event_name: Cow<'a, str>,
}

/// A call of an action.
#[derive(Deserialize)]
pub struct Request<'a> {
    /// Which action.
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    /// Its parameters, or the state of a continuation: read only by the action that uses it.
    #[serde(borrow)]
    pub data: &'a RawValue,
}

/// The organization that a message is about. Its token, `jwt`, would be needed to call the API back.
#[derive(Deserialize)]
pub struct Org {
    /// Its id.
    pub oid: String,
}

/// A configuration that somebody wants to write.
#[derive(Deserialize)]
pub struct Config {
    /// The configuration.
    pub conf: Map<String, Value>,
}

/// What failed on the platform's side.
#[derive(Deserialize)]
pub struct ErrorReport {
    /// The text.
    pub error: String,
    /// In which organization; empty where it is about none.
    #[serde(default)]
    pub oid: String,
}

/// The kinds of message.
pub enum Kind<'a> {
    /// Is it there?
    Heartbeat,
    /// What can it do?
    Schema,
    /// Something happened.
    Event(Event<'a>),
    /// Do something.
    Request(Request<'a>),
    /// Is this configuration right?
    Config(Config),
    /// Something failed.
    Error(ErrorReport),
}

impl<'a> Message<'a> {
    /// Its kind; `None` where it has none that is known here.
    pub fn kind(&mut self) -> Option<Kind<'a>> {
        if self.heartbeat.is_some() {
            return Some(Kind::Heartbeat);
        }
        None.or_else(|| self.event.take().map(Kind::Event))
            .or_else(|| self.request.take().map(Kind::Request))
            .or_else(|| self.error_report.take().map(Kind::Error))
            .or_else(|| self.conf_validation.take().map(Kind::Config))
            .or_else(|| self.schema_request.take().map(|Empty {}| Kind::Schema))
    }
}
