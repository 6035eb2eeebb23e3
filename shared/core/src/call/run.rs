//! Running a claimed call to its end, or to its next slow retry.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;
use uuid::Uuid;

use crate::delivery::answer::{Answer, Verdict};
use crate::delivery::retry;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::ExtensionName;
use crate::limits;
use crate::meter::Report;
use crate::org_errors;
use crate::ports::{Commit, Committed, Outage, Outgoing, QueueName, When};
use crate::redact::Redactor;
use crate::slots::Slot;

use super::compose::Install;
use super::deliver::{OnError, Rules};
use super::job::{Job, Start};
use super::log::{self, Spent};
use super::payload::Payload;
use super::record::{Ending, Kind, Origin, Record, Status};
use super::settle::{Effects, Settlement, component, settle};
use super::{Calls, Reply, install};

/// A call whose record this worker holds the lease of.
#[derive(Clone)]
pub struct Claimed {
    pub(super) record: Record,
    /// Revision of the record's item.
    pub(super) revision: u64,
    /// The message that comes back if this worker dies.
    pub(super) hold: Option<Uuid>,
    /// What was loaded when the call was accepted.
    pub(super) install: Option<Install>,
    /// Its place among the extension's calls, for as long as it runs.
    pub(super) slot: Option<Arc<Slot<ExtensionName>>>,
}

/// How far a run came.
pub(super) enum Ran {
    /// To the end, or to a slow retry: the record as it is stored now.
    Stored(Box<Record>),
    /// Another worker stored something else meanwhile.
    Overtaken,
}

impl Ran {
    /// What was stored by this run has its line in the log.
    fn logged(self, spent: Spent) -> Self {
        if let Self::Stored(record) = &self {
            log::ended(record, spent);
        }
        self
    }
}

/// What the attempts of a run came to.
struct Run {
    result: Result<(), Fault>,
    answer: Option<Answer>,
    reports: Vec<Report>,
    redactor: Redactor,
    /// Names of the secrets that the extension has.
    secrets: Vec<String>,
}

impl Run {
    fn refused(fault: Fault) -> Self {
        let redactor = Redactor::new(std::iter::empty());
        Self {
            result: Err(fault),
            answer: None,
            reports: Vec::new(),
            redactor,
            secrets: Vec::new(),
        }
    }
}

impl Calls {
    /// Runs a claimed call, and answers what its caller is told.
    pub async fn run_claimed(&self, claimed: Claimed) -> Result<Reply, Outage> {
        let span = claimed.record.span();
        self.run_and_reply(claimed).instrument(span).await
    }

    async fn run_and_reply(&self, claimed: Claimed) -> Result<Reply, Outage> {
        let key = claimed.record.item_key();
        match self.run(claimed).await? {
            Ran::Stored(record) => self.reply(&record).await,
            Ran::Overtaken => {
                let item = self.ports().store.get(&key).await?;
                let item =
                    item.ok_or_else(|| Outage::new("a running invocation's record is gone"))?;
                self.reply(&Record::read(&item)?).await
            }
        }
    }

    pub(super) async fn run(&self, claimed: Claimed) -> Result<Ran, Outage> {
        let Claimed { mut record, revision, hold, install, slot: _slot } = claimed;
        let mut spent = Spent::new(&record, self.ports().clock.now());
        let install = match install {
            Some(install) => Ok(install),
            None => self.install(&record).await,
        };
        let run = match install {
            Err(fault) => Run::refused(fault),
            Ok(install) => match self.compose(&record, &install).await {
                Err(fault) => Run::refused(fault),
                Ok(message) => {
                    let rules = Rules {
                        made: record.attempts,
                        on_error: OnError::Status,
                        timeout: self.profile().call_timeout,
                        trace: record.trace(),
                    };
                    let delivered = self.deliver(&install.extension, &message.json, rules).await;
                    spent.attempts = delivered.attempts.saturating_sub(record.attempts);
                    spent.delivery = delivered.latency;
                    record.attempts = delivered.attempts;
                    let (result, answer) = match delivered.verdict {
                        Verdict::RetryLater(fault, asked) if self.may_wait(&record) => {
                            tracing::debug!(code = fault.code.word(), "waits");
                            let ran = self.wait(record, revision, hold, asked).await?;
                            return Ok(ran.logged(spent));
                        }
                        Verdict::RetryLater(fault, _) => (Err(fault), None),
                        Verdict::Done(answer) => (Ok(()), Some(answer)),
                        Verdict::Failed(fault, answer) | Verdict::RetrySoon(fault, answer) => {
                            (Err(fault), answer)
                        }
                    };
                    let redactor = match &result {
                        Ok(()) => message.redactor(),
                        Err(_) => message.error_redactor(),
                    };
                    let names = message.secrets.into_keys();
                    let secrets = names.take(limits::MESSAGE_SECRETS_MAX).collect();
                    Run { result, answer, reports: delivered.reports, redactor, secrets }
                }
            },
        };
        // The platform's own troubles are not the call's end: it is run again when they are over.
        if let Err(fault) = &run.result
            && matches!(fault.code, Code::Internal | Code::Unavailable)
        {
            return Err(Outage::new(format!("call {} could not be prepared: {fault}", record.id)));
        }
        Ok(self.finish(record, revision, hold, run).await?.logged(spent))
    }

    /// Loads what the delivery of a record needs.
    pub(super) async fn install(&self, record: &Record) -> Outcome<Install> {
        let ports = self.ports();
        let extension = self.extension(&record.extension).await?;
        let found = install::subscription(ports, record.oid, &record.extension).await?;
        // A removed install still gets its `unsubscribe` event and what the platform has to report.
        let after_removal = match &record.kind {
            Kind::Event { event } => event == "unsubscribe",
            Kind::ErrorReport => true,
            Kind::Request { .. } => false,
        };
        let subscription = found
            .filter(|subscription| after_removal || subscription.removed_at.is_none())
            .ok_or_else(|| not_subscribed(&record.extension))?;
        let schema = self.fetch_schema(&extension).await?;
        Ok(Install { extension, subscription, schema })
    }

    fn may_wait(&self, record: &Record) -> bool {
        let waited = self.ports().clock.now().since(record.created_at);
        waited < self.inner.settings.slow_retry_window
    }

    /// Puts the call into the delay queue: the extension sheds load (LC-044, LC-045).
    async fn wait(
        &self,
        mut record: Record,
        revision: u64,
        hold: Option<Uuid>,
        asked: Option<Duration>,
    ) -> Result<Ran, Outage> {
        let delay = retry::slow_delay(record.slow_retries, asked);
        // What a 429 used up is not a fast attempt.
        record.attempts = record.attempts.saturating_sub(1);
        record.slow_retries += 1;
        record.status = Status::Waiting;
        record.lease = None;
        let job = Job::run(&record);
        let commit = Commit {
            writes: vec![record.write(When::Revision(revision))],
            sends: vec![send(QueueName::Resume, &job, delay)],
            released: hold.into_iter().collect(),
            ..Commit::default()
        };
        self.store(record, commit).await
    }

    /// Writes the end of a call and everything that follows from it. Where that is no single step, what follows goes out
    /// first: its keys derive from the call, so that a run after a crash adds nothing to it.
    async fn finish(
        &self,
        mut record: Record,
        revision: u64,
        hold: Option<Uuid>,
        run: Run,
    ) -> Result<Ran, Outage> {
        let now = self.ports().clock.now();
        let Settlement { result, effects } = settle(
            self.profile(),
            &record,
            run.result,
            run.answer,
            run.reports,
            &run.redactor,
            now,
        );
        record.lease = None;
        record.impersonator = None;
        record.status = if result.is_ok() { Status::Succeeded } else { Status::Failed };
        record.ending = Some(self.ending(&record, result).await?);
        let mut commit = Commit {
            writes: vec![record.write(When::Revision(revision))],
            released: hold.into_iter().collect(),
            ..Commit::default()
        };
        self.follow(&record, effects, run.secrets, &mut commit).await?;
        self.store(record, commit).await
    }

    async fn ending(
        &self,
        record: &Record,
        result: Result<String, Fault>,
    ) -> Result<Ending, Outage> {
        let ports = self.ports();
        let at = ports.clock.now();
        Ok(match result {
            Ok(data) => {
                let until = record.created_at.plus(limits::RECORD_RETENTION);
                let data = Some(Payload::plain(ports, data, until).await?);
                Ending { http: 200, data, error: None, code: None, at }
            }
            Err(fault) => Ending {
                http: fault.code.status(),
                data: None,
                error: Some(fault.message),
                code: Some(fault.code.word().to_owned()),
                at,
            },
        })
    }

    /// Adds to the commit what follows from a settlement.
    async fn follow(
        &self,
        record: &Record,
        effects: Effects,
        secrets: Vec<String>,
        commit: &mut Commit,
    ) -> Result<(), Outage> {
        let now = self.ports().clock.now();
        let component = component(&record.extension, record.kind.word());
        if let Some(error) = record.ending.as_ref().and_then(|ending| ending.error.as_deref()) {
            commit.writes.push(org_errors::write(record.oid, &component, error, now));
        }
        for (index, notice) in effects.notices.iter().enumerate() {
            // Two equal keys in one commit would be refused by the store.
            let write = org_errors::write(record.oid, &component, notice, now);
            if !commit.writes.iter().any(|other| same_key(other, &write)) {
                commit.writes.push(write);
            }
            if record.kind != Kind::ErrorReport {
                let once = format!("{}#{index}", record.id);
                commit.sends.push(self.report_message(record, notice, &once));
            }
        }
        for usage in effects.usage {
            let body = serde_json::to_string(&usage).expect("usage can be written as JSON");
            commit.sends.push(Outgoing { queue: QueueName::Meter, body, delay: Duration::ZERO });
        }
        let until = now.plus(limits::RECORD_RETENTION);
        for planned in effects.planned {
            let data =
                Payload::sealed(self.ports(), record.oid, &record.extension, &planned.state, until)
                    .await?;
            let start = Start {
                oid: record.oid,
                extension: record.extension.clone(),
                kind: Kind::Request { action: planned.action, investigation: String::new() },
                origin: Origin::Continuation,
                // Told apart by the call that asked as well: siblings share their key, and two of them may ask for
                // the same.
                claim: format!("continuation#{}#{}", record.id, planned.identity),
                key: Some(planned.key),
                data,
                ident: record.ident.clone(),
                level: planned.level,
                depth: record.depth,
                secrets: secrets.clone(),
                trace: Some(record.trace()),
                published_at: now,
            };
            commit.sends.push(send(QueueName::Resume, &Job::Start(Box::new(start)), planned.delay));
        }
        Ok(())
    }

    async fn store(&self, record: Record, commit: Commit) -> Result<Ran, Outage> {
        Ok(match self.ports().store.send_and_commit(commit).await? {
            Committed::Done => Ran::Stored(Box::new(record)),
            Committed::Lost { .. } => Ran::Overtaken,
        })
    }
}

fn same_key(one: &crate::ports::Write, other: &crate::ports::Write) -> bool {
    one.key() == other.key()
}

pub(super) fn not_subscribed(extension: &ExtensionName) -> Fault {
    Fault::new(
        Code::NotSubscribed,
        format!("organization is not subscribed to extension {extension}"),
    )
}

/// A message that carries a job.
pub(super) fn send(queue: QueueName, job: &Job, delay: Duration) -> Outgoing {
    let body = serde_json::to_string(job).expect("a job can be written as JSON");
    Outgoing { queue, body, delay }
}
