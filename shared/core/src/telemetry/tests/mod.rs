//! The world that the tests of telemetry share.

mod adapters;
mod calls;
mod deliveries;
mod searches;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::*;
use crate::call::CallSettings;
use crate::extensions::{self, DefinitionInput};
use crate::fault::{Code, Fault};
use crate::hive::{self, CLOUD_SENSOR, Change};
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits::{RULE_DATA_BYTES_MAX, TELEMETRY_RETENTION};
use crate::model::{Subscription, UserMetadata};
use crate::orgs;
use crate::ports::{
    Commit, Outbound, QueueName, SendFault, WebhookAnswer, WebhookRequest, When, Write,
};
use crate::stored;
use crate::testkit::{FixedKeyring, Inline, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use crate::time::Timestamp;
use installation_keys::InstallationKeyInput;

const SECRET: &str = "test-secret-0123456789abcdef0123";
const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";
const OTHER: &str = "8cbe27f4-0000-4000-8000-138cd51389ce";
const NAME: &str = "ext-demo";
/// From limacharlie-wire 5.
const WEBHOOK_SECRET: &str = "7d0b11e04f94747e46fa3085a411e76f0160c93ff6a25b3ae86ad7918362b0f7";
const START: Timestamp = Timestamp::from_secs(1_700_000_000);

struct NoWay;

#[async_trait]
impl Outbound for NoWay {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, _: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        Err(SendFault::NotSent("there is no network here".to_owned()))
    }
}

struct World {
    telemetry: Telemetry,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    extension: ExtensionName,
    oid: Oid,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let ports = Ports {
            store: store.clone(),
            dead_letters: store.clone(),
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(1)),
            outbound: Arc::new(NoWay),
        };
        let input = json!({ "name": NAME, "url": "https://e.example", "secret": SECRET });
        let input = DefinitionInput::parse(input.to_string().as_bytes()).unwrap();
        extensions::create(&ports, input).await.unwrap();
        let calls = Calls::new(ports.clone(), Arc::new(Inline), CallSettings::default());
        let world = Self {
            telemetry: Telemetry::new(ports, calls, TELEMETRY_RETENTION),
            clock,
            store,
            extension: ExtensionName::parse(NAME).unwrap(),
            oid: Oid::parse(OID).unwrap(),
        };
        world.subscribe(world.oid).await;
        world
    }

    fn ports(&self) -> &Ports {
        self.telemetry.ports()
    }

    async fn subscribe(&self, oid: Oid) {
        orgs::create(self.ports(), "demo", "", Some(oid)).await.unwrap();
        let install = Subscription {
            extension: self.extension.clone(),
            created_at: START,
            generation: 1,
            removed_at: None,
        };
        let write = Write::Put {
            key: keys::subscription(oid, &self.extension),
            data: stored::bytes(&install),
            expires_at: None,
            when: When::Always,
        };
        let commit = Commit { writes: vec![write], ..Commit::default() };
        self.ports().store.commit(commit).await.unwrap();
    }

    async fn provision(&self) -> adapter::Provisioned {
        self.telemetry.provision(self.oid, &self.extension, None, "a").await.unwrap()
    }

    async fn adapter(&self, name: &str, data: Value, user: UserMetadata) {
        let data = Some(Zeroizing::new(data.to_string()));
        let change = Change { data, user: Some(user), etag: None };
        hive::set(self.ports(), self.oid, CLOUD_SENSOR, name, change, "a").await.unwrap();
    }

    async fn rule(&self, name: &str, data: Value) {
        let data = data.to_string();
        hive::check(hive::RULES, &data).unwrap();
        let change = Change {
            data: Some(Zeroizing::new(data)),
            user: Some(UserMetadata::default()),
            etag: None,
        };
        hive::set(self.ports(), self.oid, hive::RULES, name, change, "a").await.unwrap();
    }

    async fn post(&self, body: &str) -> Result<usize, Fault> {
        self.receive(Delivery { body: body.as_bytes(), ..delivery() }).await
    }

    async fn receive(&self, delivery: Delivery<'_>) -> Result<usize, Fault> {
        self.telemetry.receive(delivery).await.map(|received| received.events)
    }

    async fn search(&self, query: EventQuery) -> EventPage {
        self.telemetry.events(self.oid, &query).await.unwrap()
    }

    /// The events that came, oldest first, without their envelopes.
    async fn events(&self) -> Vec<String> {
        let query = EventQuery { oldest_first: true, limit: Some(1000), ..EventQuery::default() };
        self.search(query).await.events.iter().map(|text| bare(text)).collect()
    }
}

fn delivery() -> Delivery<'static> {
    Delivery {
        oid: OID,
        adapter: NAME,
        secret: WEBHOOK_SECRET,
        encoding: None,
        body: b"{}",
        idempotency_key: None,
    }
}

fn bare(envelope: &str) -> String {
    let start = "{\"event\":";
    let end = envelope.rfind(",\"routing\":").expect("an envelope");
    envelope[start.len()..end].to_owned()
}

fn no_adapter() -> Result<usize, Fault> {
    Err(Fault::new(Code::NotFound, "there is no such adapter"))
}

fn webhook(secret: &str, mapping: Value) -> Value {
    json!({"sensor_type": "webhook", "webhook": {"secret": secret, "client_options": {
        "hostname": "h", "identity": {"oid": OID, "installation_key": "x"},
        "platform": "json", "sensor_seed_key": "s", "mapping": mapping}}})
}
