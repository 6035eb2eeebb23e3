//! A tap on the wire below the SDKs: it sees, counts and disturbs every request.
//!
//! It is an HTTP client that wraps the real one, so what it counts is what AWS would bill, retries of the SDK included.
//! It needs no clock, and what it counts is the same on every machine. What it rewrites no longer fits its signature:
//! it is for emulators.

mod call;
mod faults;
mod shadow;
mod size;
mod units;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use bytes::Bytes;

use self::call::Call;
pub use self::call::Sent;
pub use self::faults::{Fault, Plan};
use self::shadow::Shadow;

/// What requests of one operation came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Requests that left the process.
    pub requests: u64,
    /// SQS messages in them.
    pub messages: u64,
    /// Write request units of DynamoDB.
    pub write_units: u64,
    /// Read request units of DynamoDB.
    pub read_units: f64,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.messages += other.messages;
        self.write_units += other.write_units;
        self.read_units += other.read_units;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
    }
}

/// One request that was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its number, from 1 on since the plan was set.
    pub number: u64,
    /// Service and operation: `dynamodb PutItem`, `sqs SendMessageBatch`, `s3 GET`, `lambda Invoke`.
    pub name: String,
    /// Seconds of delay of each message that it sends.
    pub delays: Vec<u64>,
    /// The messages that it sends.
    pub sent: Vec<Sent>,
    /// What it came to; zero where it was not sent.
    pub tally: Tally,
}

/// The tap. Clones are the same tap; several processes of a test may share one, and then its picture of the table is
/// whole.
#[derive(Clone)]
pub struct Tap {
    inner: SharedHttpClient,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    plan: Plan,
    count: u64,
    without_delays: bool,
    seen: Vec<Seen>,
    shadow: Shadow,
}

impl Tap {
    /// A tap over the SDK's own HTTP client.
    pub fn new() -> Self {
        let tls = Provider::Rustls(CryptoMode::AwsLc);
        Self::over(aws_smithy_http_client::Builder::new().tls_provider(tls).build_https())
    }

    /// A tap over any HTTP client.
    pub fn over(inner: SharedHttpClient) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// The HTTP client to build AWS clients with.
    pub fn client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.clone())
    }

    /// Disturbs requests from now on as planned, and numbers them from 1.
    pub fn set_plan(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = plan;
        state.count = 0;
    }

    /// Requests since the plan was set, those that were refused because the process had stopped left out.
    pub fn count(&self) -> u64 {
        self.state().count
    }

    /// Whether the process has stopped: whether all requests of the plan have been made.
    pub fn is_stopped(&self) -> bool {
        let state = self.state();
        state.plan.stop_after.is_some_and(|last| last <= state.count)
    }

    /// Sends messages without their delays, or with them again. What was asked for stands in [`Seen::delays`].
    pub fn set_without_delays(&self, without: bool) {
        self.state().without_delays = without;
    }

    /// Takes the requests seen since the last call, in the order in which they ended.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// What requests came to by service and operation.
    pub fn sum(seen: &[Seen]) -> BTreeMap<String, Tally> {
        let mut sums: BTreeMap<String, Tally> = BTreeMap::new();
        for seen in seen {
            sums.entry(seen.name.clone()).or_default().add(&seen.tally);
        }
        sums
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Gives a request its number and its fault. `None`: the process has stopped.
    fn begin(&self) -> Option<(u64, Option<Fault>)> {
        let mut state = self.state();
        if state.plan.stop_after.is_some_and(|last| last <= state.count) {
            return None;
        }
        state.count += 1;
        let number = state.count;
        let fault = state.plan.faults.get(&number).copied();
        Some((number, fault))
    }

    async fn call(
        self,
        inner: SharedHttpConnector,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let Some((number, fault)) = self.begin() else {
            return Err(ConnectorError::user("the process has stopped".into()));
        };
        let mut call = Call::read(&request);
        let mut seen = Seen {
            number,
            name: call.name.clone(),
            delays: call.delays(),
            sent: call.messages_sent(),
            tally: Tally::default(),
        };
        if let Some(answer) = fault.and_then(|fault| fault.instead(&call)) {
            self.state().seen.push(seen);
            return answer;
        }
        if self.state().without_delays && call.drop_delays() {
            call.write(&mut request)?;
        }
        if let Some(Fault::Late(delay)) = fault {
            tokio::time::sleep(delay).await;
        }
        seen.tally.requests = 1;
        seen.tally.messages = call.messages();
        seen.tally.request_bytes = call.request_bytes;
        let (response, body) = match whole(inner.call(request).await?).await {
            Ok(whole) => whole,
            Err(error) => return Err(error),
        };
        seen.tally.response_bytes = body.len() as u64;
        {
            let mut state = self.state();
            let (write_units, read_units) = units::bill(&call, &body, &mut state.shadow);
            (seen.tally.write_units, seen.tally.read_units) = (write_units, read_units);
            state.seen.push(seen);
        }
        match fault.and_then(Fault::afterwards) {
            Some(error) => Err(error),
            None => Ok(response),
        }
    }
}

/// A response whose body has been read, and its body.
async fn whole(mut response: HttpResponse) -> Result<(HttpResponse, Bytes), ConnectorError> {
    let body = std::mem::replace(response.body_mut(), SdkBody::taken());
    let body = ByteStream::new(body).collect().await;
    let body = body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
    *response.body_mut() = SdkBody::from(body.clone());
    Ok((response, body))
}

impl Default for Tap {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl HttpClient for Tap {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(TapConnector { inner, tap: self.clone() })
    }
}

#[derive(Debug)]
struct TapConnector {
    inner: SharedHttpConnector,
    tap: Tap,
}

impl HttpConnector for TapConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.tap.clone().call(self.inner.clone(), request))
    }
}
