//! The platform on one machine: the embedded adapters, a consumer for each queue, the schedule, and the HTTP entry.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use annex_core::call::{CallSettings, Calls};
use annex_core::limits;
use annex_core::ports::{Clock, Handler, Ports, QueueName};
use annex_core::telemetry::Telemetry;
use annex_egress::{CertificateDer, Policy, SystemResolver, WebhookClient};
use annex_embedded::{ConsumerOptions, Embedded, FileBlobs, Options, RootKeyring, SystemClock};
use annex_entropy::SystemIds;
use anyhow::Context as _;
use daily::Daily;
use dispatch::{Dispatch, InProcess};
use meter::Meter;
use resume::Resume;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{http, ring};

/// Deliveries that a queue has under way at a time; most of the time each waits for an extension.
const DELIVERIES_AT_ONCE: usize = 1_024;

/// How long running work is waited for at the end. What is not done by then is taken up again at the next start.
const DRAIN: Duration = Duration::from_secs(10);

/// How often what has expired is removed.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// How the platform runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The folder of everything that is kept.
    pub data: PathBuf,
    /// Whether extensions may live on private addresses, and on plain http on loopback.
    pub allow_private_networks: bool,
    /// The URL under which clients reach it, where that is not http and the address it listens on.
    pub public_url: Option<String>,
    /// How long calls are tried again that are answered 429, in hours.
    pub slow_retry_hours: u32,
    /// Calls of one capability extension that are under way at most.
    pub partner_calls: u16,
    /// How long telemetry is kept, in days.
    pub telemetry_days: u32,
    /// Certificates of authorities that are trusted beside the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

/// A running platform.
pub struct Platform {
    address: SocketAddr,
    store: Arc<Embedded>,
    calls: Calls,
    shutdown: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Platform {
    /// Starts everything; answers when it listens.
    pub async fn start(settings: Settings, keyring: RootKeyring) -> anyhow::Result<Self> {
        Self::start_with(settings, keyring, Arc::new(SystemClock::start())).await
    }

    /// Starts everything on this clock.
    pub async fn start_with(
        settings: Settings,
        keyring: RootKeyring,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let store = Embedded::open(&settings.data, Arc::clone(&clock), &Options::default())?;
        let blobs = Arc::new(FileBlobs::open(&settings.data.join("blobs"), Arc::clone(&clock))?);
        let policy = Policy {
            allow_private_networks: settings.allow_private_networks,
            extra_roots: settings.extra_roots,
        };
        let resolver = Arc::new(SystemResolver::new());
        let keyring = Arc::new(keyring);
        let ports = Ports {
            store: store.clone(),
            dead_letters: store.clone(),
            blobs: blobs.clone(),
            keyring: keyring.clone(),
            clock: Arc::clone(&clock),
            ids: Arc::new(SystemIds),
            outbound: Arc::new(WebhookClient::new(policy, resolver)?),
        };
        if !annex_core::key_check::is_same(&ports).await? {
            let data = settings.data.display();
            anyhow::bail!("the root key is not the one that the data in {data} was sealed with");
        }
        let window = Duration::from_secs(u64::from(settings.slow_retry_hours) * 3600);
        let call_settings = CallSettings {
            slow_retry_window: window,
            partner_calls: settings.partner_calls.into(),
            ..CallSettings::default()
        };
        let calls = Calls::new(ports.clone(), Arc::new(InProcess), call_settings);
        let retention = Duration::from_secs(u64::from(settings.telemetry_days) * 86_400);
        let telemetry = Telemetry::new(ports.clone(), calls.clone(), retention);

        let listener = tokio::net::TcpListener::bind(settings.listen)
            .await
            .with_context(|| format!("cannot listen on {}", settings.listen))?;
        let address = listener.local_addr().context("the address listened on")?;
        let public_url = settings.public_url.unwrap_or_else(|| format!("http://{address}"));
        let api_settings = api::Settings { public_url };
        let app = api::App {
            ports: ports.clone(),
            calls: calls.clone(),
            telemetry,
            settings: Arc::new(api_settings),
        };

        let (shutdown, stop) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(http::serve(listener, api::router(app), DRAIN, stop.clone()));
        let dispatch = Arc::new(Dispatch::new(calls.clone()));
        let resume = Arc::new(Resume::new(calls.clone()));
        let meter = Arc::new(Meter::new(store.clone()));
        let one_each =
            ConsumerOptions { batch_size: 1, batches_in_flight: DELIVERIES_AT_ONCE, drain: DRAIN };
        let batches = ConsumerOptions {
            batch_size: limits::QUEUE_BATCH_MAX,
            batches_in_flight: 4,
            drain: DRAIN,
        };
        let consumers: [(QueueName, Arc<dyn Handler>, ConsumerOptions); 3] = [
            (QueueName::Dispatch, dispatch, one_each.clone()),
            (QueueName::Resume, resume, one_each),
            (QueueName::Meter, meter, batches),
        ];
        for (queue, handler, options) in consumers {
            tasks.spawn(store.clone().consume(queue, handler, options, stop.clone()));
        }
        tasks.spawn(schedule(Daily::new(calls.clone()), Arc::clone(&clock), stop.clone()));
        tasks.spawn(ring::follow(keyring, ports, stop.clone()));
        tasks.spawn(sweep(blobs, clock, stop));
        Ok(Self { address, store, calls, shutdown, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its calls.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Its store.
    pub fn store(&self) -> &Arc<Embedded> {
        &self.store
    }

    /// Stops listening and taking messages, waits for what is under way, and closes the store.
    pub async fn stop(mut self) {
        // Nobody listens any more where all tasks have ended by themselves.
        let _ = self.shutdown.send(true);
        while self.tasks.join_next().await.is_some() {}
        let store = self.store;
        if tokio::task::spawn_blocking(move || store.close()).await.is_err() {
            tracing::error!("the store could not be closed cleanly");
        }
    }
}

/// Runs the daily fan-out at every full minute of the wall clock.
async fn schedule(daily: Daily, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
    loop {
        match daily.tick().await {
            Ok(0) => {}
            Ok(sent) => tracing::info!(sent, "daily updates sent"),
            Err(error) => {
                tracing::error!(source = ?error.source, "the daily update failed: {error}")
            }
        }
        let into_minute = clock.now().millis().rem_euclid(60_000);
        let rest = Duration::from_millis(u64::try_from(60_000 - into_minute).unwrap_or(60_000));
        tokio::select! {
            () = clock.sleep(rest) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Removes expired payloads from time to time. The store sweeps itself.
async fn sweep(blobs: Arc<FileBlobs>, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
    loop {
        if let Err(error) = blobs.sweep().await {
            tracing::error!(source = ?error.source, "expired payloads could not be removed: {error}");
        }
        tokio::select! {
            () = clock.sleep(SWEEP_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}
