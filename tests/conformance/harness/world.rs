//! A world: a platform on one clock, the extensions it calls, and what was seen of both.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use annex_core::ids::Oid;
use annex_core::keys;
use annex_core::ports::{Clock as _, Ports};
use annex_core::testkit::{FixedKeyring, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use annex_core::time::Timestamp;

use super::backend::{Backend, Backing};
use super::bindings::Bindings;
use super::case::{Case, Extension};
use super::door::{Call, Reply};
use super::extension::{Extensions, url};
use super::gate::Gate;
use super::process::{Process, Processes, Site};
use super::schema;
use super::tap::{Machine, Queued};
use crate::capability::partners::{Outlets, Partners};

/// 2026-01-05, a Monday, at 10:00 UTC.
const START: Timestamp = Timestamp::from_secs(1_767_607_200);

/// A world.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) extensions: Arc<Extensions>,
    /// Those of the other contract.
    pub(crate) partners: Arc<Partners>,
    pub(crate) site: Arc<Site>,
    /// The process that callers reach.
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
    /// Every message comes twice in one batch.
    pub(crate) side_by_side: bool,
    pub(crate) tokens: HashMap<String, String>,
    /// Names of the extensions and what they are now.
    pub(crate) known: HashMap<String, Extension>,
}

impl World {
    /// An empty world.
    pub(crate) async fn new(backend: Backend, processes: Processes) -> Self {
        let clock = Arc::new(ManualClock::auto_advancing(START));
        let extensions = Arc::new(Extensions::new(clock.clone()));
        let partners = Arc::new(Partners::new(clock.clone()));
        let outbound = Outlets { extensions: extensions.clone(), partners: partners.clone() };
        let gate = Arc::new(Gate::new(clock.clone()));
        let machine = Machine::new(clock.clone(), gate.clone(), backend.is_atomic());
        let backing = Backing::open(backend, &clock).await;
        let ports = Ports {
            // Every process has its own way to these.
            store: Arc::new(MemoryStore::new(clock.clone())),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            // The harness keeps the queues itself, and those that were given up.
            dead_letters: Arc::new(MemoryStore::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(7)),
            outbound: Arc::new(outbound),
        };
        let machine = (gate, Arc::new(machine));
        let site = Site::new(clock.clone(), machine, backing, ports, processes);
        Self {
            start: clock.steady(),
            clock,
            extensions,
            partners,
            process: site.start(),
            site,
            bindings: Bindings::default(),
            slept: 0,
            handed: Vec::new(),
            dead_letters: Vec::new(),
            side_by_side: false,
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
        self.restart();
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
        call.send(self.process.router()).await
    }

    /// Every process ends and another one starts.
    pub(crate) fn restart(&mut self) {
        self.process.life.end();
        self.site.end_worker();
        self.site.machine.died();
        self.site.epoch.fetch_add(1, Ordering::Relaxed);
        self.process = self.site.start();
    }

    /// Seconds since the steps began.
    pub(crate) fn since(&self, at: Timestamp) -> f64 {
        at.since(self.start).as_secs_f64()
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
