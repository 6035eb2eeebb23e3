//! Working on the messages of the dispatch and resume queues.

use std::time::Duration;

use futures_util::future::join_all;
use tracing::Instrument as _;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::json::Object;
use crate::limits;
use crate::org_errors;
use crate::orgs::{self, Standing};
use crate::ports::{Commit, Committed, Item, Message, Outage, Undone, When};
use crate::stored;

use super::compose::{Install, unknown_action};
use super::job::{Job, Start};
use super::payload::Payload;
use super::record::{Kind, Lease, Origin, Record, Status, id_of};
use super::run::{Claimed, Ran};
use super::settle::component;
use super::{Calls, log};

/// How a message came out.
pub(super) enum Worked {
    /// It needs no other look.
    Done,
    /// Somebody else works on it: look again then, it is nobody's fault.
    Later(Duration),
}

impl Calls {
    /// Works on the messages of a batch side by side, each of which waits for its own extension only, and names those
    /// that are not done.
    pub async fn work_batch(&self, batch: Vec<Message>) -> Vec<Undone> {
        let works = batch.into_iter().map(|message| self.work(message));
        join_all(works).await.into_iter().flatten().collect()
    }

    /// Works on one message of the dispatch or the resume queue. `Some`: it is not done and has to come back.
    ///
    /// A failing extension ends as a finished record and an error of the organization; only a fault of the platform
    /// itself brings the message back and, in the end, to the dead letters.
    pub async fn work(&self, message: Message) -> Option<Undone> {
        let job: Job = match serde_json::from_str(&message.body) {
            Ok(job) => job,
            Err(error) => {
                let fault = stored::fault(&error);
                tracing::error!(message.id, fault, "message is not a job");
                return Some(Undone { id: message.id, retry_after: None, counts: true });
            }
        };
        let span = job.span();
        let worked = self.work_on(job).instrument(span.clone()).await;
        let _span = span.entered();
        match worked {
            Ok(Worked::Done) => None,
            Ok(Worked::Later(after)) => {
                Some(Undone { id: message.id, retry_after: Some(after), counts: false })
            }
            Err(error) => {
                tracing::error!(source = ?error.source, "message could not be worked on: {error}");
                let after = Duration::from_secs(1 << message.receives.min(8));
                // A disk that is full is no reason to give a message up.
                Some(Undone {
                    id: message.id,
                    retry_after: Some(after),
                    counts: !error.write_refused,
                })
            }
        }
    }

    async fn work_on(&self, job: Job) -> Result<Worked, Outage> {
        match job {
            Job::Start(start) => self.start(*start).await,
            Job::Run { oid, id, slow_retries, abandoned } => {
                let key = crate::keys::invocation(oid, &id.hyphenated().to_string());
                self.resume(&key, slow_retries, abandoned).await
            }
            Job::Later(updates) => self.carry(&updates).await,
            Job::Now(updates) => self.update(&updates).await,
            Job::Erase { oid } => self.erase(oid).await.map(|()| Worked::Done),
            Job::Deliver { place, entry } => self.deliver_waiting(&place, entry.as_deref()).await,
        }
    }

    /// Whether an organization was deleted: what is queued for it ends silently, but for the event that tells its
    /// extensions.
    async fn is_deleted(&self, oid: Oid) -> Result<bool, Outage> {
        Ok(orgs::standing(&*self.ports().store, oid).await? != Standing::Live)
    }

    /// Makes an invocation from a message, and runs it.
    pub(super) async fn start(&self, start: Start) -> Result<Worked, Outage> {
        let Some(_slot) =
            self.inner.slots.take(&start.extension, limits::DELIVERIES_PER_EXTENSION_MAX)
        else {
            return Ok(Worked::Later(Duration::from_secs(1)));
        };
        let after_removal = match &start.kind {
            Kind::Event { event } => event == "unsubscribe",
            Kind::ErrorReport => true,
            Kind::Request { .. } => false,
        };
        if after_removal && orgs::is_closed(self.ports(), start.oid).await? {
            return Ok(Worked::Done);
        }
        let mut record = self.new_record(&start);
        let install = match self.admit(&mut record, &start).await {
            Ok(Some(install)) => install,
            Ok(None) => return Ok(Worked::Done),
            Err(fault) if matches!(fault.code, Code::Internal | Code::Unavailable) => {
                return Err(Outage {
                    write_refused: fault.code == Code::Unavailable,
                    ..Outage::new(fault.message)
                });
            }
            // An organization that is deleted has no subscription, so that nobody else pays for this look.
            Err(fault)
                if matches!(fault.code, Code::NotSubscribed | Code::NotFound)
                    && self.is_deleted(start.oid).await? =>
            {
                start.data.forget(self.ports()).await;
                return Ok(Worked::Done);
            }
            // An event that nobody is there for any more.
            Err(fault) if gone(&start.kind, &fault) => return Ok(Worked::Done),
            Err(fault) => return self.refuse(&record, &fault).await,
        };
        match self.claim(&record, When::Absent).await? {
            Committed::Done => self.run_started(record, 1, Some(install)).await,
            Committed::Lost { found, .. } => {
                let found = found.ok_or_else(|| Outage::new("a lost claim found nothing"))?;
                self.repeat(record, install, &found).await
            }
        }
    }

    fn new_record(&self, start: &Start) -> Record {
        let id = id_of(start.oid, &[&start.claim, start.extension.as_str()]);
        let ports = self.ports();
        Record {
            id,
            oid: start.oid,
            extension: start.extension.clone(),
            kind: start.kind.clone(),
            origin: start.origin,
            fingerprint: String::new(),
            key: start.key.clone().unwrap_or_else(|| id.hyphenated().to_string()),
            data: start.data.clone(),
            ident: start.ident.clone(),
            impersonator: None,
            level: start.level,
            depth: start.depth,
            secrets: start.secrets.clone(),
            trace: start.trace,
            replay_of: None,
            status: Status::Running,
            lease: Some(self.new_lease()),
            attempts: 0,
            slow_retries: 0,
            created_at: start.published_at.min(ports.clock.now()),
            ending: None,
        }
    }

    pub(super) fn new_lease(&self) -> Lease {
        let ports = self.ports();
        Lease { until: ports.clock.steady().plus(limits::LEASE), epoch: ports.store.epoch() }
    }

    /// Checks what a message asks for. `None`: it is not wanted, and nobody needs to know.
    async fn admit(&self, record: &mut Record, start: &Start) -> Outcome<Option<Install>> {
        let install = self.install(record).await?;
        match &start.kind {
            Kind::Event { event } => {
                let wanted = match &install.extension.definition.events {
                    Some(events) => events.contains(event),
                    None => install.schema.required_events.contains(event),
                };
                Ok(wanted.then_some(install))
            }
            Kind::ErrorReport => Ok(Some(install)),
            Kind::Request { action, .. } => {
                let schema = install.schema.action(action).ok_or_else(|| unknown_action(action))?;
                if schema.is_impersonated {
                    // Neither a rule nor a continuation has a user (LC-140).
                    return Err(no_user(action));
                }
                if start.origin != Origin::Continuation {
                    let ports = self.ports();
                    let text = start.data.load(ports, start.oid, &start.extension).await?;
                    let prepared = prepare(schema, text.as_bytes())?;
                    let until = record.created_at.plus(limits::RECORD_RETENTION);
                    record.data = Payload::plain(ports, prepared, until).await?;
                }
                Ok(Some(install))
            }
        }
    }

    /// Files a refusal that no caller waits for.
    async fn refuse(&self, record: &Record, fault: &Fault) -> Result<Worked, Outage> {
        let now = self.ports().clock.now();
        let component = component(&record.extension, record.kind.word());
        let mut commit = Commit::default();
        commit.writes.push(org_errors::write(record.oid, &component, &fault.message, now));
        if record.origin == Origin::Continuation && fault.code != Code::NotFound {
            let once = format!("{}#refused", record.id);
            commit.sends.push(self.report_message(record, &fault.message, &once));
        }
        self.ports().store.send_and_commit(commit).await?;
        log::refused(record, fault.code, now);
        Ok(Worked::Done)
    }

    async fn claim(&self, record: &Record, when: When) -> Result<Committed, Outage> {
        let commit = Commit { writes: vec![record.write(when)], ..Commit::default() };
        self.ports().store.commit(commit).await
    }

    async fn run_started(
        &self,
        record: Record,
        revision: u64,
        install: Option<Install>,
    ) -> Result<Worked, Outage> {
        match self.run(Claimed { record, revision, hold: None, install, slot: None }).await? {
            Ran::Stored(_) | Ran::Overtaken => Ok(Worked::Done),
        }
    }

    /// A message whose invocation exists: a redelivery, a second publish, or a call whose worker is gone.
    async fn repeat(
        &self,
        record: Record,
        install: Install,
        found: &Item,
    ) -> Result<Worked, Outage> {
        let standing = Record::read(found)?;
        let age = record.created_at.since(standing.created_at);
        if record.origin == Origin::Continuation && age > self.profile().dedupe {
            // Published again after the time in which a repeat is dropped: a call of its own (LC-084).
            return match self.claim(&record, When::Revision(found.revision)).await? {
                Committed::Done => {
                    self.run_started(record, found.revision + 1, Some(install)).await
                }
                Committed::Lost { .. } => Ok(Worked::Later(Duration::from_secs(1))),
            };
        }
        self.take_over(standing, found.revision).await
    }

    /// Runs an invocation that has its record, if that is still to be done.
    async fn resume(
        &self,
        key: &crate::ports::Key,
        slow_retries: u32,
        abandoned: Option<u64>,
    ) -> Result<Worked, Outage> {
        let Some(item) = self.ports().store.get(key).await? else {
            return Ok(Worked::Done);
        };
        let record = Record::read(&item)?;
        log::found(&record);
        if matches!(record.kind, Kind::Request { .. }) && self.is_deleted(record.oid).await? {
            return Ok(Worked::Done);
        }
        if record.status == Status::Waiting && record.slow_retries != slow_retries {
            return Ok(Worked::Done);
        }
        let Some(_slot) =
            self.inner.slots.take(&record.extension, limits::DELIVERIES_PER_EXTENSION_MAX)
        else {
            return Ok(Worked::Later(Duration::from_secs(1)));
        };
        if record.status == Status::Waiting {
            return self.lease_and_run(record, item.revision).await;
        }
        if record.status == Status::Running && abandoned == Some(item.revision) {
            return self.lease_and_run(record, item.revision).await;
        }
        self.take_over(record, item.revision).await
    }

    /// Takes a queued call, or one whose worker is gone, unless it has ended or somebody works on it.
    async fn take_over(&self, record: Record, revision: u64) -> Result<Worked, Outage> {
        let ports = self.ports();
        match record.status {
            // A waiting call has a message of its own.
            Status::Succeeded | Status::Failed | Status::Waiting => Ok(Worked::Done),
            Status::Queued => self.lease_and_run(record, revision).await,
            Status::Running if record.is_leased(ports.clock.steady(), ports.store.epoch()) => {
                let until = record.lease.map_or(ports.clock.steady(), |lease| lease.until);
                Ok(Worked::Later(until.since(ports.clock.steady()).max(Duration::from_secs(1))))
            }
            Status::Running => self.lease_and_run(record, revision).await,
        }
    }

    async fn lease_and_run(&self, mut record: Record, revision: u64) -> Result<Worked, Outage> {
        record.status = Status::Running;
        record.lease = Some(self.new_lease());
        match self.claim(&record, When::Revision(revision)).await? {
            Committed::Done => self.run_started(record, revision + 1, None).await,
            Committed::Lost { .. } => Ok(Worked::Later(Duration::from_secs(1))),
        }
    }
}

/// Whether what a platform message is for was removed meanwhile (LC-107).
fn gone(kind: &Kind, fault: &Fault) -> bool {
    !matches!(kind, Kind::Request { .. })
        && matches!(fault.code, Code::NotSubscribed | Code::NotFound)
}

/// Checks request data against its action's parameters, and applies the defaults (LC-002, LC-006, LC-141 to LC-145).
pub(super) fn prepare(schema: &crate::schema::ActionSchema, data: &[u8]) -> Outcome<String> {
    let invalid = |fault| Fault::new(Code::InvalidJson, format!("data: {fault}"));
    let text = crate::json::check(data).map_err(invalid)?;
    let object = Object::parse(text).map_err(invalid)?;
    let object = schema.prepare(object).map_err(|text| Fault::new(Code::SchemaRefused, text))?;
    Ok(object.to_json())
}

/// LC-136, LC-140.
pub(super) fn no_user(action: &str) -> Fault {
    Fault::new(
        Code::ImpersonationRefused,
        format!("action {action} is impersonated and the call has no user token"),
    )
}
