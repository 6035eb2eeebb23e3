//! A platform under a test clock, whose messages are worked on in the order in which they are due, and whose process may
//! die at any step.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;

use crate::call::{CallSettings, Calls};
use crate::capability::extensions::{self, CredentialsInput, ExtensionInput};
use crate::capability::id::{LockId, Slug};
use crate::capability::model::Session;
use crate::capability::sessions::{self, NewSession};
use crate::ids::Oid;
use crate::orgs;
use crate::ports::{
    Clock as _, Commit, Committed, Count, Counted, Item, Key, Message, Outage, Outbound, Page,
    Ports, Query, Scan, ScanPage, SendFault, Store, WebhookAnswer, WebhookRequest,
};
use crate::testkit::{FixedKeyring, Inline, ManualClock, MemoryBlobs, MemoryStore, SeededIds};
use crate::time::Timestamp;

/// When the tests begin.
pub(super) const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// A webhook that was received.
/// Added to the status of an answer whose body is too large.
pub(super) const LARGE: u16 = 1_000;

#[derive(Debug, Clone)]
pub(super) struct Got {
    /// Seconds after [`START`].
    pub(super) at: u64,
    pub(super) host: String,
    pub(super) authorization: Option<String>,
    pub(super) body: Value,
}

/// The endpoints of all extensions: by the first part of their host, what each answers from now on.
pub(super) struct Receivers {
    clock: Arc<ManualClock>,
    pub(super) got: Mutex<Vec<Got>>,
    /// Answers of hosts, in turn; without one the answer is 200. 0 is none in time, and from [`LARGE`] on it is a status
    /// with too large a body.
    pub(super) says: Mutex<Vec<(&'static str, u16)>>,
    /// A host that never answers.
    pub(super) hangs: Mutex<Option<&'static str>>,
}

#[async_trait]
impl Outbound for Receivers {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn send(&self, request: WebhookRequest) -> Result<WebhookAnswer, SendFault> {
        assert_eq!(request.timeout, Duration::from_secs(10));
        assert_eq!(request.response_bytes_max, 65_536);
        let host = request.url.strip_prefix("https://").unwrap().split('.').next().unwrap();
        let header = |name| request.headers.iter().find(|(known, _)| *known == name);
        self.got.lock().unwrap().push(Got {
            at: self.clock.steady().since(START).as_secs(),
            host: host.to_owned(),
            authorization: header("authorization").map(|(_, value)| value.clone()),
            body: serde_json::from_slice(&request.body).unwrap(),
        });
        if *self.hangs.lock().unwrap() == Some(host) {
            std::future::pending::<()>().await;
        }
        let status = {
            let mut says = self.says.lock().unwrap();
            let at = says.iter().position(|(known, _)| *known == host);
            at.map_or(200, |at| says.remove(at).1)
        };
        if status == 0 {
            return Err(SendFault::TimedOut(request.timeout));
        }
        if status >= LARGE {
            return Err(SendFault::TooLarge { status: status - LARGE, size: 65_537 });
        }
        Ok(WebhookAnswer { status, retry_after: None, body: Bytes::new() })
    }
}

/// A store in memory whose process may die before any of its commits, or, where messages are a step of their own,
/// between the writes and the messages of one.
pub(super) struct Mortal {
    pub(super) inner: Arc<MemoryStore>,
    is_atomic: bool,
    /// Steps until it dies.
    pub(super) fuse: Mutex<Option<usize>>,
    epoch: AtomicU64,
}

impl Mortal {
    fn step(&self) -> Result<(), Outage> {
        match self.fuse.lock().unwrap().as_mut() {
            None => Ok(()),
            Some(0) => Err(Outage::new("the process died")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// A new process on the same data.
    fn restart(&self) {
        *self.fuse.lock().unwrap() = None;
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    fn is_dead(&self) -> bool {
        *self.fuse.lock().unwrap() == Some(0)
    }
}

#[async_trait]
impl Store for Mortal {
    async fn get(&self, key: &Key) -> Result<Option<Item>, Outage> {
        self.inner.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Outage> {
        self.inner.query(query).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Outage> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed, Outage> {
        self.step()?;
        if self.is_atomic || commit.sends.is_empty() || commit.writes.is_empty() {
            return self.inner.commit(commit).await;
        }
        let sends = std::mem::take(&mut commit.sends);
        let committed = self.inner.commit(commit).await?;
        if committed == Committed::Done {
            self.step()?;
            self.inner.commit(Commit { sends, ..Commit::default() }).await?;
        }
        Ok(committed)
    }

    async fn count(&self, count: Count) -> Result<Counted, Outage> {
        self.inner.count(count).await
    }

    fn holds(&self) -> bool {
        self.is_atomic
    }

    fn atomic(&self) -> bool {
        self.is_atomic
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }
}

/// The platform.
pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: Arc<Mortal>,
    pub(super) receivers: Arc<Receivers>,
    pub(super) ports: Ports,
    pub(super) calls: Calls,
    pub(super) oid: Oid,
    /// Messages, and when they are due.
    waiting: Vec<(Timestamp, Message)>,
}

impl World {
    pub(super) async fn new(is_atomic: bool) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let inner = Arc::new(MemoryStore::new(clock.clone()));
        let epoch = AtomicU64::new(1);
        let store =
            Arc::new(Mortal { inner: inner.clone(), is_atomic, fuse: Mutex::default(), epoch });
        let receivers = Arc::new(Receivers {
            clock: clock.clone(),
            got: Mutex::default(),
            says: Mutex::default(),
            hangs: Mutex::default(),
        });
        let ports = Ports {
            store: store.clone(),
            dead_letters: inner,
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            keyring: Arc::new(FixedKeyring::new()),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(5)),
            outbound: receivers.clone(),
        };
        let calls = Calls::new(ports.clone(), Arc::new(Inline), CallSettings::default());
        let oid = orgs::create(&ports, "o", "", None).await.unwrap().oid;
        Self { clock, store, receivers, ports, calls, oid, waiting: Vec::new() }
    }

    pub(super) async fn register(&self, slug: &str, has_url: bool) {
        let password = Some("p4ssw0rd".to_owned());
        let input = ExtensionInput {
            contract: "chaster".to_owned(),
            name: slug.to_owned(),
            url: has_url.then(|| format!("https://{slug}.example/hook")),
            webhook: has_url.then(|| CredentialsInput { username: "annex".to_owned(), password }),
            platform_owned: None,
            description: None,
        };
        extensions::create(&self.ports, input).await.map(drop).unwrap();
    }

    pub(super) fn new_session(slug: &str) -> NewSession {
        NewSession { extension: Slug::parse(slug).unwrap(), has_keyholder: None, config: None }
    }

    pub(super) async fn install(&self, slug: &str, lock: &str) -> Session {
        let lock = LockId::parse(lock).unwrap();
        sessions::create(&self.ports, self.oid, &lock, Self::new_session(slug)).await.unwrap()
    }

    /// Takes over what was sent.
    pub(super) fn collect(&mut self) {
        let now = self.clock.steady();
        for sent in self.store.inner.take_sent() {
            let id = format!("m{}", self.waiting.len());
            let message = Message { id, body: sent.body, receives: 1 };
            self.waiting.push((now.plus(sent.delay), message));
        }
    }

    /// Works on the message that is due next, when it is; `false`: there is none. A process that dies meanwhile is
    /// followed by another, and its message comes back.
    pub(super) async fn turn(&mut self) -> bool {
        self.collect();
        let Some(at) = (0..self.waiting.len()).min_by_key(|at| self.waiting[*at].0) else {
            return false;
        };
        let (due, message) = self.waiting.remove(at);
        self.clock.advance(due.since(self.clock.steady()));
        let undone = self.calls.work(message.clone()).await;
        if self.store.is_dead() {
            self.store.restart();
        }
        if let Some(undone) = undone {
            let after = undone.retry_after.unwrap_or_default().max(Duration::from_millis(1));
            self.waiting.push((self.clock.steady().plus(after), message));
        }
        true
    }

    /// Works on everything, and all that follows.
    pub(super) async fn run(&mut self) {
        for _ in 0..10_000 {
            if !self.turn().await {
                return;
            }
        }
        panic!("messages never end");
    }

    /// The events that were received: seconds, host and event.
    pub(super) fn events(&self) -> Vec<String> {
        let got = self.receivers.got.lock().unwrap();
        let line =
            |got: &Got| format!("{} {} {}", got.at, got.host, got.body["event"].as_str().unwrap());
        got.iter().map(line).collect()
    }

    /// The entries that are left in outboxes.
    pub(super) fn left(&self) -> usize {
        let items = self.store.inner.items();
        items.keys().filter(|key| key.sort.starts_with(crate::keys::OUTBOX_ENTRIES)).count()
    }
}
