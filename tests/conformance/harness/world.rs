//! A world: a platform on one clock, the extensions it calls, and what was seen of both.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use annex_core::call::{CallSettings, Calls};
use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::limits::{LEASE, QUEUE_RECEIVES_MAX, TELEMETRY_RETENTION};
use annex_core::ports::{Clock as _, Handler, Message, Ports, QueueName, Store};
use annex_core::telemetry::Telemetry;
use annex_core::testkit::{FixedKeyring, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use annex_core::time::Timestamp;
use annex_embedded::Embedded;
use axum::Router;

use super::bindings::Bindings;
use super::case::{Case, Extension};
use super::door::{Call, Reply};
use super::extension::{Extensions, url};
use super::schema;
use super::tap::{Death, Queued, Tap};

/// Where items lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In the store of the test kit.
    Memory,
    /// In the store of one machine, on a disk in memory.
    Embedded,
}

impl Backend {
    /// Every backend.
    pub(crate) const ALL: &[Self] = &[Self::Memory, Self::Embedded];

    /// Its name in the name of a trial.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
        }
    }

    fn open(self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        match self {
            Self::Memory => Arc::new(MemoryStore::new(clock)),
            Self::Embedded => Embedded::in_memory(clock).expect("a disk in memory has room"),
        }
    }
}

/// More messages than any case needs: whoever gets here goes round in circles.
const MESSAGES_MAX: usize = 20_000;

/// 2026-01-05, a Monday, at 10:00 UTC.
const START: Timestamp = Timestamp::from_secs(1_767_607_200);

/// What a process consists of.
pub(crate) struct Process {
    pub(crate) tap: Arc<Tap>,
    pub(crate) ports: Ports,
    pub(crate) calls: Calls,
    pub(crate) telemetry: Telemetry,
    pub(crate) router: Router,
}

/// A world.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) process: Process,
    pub(crate) bindings: Bindings,
    /// When the steps of the case began.
    pub(crate) start: Timestamp,
    /// Sleeps before that.
    pub(crate) slept: usize,
    /// Messages that were handed over, in order.
    pub(crate) handed: Vec<Queued>,
    /// Messages that were given up.
    pub(crate) dead_letters: Vec<Queued>,
    pub(crate) tokens: HashMap<String, String>,
    /// Names of the extensions and what they are now.
    pub(crate) known: HashMap<String, Extension>,
}

impl Process {
    fn start(tap: Tap, of: &Ports) -> Self {
        let tap = Arc::new(tap);
        let store: Arc<dyn Store> = tap.clone();
        let ports = Ports { store, ..of.clone() };
        let calls =
            Calls::new(ports.clone(), Arc::new(dispatch::InProcess), CallSettings::default());
        let telemetry = Telemetry::new(ports.clone(), calls.clone(), TELEMETRY_RETENTION);
        let router = api::router(api::App {
            ports: ports.clone(),
            calls: calls.clone(),
            telemetry: telemetry.clone(),
            settings: Arc::new(api::Settings { public_url: "http://127.0.0.1:8080".to_owned() }),
        });
        Self { tap, ports, calls, telemetry, router }
    }
}

impl World {
    /// An empty world.
    pub(crate) fn new(backend: Backend) -> Self {
        let clock = Arc::new(ManualClock::auto_advancing(START));
        let extensions = Arc::new(Extensions::new(clock.clone()));
        let items = backend.open(clock.clone());
        let ports = Ports {
            store: items.clone(),
            // The harness keeps the queues itself, and those that were given up.
            dead_letters: Arc::new(MemoryStore::new(clock.clone())),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(7)),
            outbound: extensions.clone(),
        };
        let process = Process::start(Tap::new(items, clock.clone()), &ports);
        Self {
            start: clock.steady(),
            clock,
            extensions,
            process,
            bindings: Bindings::default(),
            slept: 0,
            handed: Vec::new(),
            dead_letters: Vec::new(),
            tokens: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Makes what a case starts from, through the API, and forgets what was seen while it was made.
    pub(crate) async fn set_up(&mut self, case: &Case) -> Result<(), String> {
        let orgs: Vec<String> = case.org_names().map(str::to_owned).collect();
        for (number, (org, spec)) in orgs.iter().zip(&case.orgs).enumerate() {
            let oid = oid_for(number, spec)?;
            self.bindings.set(org, &oid);
            let call = Call::new("POST", "/v1/orgs/new");
            let call = call.token(self.operator().await?).form([("name", &**org), ("oid", &oid)]);
            self.done(call).await?;
        }
        self.register("demo", &case.demo, &orgs).await?;
        for (name, extension) in &case.others {
            self.register(name, extension, &orgs).await?;
        }
        for (name, value) in &case.secrets {
            let data = serde_json::json!({ "secret": value }).to_string();
            self.set_record("secret", name, &data).await?;
        }
        if let Some(config) = &case.config {
            self.set_record("extension_config", "demo", &config.to_string()).await?;
        }
        self.run_until(self.clock.steady()).await?;
        let (_, faults) = self.extensions.take();
        if let Some(fault) = faults.first() {
            return Err(format!("while the case was set up: {fault}"));
        }
        // Every case starts with the schemas just asked for.
        self.restart(None);
        for name in self.known.keys() {
            let name = annex_core::ids::ExtensionName::parse(name).map_err(|f| f.to_string())?;
            let _unless_it_has_none = self.process.calls.schema(&name).await;
        }
        self.extensions.take();
        for (name, extension) in self.known.clone() {
            self.change(&name, extension);
        }
        self.handed.clear();
        self.start = self.clock.steady();
        self.slept = self.clock.slept().len();
        Ok(())
    }

    async fn register(
        &mut self,
        name: &str,
        extension: &Extension,
        orgs: &[String],
    ) -> Result<(), String> {
        let mut quiet = extension.clone();
        quiet.answers.retain(|word, _| word == "schema");
        self.change(name, quiet);
        self.known.insert(name.to_owned(), extension.clone());
        let mut definition = serde_json::json!({
            "name": name,
            "url": url(name),
            "secret": secret_of(name, extension),
            "permissions": extension.permissions.clone().unwrap_or(vec!["sensor.get".to_owned()]),
        });
        if let Some(events) = &extension.events {
            definition["events"] = serde_json::json!(events);
        }
        let token = self.operator().await?;
        let call = Call::new("POST", "/v1/extension/definition").token(token);
        self.done(call.json(&definition)).await?;
        for org in extension.subscribed.as_deref().unwrap_or(orgs) {
            let path = format!("/v1/orgs/${{{org}}}/subscription/extension/{name}");
            let call = Call::new("POST", &self.bindings.fill(&path));
            let token = self.token("user", org).await?;
            self.done(call.token(token)).await?;
        }
        Ok(())
    }

    /// Gives an extension another schema and other answers.
    pub(crate) fn change(&self, name: &str, extension: Extension) {
        let secret = secret_of(name, &extension);
        self.extensions.set(name, &secret, schema::expand(&extension.schema), extension.answers);
    }

    async fn set_record(&mut self, hive: &str, name: &str, data: &str) -> Result<(), String> {
        let path = self.bindings.fill(&format!("/v1/hive/{hive}/${{A}}/{name}/data"));
        let token = self.token("user", "A").await?;
        self.done(Call::new("POST", &path).token(token).form([("data", data)])).await
    }

    /// Sends a request that must succeed.
    pub(crate) async fn done(&self, call: Call) -> Result<(), String> {
        let what = format!("{} {}", call.method, call.path);
        let reply = self.send(call).await;
        if reply.status.is_success() {
            return Ok(());
        }
        Err(format!("{what} answers {}: {}", reply.status, reply.body))
    }

    /// Sends a request.
    pub(crate) async fn send(&self, call: Call) -> Reply {
        call.send(&self.process.router).await
    }

    /// The process ends and another one starts.
    pub(crate) fn restart(&mut self, death: Option<(u64, Death)>) {
        let tap = self.process.tap.restart(death);
        self.process = Process::start(tap, &self.process.ports);
    }

    /// Seconds since the steps began.
    pub(crate) fn since(&self, at: Timestamp) -> f64 {
        at.since(self.start).as_secs_f64()
    }

    /// Lets everything happen that comes due until a time on the steady clock, and then lets it be that time.
    pub(crate) async fn run_until(&mut self, until: Timestamp) -> Result<(), String> {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = self.process.tap.take_first() else { break };
            if until < message.due {
                let due = message.due;
                let receives = message.receives;
                self.process.tap.put_back(message, due, receives);
                break;
            }
            self.clock.advance(message.due.since(self.clock.steady()));
            self.hand_over(message).await;
        }
        self.clock.advance(until.since(self.clock.steady()));
        Ok(())
    }

    /// Lets everything happen.
    pub(crate) async fn settle(&mut self) -> Result<(), String> {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = self.process.tap.take_first() else { return Ok(()) };
            self.clock.advance(message.due.since(self.clock.steady()));
            self.hand_over(message).await;
        }
        Err(format!("more than {MESSAGES_MAX} messages"))
    }

    async fn hand_over(&mut self, queued: Queued) {
        self.handed.push(queued.clone());
        let calls = self.process.calls.clone();
        let message = Message {
            id: "m".to_owned(),
            body: queued.body.clone(),
            receives: queued.receives + 1,
        };
        let undone = match queued.queue {
            QueueName::Dispatch => dispatch::Dispatch::new(calls).handle(vec![message]).await,
            QueueName::Resume => resume::Resume::new(calls).handle(vec![message]).await,
            QueueName::Meter => {
                meter::Meter::new(self.process.ports.store.clone()).handle(vec![message]).await
            }
        };
        let Some(undone) = undone.into_iter().next() else {
            self.process.tap.finish(&queued);
            return;
        };
        let receives = queued.receives + u32::from(undone.counts);
        if QUEUE_RECEIVES_MAX <= receives {
            self.process.tap.finish(&queued);
            self.dead_letters.push(queued);
            return;
        }
        let after = undone.retry_after.unwrap_or(LEASE).max(Duration::from_millis(1));
        let due = self.clock.steady().plus(after);
        self.process.tap.put_back(queued, due, receives);
    }

    async fn operator(&mut self) -> Result<String, String> {
        self.token("operator", "A").await
    }
}

fn secret_of(name: &str, extension: &Extension) -> String {
    extension.secret.clone().unwrap_or_else(|| format!("{name}-shared-secret-0123456789abcdef"))
}

/// An id of an organization, whose daily update is due at a time of the day where one is asked for.
fn oid_for(number: usize, spec: &str) -> Result<String, String> {
    let at = |n: usize| format!("{:08x}-0000-4000-8000-{n:012x}", 0xa0 + number);
    let Some((_, time)) = spec.split_once('@') else { return Ok(at(0)) };
    let (hour, minute) = time.split_once(':').ok_or("a time is HH:MM")?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
    let slot = number(hour)? * 60 + number(minute)?;
    (0..100_000)
        .map(at)
        .find(|oid| Oid::parse(oid).is_ok_and(|oid| keys::slot(oid) == slot))
        .ok_or_else(|| format!("no organization is due at {time}"))
}
