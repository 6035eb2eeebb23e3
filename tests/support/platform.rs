//! A platform in this process, and what every test does with one first: an extension, an organization, a call.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use annex_core::ports::QueueName;
use annex_embedded::{Embedded, RootKeyring};
use local::platform::{Platform, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Answer, Client};
use crate::clock::TestClock;
use crate::extension::{Extension, SECRET};
use crate::wait::until;

/// The root key of every platform here.
pub const ROOT_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The operator of a platform, wherever it runs.
#[derive(Debug, Clone)]
pub struct Operator {
    client: Client,
    root_key: String,
}

impl Deref for Operator {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Operator {
    /// Signs in with the root key.
    pub async fn sign_in(client: &Client, root_key: &str) -> Self {
        let client = client.sign_in(root_key, "-").await;
        Self { client, root_key: root_key.to_owned() }
    }

    /// Registers an extension under a name.
    pub async fn register(&self, name: &str, extension: &Extension) {
        self.register_at(name, &extension.url()).await;
    }

    /// Registers a name for a URL.
    pub async fn register_at(&self, name: &str, url: &str) {
        let definition = json!({"name": name, "url": url, "secret": SECRET});
        self.json("POST", "/v1/extension/definition", &definition.to_string()).await.ok();
    }

    /// Makes an organization.
    pub async fn tenant(&self, name: &str) -> Tenant {
        let made = self.form("POST", "/v1/orgs/new", &[("name", name)]).await.ok();
        let oid = made["data"]["oid"].as_str().unwrap().to_owned();
        self.tenant_of(&oid).await
    }

    /// An organization that is there.
    pub async fn tenant_of(&self, oid: &str) -> Tenant {
        let client = self.client.sign_in(&self.root_key, oid).await;
        Tenant { oid: oid.to_owned(), client }
    }
}

/// An organization, and a client that may do everything in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub oid: String,
    client: Client,
}

impl Deref for Tenant {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Tenant {
    /// The same organization on a platform that was started again.
    pub fn at(&self, address: std::net::SocketAddr) -> Self {
        Self { client: Client { address, ..self.client.clone() }, ..self.clone() }
    }

    /// Subscribes to an extension.
    pub async fn subscribe(&self, name: &str) {
        let path = format!("/v1/orgs/{}/subscription/extension/{name}", self.oid);
        self.form("POST", &path, &[]).await.ok();
    }

    /// Calls an action with headers.
    pub async fn call_with(
        &self,
        name: &str,
        action: &str,
        data: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let call = self.try_call(name, action, data, headers).await;
        call.unwrap_or_else(|error| panic!("the call was not answered: {error}"))
    }

    /// Calls an action with headers; `Err`: there is no answer.
    pub async fn try_call(
        &self,
        name: &str,
        action: &str,
        data: &str,
        headers: &[(&str, &str)],
    ) -> std::io::Result<Answer> {
        let fields = [("oid", self.oid.as_str()), ("action", action), ("data", data)];
        let mut all = vec![("content-type", crate::client::FORM)];
        all.extend(headers);
        let path = format!("/v1/extension/request/{name}");
        self.try_send("POST", &path, &all, crate::client::form(&fields)).await
    }

    /// Calls an action and waits.
    pub async fn call(&self, name: &str, action: &str, data: &str) -> Answer {
        self.call_with(name, action, data, &[]).await
    }

    /// Calls an action and does not wait: the id of the invocation.
    pub async fn call_async(&self, name: &str, action: &str, data: &str) -> String {
        let answer = self.call_with(name, action, data, &[("prefer", "respond-async")]).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// The record of an invocation.
    pub async fn record(&self, id: &str) -> Value {
        self.get(&format!("/v1/invocations/{id}")).await.ok()
    }

    /// The record of an invocation once it has ended.
    #[track_caller]
    pub fn ended(&self, id: &str) -> impl Future<Output = Value> {
        until(format!("the end of {id}"), move || async move {
            let record = self.record(id).await;
            matches!(record["status"].as_str(), Some("succeeded" | "failed")).then_some(record)
        })
    }

    /// Errors of the organization: component and text, sorted.
    pub async fn errors(&self) -> Vec<(String, String)> {
        let found = self.get(&format!("/v1/errors/{}", self.oid)).await.ok();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
        let entries = found["errors"].as_array().unwrap().iter();
        let mut all: Vec<_> = entries.map(|e| (text(e, "component"), text(e, "error"))).collect();
        all.sort();
        all
    }

    /// Waits for an error of the organization.
    #[track_caller]
    pub fn await_error(&self, component: &str, error: &str) -> impl Future<Output = ()> {
        until(format!("the filing of {error:?} of {component}"), move || async move {
            let wanted = (component.to_owned(), error.to_owned());
            self.errors().await.contains(&wanted).then_some(())
        })
    }

    /// What was metered under each SKU in the last day, sorted.
    pub async fn usage(&self) -> Vec<(String, u64)> {
        let found = self.get(&format!("/v1/orgs/{}/usage", self.oid)).await.ok();
        let entries = found["usage"].as_array().unwrap().iter();
        let entry =
            |e: &Value| (e["sku"].as_str().unwrap().to_owned(), e["value"].as_u64().unwrap());
        let mut all: Vec<_> = entries.map(entry).collect();
        all.sort();
        all
    }

    /// Waits until exactly this is metered.
    #[track_caller]
    pub fn await_usage(&self, expected: &[(&str, u64)]) -> impl Future<Output = ()> {
        let expected: Vec<_> = expected.iter().map(|(sku, n)| ((*sku).to_owned(), *n)).collect();
        let what = format!("usage {expected:?}");
        let expected = Arc::new(expected);
        until(what, move || {
            let expected = Arc::clone(&expected);
            async move { (self.usage().await == *expected).then_some(()) }
        })
    }

    /// Stores a secret.
    pub async fn set_secret(&self, name: &str, value: &str) {
        let path = format!("/v1/hive/secret/{}/{name}/data", self.oid);
        let data = json!({"secret": value}).to_string();
        self.form("POST", &path, &[("data", &data)]).await.ok();
    }
}

/// A platform in this process.
pub struct World {
    /// Its operator.
    pub operator: Operator,
    /// Its clock.
    pub clock: Arc<TestClock>,
    platform: Platform,
    folder: TempDir,
}

impl World {
    /// Starts one on a new folder, in real time.
    pub async fn start() -> Self {
        Self::start_at_speed(1).await
    }

    /// Starts one on a new folder, on a clock that runs faster: delays and retries take less, timeouts do not.
    pub async fn start_at_speed(speed: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, Arc::new(TestClock::start(speed)), true).await
    }

    /// Starts one that lets no extension live on a private address.
    pub async fn start_public() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, Arc::new(TestClock::start(1)), false).await
    }

    async fn start_in(
        folder: TempDir,
        clock: Arc<TestClock>,
        allow_private_networks: bool,
    ) -> Self {
        let settings = Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: folder.path().to_owned(),
            allow_private_networks,
            public_url: None,
            slow_retry_hours: 6,
            partner_calls: 16,
            telemetry_days: 30,
            extra_roots: Vec::new(),
        };
        let keyring = RootKeyring::from_hex(ROOT_KEY).unwrap();
        let platform = Platform::start_with(settings, keyring, clock.clone()).await.unwrap();
        let operator = Operator::sign_in(&Client::new(platform.address()), ROOT_KEY).await;
        Self { operator, clock, platform, folder }
    }

    /// One with an extension under the name `ext`, and an organization that is subscribed to it.
    pub async fn with(extension: &Extension) -> (Self, Tenant) {
        Self::with_at_speed(extension, 1).await
    }

    /// The same on a faster clock.
    pub async fn with_at_speed(extension: &Extension, speed: u32) -> (Self, Tenant) {
        let world = Self::start_at_speed(speed).await;
        world.operator.register("ext", extension).await;
        let tenant = world.operator.tenant("demo").await;
        tenant.subscribe("ext").await;
        (world, tenant)
    }

    /// The running platform.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Its store.
    pub fn store(&self) -> &Arc<Embedded> {
        self.platform.store()
    }

    /// The folder of its data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops it and starts it again on the same folder and clock.
    pub async fn restart(self) -> Self {
        let clock = Arc::clone(&self.clock);
        self.restart_on(clock).await
    }

    /// Stops it and starts it again on the same folder with another clock.
    pub async fn restart_on(self, clock: Arc<TestClock>) -> Self {
        let Self { platform, folder, .. } = self;
        platform.stop().await;
        Self::start_in(folder, clock, true).await
    }

    /// How many dead letters there are.
    pub async fn dead_letters(&self) -> u64 {
        let mut dead = 0;
        for &queue in QueueName::ALL {
            dead += self.store().depth(queue).await.unwrap().dead;
        }
        dead
    }

    /// Waits until no message waits or is worked on, and checks that none is dead.
    pub async fn settled(&self) {
        until("the end of all messages", || async {
            for &queue in QueueName::ALL {
                let depth = self.store().depth(queue).await.unwrap();
                if depth.ready + depth.delayed + depth.in_flight + depth.held != 0 {
                    return None;
                }
            }
            Some(())
        })
        .await;
        assert_eq!(self.dead_letters().await, 0, "a message is a dead letter");
    }

    /// Stops it cleanly, and gives its folder.
    pub async fn stop(self) -> TempDir {
        self.platform.stop().await;
        self.folder
    }
}
