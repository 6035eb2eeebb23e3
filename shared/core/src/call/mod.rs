//! One call: accepted, delivered, settled.

use std::time::Duration;

use crate::auth::Caller;
use crate::fault::Outcome;
use crate::ids::{ExtensionName, Oid};
use crate::ports::{Outgoing, Ports};

/// A request to call an action.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tenant.
    pub oid: Oid,
    /// The extension.
    pub extension: ExtensionName,
    /// The action, unchecked.
    pub action: String,
    /// The request data: JSON text as it came, unchecked. Empty: `{}`.
    pub data: Vec<u8>,
    /// Who calls; its permission `ext.request` was checked.
    pub caller: Caller,
    /// The token of the user on whose behalf an impersonated action runs, unchecked.
    pub impersonator: Option<String>,
    /// The caller's name of the call, unchecked.
    pub idempotency_key: Option<String>,
    /// An id of an investigation, passed through.
    pub investigation: String,
    /// How long the caller waits for the answer; zero: not at all. At most [`crate::limits::WAIT_MAX`].
    pub wait: Duration,
}

/// What the HTTP entry answers to a request: a status and a JSON body, the same for every repeat of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The call ended, with success or failure.
    Ended {
        /// Id of the invocation.
        id: String,
        /// HTTP status.
        status: u16,
        /// JSON body.
        body: bytes::Bytes,
    },
    /// The call goes on: 202 with its id and the JSON of its record.
    Accepted {
        /// Id of the invocation.
        id: String,
        /// JSON of the record's view.
        body: bytes::Bytes,
    },
}

/// The life of calls.
#[derive(Clone)]
pub struct Calls {
    ports: Ports,
}

impl Calls {
    /// Over these ports.
    pub fn new(ports: Ports) -> Self {
        Self { ports }
    }

    /// Accepts a request, and waits for its answer as long as it says.
    pub async fn request(&self, _request: CallRequest) -> Outcome<Reply> {
        let _ = &self.ports;
        unimplemented!("being written")
    }

    /// The JSON of an invocation's record as its organization sees it.
    pub async fn record(&self, _oid: Oid, _id: &str) -> Outcome<Option<bytes::Bytes>> {
        unimplemented!("being written")
    }

    /// The raw `data` of the extension's answer to a schema request, at most a minute old; the fault says what failed.
    pub async fn schema(&self, _extension: &ExtensionName) -> Outcome<bytes::Bytes> {
        unimplemented!("being written")
    }

    /// Asks the extension whether it takes this configuration (an object's JSON text), on write.
    pub async fn validate_config(
        &self,
        _oid: Oid,
        _extension: &ExtensionName,
        _config: &str,
        _ident: &str,
    ) -> Outcome<()> {
        unimplemented!("being written")
    }

    /// The message that delivers an event (`subscribe`, `unsubscribe`) of an organization to an extension; `once`
    /// names the occurrence, so that a repeat of the same message is delivered once.
    pub fn event_message(
        &self,
        _oid: Oid,
        _extension: &ExtensionName,
        _event: &str,
        _ident: &str,
        _once: &str,
    ) -> Outgoing {
        unimplemented!("being written")
    }

    /// The message that makes a call which nobody waits for: what a rule asks for. `once` names the occurrence.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one message")]
    pub fn request_message(
        &self,
        _oid: Oid,
        _extension: &ExtensionName,
        _action: &str,
        _data: &str,
        _ident: &str,
        _investigation: &str,
        _once: &str,
    ) -> Outgoing {
        unimplemented!("being written")
    }
}
