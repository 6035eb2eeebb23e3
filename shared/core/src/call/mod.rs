//! One call: accepted, delivered, settled.
//!
//! *Accept* checks and claims: the claim is the record itself, one conditional put. *Deliver* resolves secrets, signs,
//! sends, and tries again soon where that may help. *Settle* decides what the answer means (`settle`, pure) and
//! writes the record with everything that follows from it in one commit. A worker that dies leaves a record whose
//! lease runs out and a message that comes back, so another one takes the call over under the same idempotency key.

mod accept;
mod compose;
mod control;
mod deliver;
mod erase;
mod install;
mod job;
mod launch;
mod log;
mod payload;
mod record;
mod refusals;
mod replay;
mod reseal;
mod run;
mod schemas;
mod settle;
mod sign;
mod start;
#[cfg(test)]
mod stored;
mod summary;
mod updates;
mod view;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::auth::Caller;
use crate::capability::Capabilities;
use crate::ids::{ExtensionName, Oid};
use crate::limits;
use crate::ports::{Outage, Ports};
use crate::profile::{LIMACHARLIE, Profile};
use crate::remembered::Remembered;
use crate::slots::Slots;
use crate::trace::Trace;

pub use log::TARGET as LOG_TARGET;
pub use replay::ReplayRequest;
pub use run::Claimed;
pub use summary::{Summary, summary};
pub(crate) use waiting::deliver_message;

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
    /// The trace it is in; `None`: one of its own.
    pub trace: Option<Trace>,
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
        body: Bytes,
    },
    /// The call goes on: 202 with its id and the JSON of its record.
    Accepted {
        /// Id of the invocation.
        id: String,
        /// JSON of the record's view.
        body: Bytes,
    },
}

/// Starts the delivery of a claimed call, and waits for its end as long as the caller does.
///
/// **Contract.** The delivery goes on when the wait is over, and when the waiter is gone.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Runs `claimed`; `None`: it had not ended when `wait` was over, or nobody can say whether it still runs. An error
    /// says that nobody works on it any more.
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        wait: Duration,
    ) -> Option<Result<Reply, Outage>>;
}

/// What an operator may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSettings {
    /// How long a call that is answered 429 is tried again.
    pub slow_retry_window: Duration,
    /// How often the same refused request is filed as an error at most, by one process, which counts those in between;
    /// zero: each one. For stores whose writes are billed.
    pub refusals_filed_every: Duration,
    /// How long an extension may take to check a configuration, its schema and its retries included, before who sets it gets an error;
    /// `None`: as long as any message. For entries that must have answered by then.
    pub check_within: Option<Duration>,
    /// Calls of one capability extension that a process has under way at most (CH-035).
    pub partner_calls: usize,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            slow_retry_window: limits::SLOW_RETRY_WINDOW,
            refusals_filed_every: Duration::ZERO,
            check_within: None,
            partner_calls: limits::PARTNER_CALLS_MAX,
        }
    }
}

/// The life of calls. Cheap to clone.
#[derive(Clone)]
pub struct Calls {
    inner: Arc<Inner>,
}

struct Inner {
    ports: Ports,
    launcher: Arc<dyn Launcher>,
    settings: CallSettings,
    profile: &'static Profile,
    extensions: Remembered<ExtensionName, install::Extension>,
    schemas: schemas::Schemas,
    refusals: refusals::Refusals,
    /// Deliveries of queued work.
    slots: Slots<ExtensionName>,
    capabilities: Capabilities,
    /// Deliveries whose caller waits.
    calls: Slots<ExtensionName>,
}

impl Calls {
    /// Over these ports.
    pub fn new(ports: Ports, launcher: Arc<dyn Launcher>, settings: CallSettings) -> Self {
        Self {
            inner: Arc::new(Inner {
                capabilities: Capabilities::new(ports.clone(), settings.partner_calls),
                ports,
                launcher,
                settings,
                profile: &LIMACHARLIE,
                extensions: Remembered::new(limits::SCHEMAS_CACHED_MAX),
                schemas: schemas::Schemas::default(),
                refusals: refusals::Refusals::new(settings.refusals_filed_every),
                slots: Slots::default(),
                calls: Slots::default(),
            }),
        }
    }

    /// The ports it works over.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// Calls and events between capability extensions.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    fn profile(&self) -> &'static Profile {
        self.inner.profile
    }
}
