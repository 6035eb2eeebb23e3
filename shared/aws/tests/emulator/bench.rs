//! A store over a tap, and short words for what the tests do with it.

use std::sync::Arc;
use std::time::Duration;

use annex_aws::tap::{Seen, Tap};
use annex_aws::testing::Sandbox;
use annex_aws::{Clients, DynamoStore};
use annex_core::ports::{
    Commit, Committed, Item, Key, Outage, Outgoing, QueueName, Store as _, When, Write,
};
use annex_core::testkit::ManualClock;
use annex_core::time::Timestamp;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use aws_smithy_runtime_api::client::http::SharedHttpClient;

/// A clock far ahead of the emulator's, so that its TTL removes nothing that is still alive in a test.
pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_secs(4_000_000_000)))
}

pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    pub(crate) tap: Tap,
    pub(crate) clients: Clients,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: DynamoStore,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let sandbox = Sandbox::new().await;
        let tap = Tap::new();
        let clients = sandbox.clients_over(tap.client()).await;
        let clock = clock();
        let (table, queues) = (sandbox.table.clone(), sandbox.queues.clone());
        let store = DynamoStore::new(&clients, table, queues, clock.clone());
        Self { sandbox, tap, clients, clock, store }
    }

    /// Another process of the same account, without a tap.
    pub(crate) fn other(&self) -> DynamoStore {
        let (table, queues) = (self.sandbox.table.clone(), self.sandbox.queues.clone());
        DynamoStore::new(&self.sandbox.clients, table, queues, self.clock.clone())
    }

    pub(crate) async fn write(&self, writes: Vec<Write>) -> Result<Committed, Outage> {
        self.store.commit(Commit { writes, ..Commit::default() }).await
    }

    pub(crate) async fn send(&self, sends: Vec<Outgoing>) -> Result<Committed, Outage> {
        self.store.commit(Commit { sends, ..Commit::default() }).await
    }

    pub(crate) async fn get(&self, key: &Key) -> Option<Item> {
        self.store.get(key).await.unwrap()
    }

    /// The names of the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.tap.take_seen().into_iter().map(|seen: Seen| seen.name).collect()
    }

    /// Receives all messages of a queue that are to be seen now.
    pub(crate) async fn receive(&self, url: &str) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let answer = self
                .sandbox
                .clients
                .sqs
                .receive_message()
                .queue_url(url)
                .max_number_of_messages(10)
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await
                .unwrap();
            match answer.messages {
                Some(messages) if !messages.is_empty() => all.extend(messages),
                _ => return all,
            }
        }
    }

    /// The bodies of all messages of a queue that are to be seen now, sorted.
    pub(crate) async fn bodies(&self, queue: QueueName) -> Vec<String> {
        let messages = self.receive(self.url(queue)).await;
        let mut bodies: Vec<String> =
            messages.into_iter().map(|message| message.body.unwrap_or_default()).collect();
        bodies.sort();
        bodies
    }

    pub(crate) fn url(&self, queue: QueueName) -> &str {
        &self.sandbox.queues.get(queue).unwrap().url
    }

    pub(crate) fn dead_letters_url(&self, queue: QueueName) -> &str {
        self.sandbox.queues.get(queue).unwrap().dead_letters_url.as_deref().unwrap()
    }
}

/// Clients without an emulator, over an HTTP client of the test's own. Nothing is read from the environment.
pub(crate) fn clients_of_nothing(client: SharedHttpClient) -> Clients {
    let keys = Credentials::new("test", "test", None, None, "test");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .endpoint_url("http://127.0.0.1:1")
        .http_client(client)
        .build();
    Clients::from_config(&config)
}

pub(crate) fn put(key: &Key, data: &[u8], when: When) -> Write {
    Write::Put { key: key.clone(), data: data.to_vec(), expires_at: None, when }
}

pub(crate) fn tally(key: &Key, add: &[(&str, i128)]) -> Write {
    let add = add.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    Write::Tally { key: key.clone(), data: b"new".to_vec(), add, expires_at: None }
}

pub(crate) fn message(queue: QueueName, body: &str) -> Outgoing {
    Outgoing { queue, body: body.to_owned(), delay: Duration::ZERO }
}

pub(crate) fn item(data: &[u8], revision: u64) -> Item {
    Item { data: data.to_vec(), counters: Default::default(), revision, expires_at: None }
}
