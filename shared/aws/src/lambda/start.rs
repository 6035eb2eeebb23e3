//! What a function is made of: settings, clients and ports, once per process.

use std::sync::Arc;

use annex_core::call::{CallSettings, Calls};
use annex_core::limits::{PARTNER_CALLS_MAX, WAIT_MAX};
use annex_core::ports::{Handler, Outage, Ports, QueueName, Store};
use annex_core::time::Timestamp;
use annex_egress::{Policy, SystemResolver, WebhookClient};
use annex_entropy::SystemIds;
use axum::Router;
use tokio::sync::OnceCell;

use super::fresh::Fresh;
use super::http::{Entry, Shelf};
use super::queue::Worker;
use super::settings::{REFUSALS_FILED_EVERY, Settings};
use super::{Error, direct, http, log, queue, schedule};
use crate::{
    Clients, DynamoStore, LambdaLauncher, QueueConsumer, S3Blobs, SecretKeyring, SqsDeadLetters,
    SystemClock,
};

/// Starts a function: reads its settings, and builds its clients and its store. Nothing is sent.
///
/// Fails where a setting is missing or wrong, and names it.
pub async fn start() -> Result<Lambda, Error> {
    log();
    let settings = Settings::from_env()?;
    // Boxed, as below: the futures of the SDK and of the runtime nest deeper than the compiler computes layouts.
    let clients = Box::pin(Clients::load()).await;
    let clock = Arc::new(SystemClock);
    let store = DynamoStore::new(&clients, &settings.table, settings.queues.clone(), clock);
    Ok(Lambda { settings, clients, store: Arc::new(store), keyring: OnceCell::new() })
}

/// A function that has started.
pub struct Lambda {
    settings: Settings,
    clients: Clients,
    store: Arc<DynamoStore>,
    /// Read where it is needed: a function without secrets does without the permission.
    keyring: OnceCell<Arc<SecretKeyring>>,
}

impl Lambda {
    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its items.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The life of calls, over all ports. Reads the key ring, and fails where it cannot be read.
    pub async fn calls(&self) -> Result<Calls, Error> {
        let policy = Policy {
            allow_private_networks: self.settings.allow_private_networks,
            extra_roots: Vec::new(),
        };
        let ports = Ports {
            store: self.store.clone(),
            dead_letters: Arc::new(SqsDeadLetters::new(
                &self.clients,
                self.settings.queues.clone(),
            )),
            blobs: Arc::new(self.blobs()),
            keyring: self.keyring().await?,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            outbound: Arc::new(WebhookClient::new(policy, Arc::new(SystemResolver::new()))?),
        };
        let launcher = LambdaLauncher::new(&self.clients, &self.settings.dispatch_function);
        let settings = CallSettings {
            slow_retry_window: self.settings.slow_retry_window,
            refusals_filed_every: REFUSALS_FILED_EVERY,
            check_within: Some(WAIT_MAX),
            // A function works on one call at a time.
            partner_calls: PARTNER_CALLS_MAX,
        };
        Ok(Calls::new(ports, Arc::new(launcher), settings))
    }

    /// Serves the batches of a queue until the process is ended.
    pub async fn run_queue(self, queue: QueueName, handler: Arc<dyn Handler>) -> Result<(), Error> {
        Box::pin(queue::run(self.worker(queue, handler))).await
    }

    /// Serves the batches of a queue, and calls that another function hands over, until the process is ended.
    pub async fn run_queue_and_calls(
        self,
        queue: QueueName,
        handler: Arc<dyn Handler>,
        calls: Calls,
    ) -> Result<(), Error> {
        Box::pin(direct::run(self.worker(queue, handler), calls)).await
    }

    /// Serves HTTP requests until the process is ended. The router is made for the first of them: only that may tell the
    /// public URL.
    pub async fn run_http<F>(self, make: F) -> Result<(), Error>
    where
        F: Fn(String) -> Router + Send + Sync + 'static,
    {
        let shelf =
            Shelf { blobs: self.blobs(), clock: Arc::new(SystemClock), ids: Arc::new(SystemIds) };
        let entry = Entry {
            make,
            shelf,
            fresh: self.fresh(),
            public_url: self.settings.public_url,
            router: OnceCell::new(),
        };
        Box::pin(http::run(entry)).await
    }

    /// Serves the events of a schedule until the process is ended: `tick` gets the moment that an event stands for, and
    /// answers how much it did.
    pub async fn run_schedule<F>(self, tick: F) -> Result<(), Error>
    where
        F: AsyncFn(Timestamp) -> Result<usize, Outage>,
    {
        Box::pin(schedule::run(Arc::new(SystemClock), self.fresh(), tick)).await
    }

    fn worker(&self, queue: QueueName, handler: Arc<dyn Handler>) -> Worker {
        let url = &self.settings.queues.get(queue).expect("settings have every queue").url;
        let consumer = QueueConsumer::new(&self.clients, url);
        Worker { handler, consumer, fresh: self.fresh() }
    }

    fn blobs(&self) -> S3Blobs {
        S3Blobs::new(&self.clients, &self.settings.bucket, Arc::new(SystemClock))
    }

    fn fresh(&self) -> Fresh {
        Fresh { keyring: self.keyring.get().cloned() }
    }

    async fn keyring(&self) -> Result<Arc<SecretKeyring>, Error> {
        let load = async || {
            let secret = &self.settings.keyring_secret;
            Box::pin(SecretKeyring::load(&self.clients, secret, Arc::new(SystemClock)))
                .await
                .map(Arc::new)
        };
        Ok(Arc::clone(self.keyring.get_or_try_init(load).await?))
    }
}
