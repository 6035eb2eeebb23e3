//! An account of its own in an emulator of AWS, which `scripts/aws/with-emulator` runs beside a command.

use annex_core::limits::{LEASE, QUEUE_RECEIVES_MAX};
use annex_core::ports::QueueName;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    TimeToLiveSpecification,
};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;

use crate::{Clients, Queue, Queues};

/// The root key of a sandbox.
pub const ROOT_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Whether there is an emulator. Where not, says so in one line, so that a test can end; with `CI=true` that is a
/// failure.
///
/// # Panics
/// Where there is none, with `CI=true`.
pub fn is_available() -> bool {
    let is = |name, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("ANNEX_AWS_TESTS", "1") {
        return true;
    }
    assert!(!is("CI", "true"), "no AWS emulator (scripts/aws/with-emulator)");
    println!("skipped: no AWS emulator (scripts/aws/with-emulator)");
    false
}

/// A fresh account with what `template.yaml` makes: a table, queues with dead letters, a bucket, a key ring.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Clients of the account.
    pub clients: Clients,
    /// The table's name.
    pub table: String,
    /// The bucket's name.
    pub bucket: String,
    /// The name of the secret that holds the key ring: one key, [`ROOT_KEY`].
    pub secret: String,
    /// The queues.
    pub queues: Queues,
    account: String,
    config: SdkConfig,
}

impl Sandbox {
    /// Makes an account.
    ///
    /// # Panics
    /// Where the emulator does not do what it is asked.
    pub async fn new() -> Self {
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).expect("there are random numbers");
        let account = format!("{:012}", u64::from_le_bytes(random) % 1_000_000_000_000);
        let config = config(&account, None).await;
        let clients = Clients::from_config(&config);
        // The account is in the names too, for an emulator that keeps some service for all accounts together.
        let mut sandbox = Self {
            table: format!("annex-{account}"),
            bucket: format!("annex-{account}"),
            secret: format!("annex-{account}"),
            queues: Queues::default(),
            clients,
            account,
            config,
        };
        sandbox.create_table().await;
        sandbox.expire_items().await;
        sandbox.queues = Queues {
            dispatch: Some(sandbox.create_queue(QueueName::Dispatch).await),
            resume: Some(sandbox.create_queue(QueueName::Resume).await),
            meter: Some(sandbox.create_queue(QueueName::Meter).await),
        };
        let bucket = sandbox.clients.s3.create_bucket().bucket(&sandbox.bucket);
        bucket.send().await.expect("a bucket is made");
        let secret = sandbox.clients.secrets.create_secret().name(&sandbox.secret);
        let ring = format!("{{\"current\": 1, \"key-1\": \"{ROOT_KEY}\"}}");
        secret.secret_string(ring).send().await.expect("a secret is made");
        sandbox
    }

    /// Another world of the same account: a table without TTL, so that what has expired stays, and a bucket; its clients
    /// go over this HTTP client. The queues are shared.
    ///
    /// # Panics
    /// Where the emulator does not do what it is asked.
    pub async fn another(&self, name: &str, client: SharedHttpClient) -> Self {
        let config = config(&self.account, Some(client)).await;
        let clients = Clients::from_config(&config);
        let table = format!("{}-{name}", self.table);
        let bucket = format!("{}-{name}", self.bucket);
        let sandbox = Self { clients, table, bucket, config, ..self.clone() };
        sandbox.create_table().await;
        let bucket = sandbox.clients.s3.create_bucket().bucket(&sandbox.bucket);
        bucket.send().await.expect("a bucket is made");
        sandbox
    }

    /// The clients of another process of the account, over an HTTP client of its own.
    pub async fn clients_over(&self, client: SharedHttpClient) -> Clients {
        Clients::from_config(&config(&self.account, Some(client)).await)
    }

    /// The configuration of the account's clients.
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// The account's number, which is its access key id too.
    pub fn account(&self) -> &str {
        &self.account
    }

    async fn create_table(&self) {
        let key = |name: &str, kind| {
            let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
            key.expect("a key has a name and a type")
        };
        let text = |name: &str| {
            let text = AttributeDefinition::builder().attribute_name(name);
            text.attribute_type(ScalarAttributeType::S).build().expect("it has a name and a type")
        };
        let table = self.clients.dynamodb.create_table().table_name(&self.table);
        table
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(text("pk"))
            .attribute_definitions(text("sk"))
            .key_schema(key("pk", KeyType::Hash))
            .key_schema(key("sk", KeyType::Range))
            .send()
            .await
            .expect("a table is made");
    }

    async fn expire_items(&self) {
        let ttl = TimeToLiveSpecification::builder().attribute_name("expires_at").enabled(true);
        let table = self.clients.dynamodb.update_time_to_live().table_name(&self.table);
        table
            .time_to_live_specification(ttl.build().expect("it has a name"))
            .send()
            .await
            .expect("its TTL is set");
    }

    async fn create_queue(&self, queue: QueueName) -> Queue {
        let dead_letters_url = self.create(&format!("{}-dead-letters", queue.name()), None).await;
        let attributes = self
            .clients
            .sqs
            .get_queue_attributes()
            .queue_url(&dead_letters_url)
            .attribute_names(QueueAttributeName::QueueArn)
            .send()
            .await
            .expect("a queue has attributes");
        let arn = attributes.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
        let redrive = serde_json::json!({
            "deadLetterTargetArn": arn.expect("a queue has a name"),
            "maxReceiveCount": QUEUE_RECEIVES_MAX,
        });
        let url = self.create(queue.name(), Some(redrive.to_string())).await;
        Queue { url, dead_letters_url: Some(dead_letters_url) }
    }

    async fn create(&self, name: &str, redrive: Option<String>) -> String {
        let queue = self.clients.sqs.create_queue().queue_name(format!("{name}-{}", self.account));
        let queue = queue
            .attributes(QueueAttributeName::VisibilityTimeout, LEASE.as_secs().to_string())
            .attributes(QueueAttributeName::MessageRetentionPeriod, "1209600");
        let queue = match redrive {
            Some(policy) => queue.attributes(QueueAttributeName::RedrivePolicy, policy),
            None => queue,
        };
        let made = queue.send().await.expect("a queue is made");
        made.queue_url.expect("a queue has a URL")
    }
}

async fn config(account: &str, client: Option<SharedHttpClient>) -> SdkConfig {
    let keys = Credentials::new(account, "sandbox", None, None, "sandbox");
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::standard())
        .credentials_provider(keys);
    match client {
        Some(client) => loader.http_client(client).load().await,
        None => loader.load().await,
    }
}
