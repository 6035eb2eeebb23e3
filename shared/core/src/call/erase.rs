//! The job that removes the data of a deleted organization.
//!
//! Each message does one step: a page of items, and then the next message. How far it has come stands in the mark of the
//! organization and changes under its revision, in the commit that sends the next message. A message that comes twice
//! therefore either goes on from where the work stands, or loses to the other one; a crash repeats one step, and removing
//! is done once however often it is repeated.
//!
//! First the extensions are told. Their `unsubscribe` event needs the subscription, the configuration and its secrets, and
//! what was under way must not write again behind the removal, so the data stays for [`REMOVED_INSTALL_GRACE`], out of
//! everybody's reach.

use std::time::Duration;

use crate::capability::id::Slug;
use crate::capability::model::Session;
use crate::capability::sessions::all_indexes;
use crate::extensions;
use crate::fault::{Code, Fault};
use crate::ids::{ExtensionName, Oid};
use crate::keys::{self, Scoped};
use crate::limits::{COMMIT_WRITES_MAX, QUEUE_DELAY_MAX, REMOVED_INSTALL_GRACE};
use crate::model::{ApiKey, Area, Deletion, DeletionStep, Org, Subscription};
use crate::orgs::{api_key_names, area_page};
use crate::ports::{Commit, Item, Key, Outage, Outgoing, Query, QueueName, When, Write};
use crate::stored;

use super::Calls;
use super::job::Job;
use super::record::Record;
use super::run::send;

/// Subscriptions that one step ends.
const SUBSCRIPTIONS_PER_STEP: usize = 25;

/// Items that one step removes. A step must end well within the visibility of its message.
const ITEMS_PER_STEP: usize = 200;

impl Calls {
    /// The message that starts, and goes on with, the removal of a deleted organization's data.
    pub fn erase_message(&self, oid: Oid) -> Outgoing {
        send(QueueName::Resume, &Job::Erase { oid }, Duration::ZERO)
    }

    /// Does the next step for a deleted organization.
    pub(super) async fn erase(&self, oid: Oid) -> Result<(), Outage> {
        let ports = self.ports();
        let Some(item) = ports.store.get(&keys::org(oid)).await? else { return Ok(()) };
        let org: Org = stored::read(&item, "org")?;
        let Some(deletion) = org.deletion.clone() else { return Ok(()) };
        let mark = Mark { org, deletion, revision: item.revision };
        match mark.deletion.step {
            DeletionStep::Unsubscribe => self.unsubscribe_some(mark).await,
            DeletionStep::Grace => self.sit_out(mark).await,
            DeletionStep::Remove(area) => self.remove_some(mark, area).await,
        }
    }

    async fn unsubscribe_some(&self, mark: Mark) -> Result<(), Outage> {
        let ports = self.ports();
        let oid = mark.org.oid;
        let mut query = Query::prefix(keys::settings(oid), keys::SUBSCRIPTIONS);
        query.limit = SUBSCRIPTIONS_PER_STEP;
        if let Some(cursor) = &mark.deletion.cursor {
            query.from.clone_from(cursor);
        }
        let page = ports.store.query(query).await?;
        for (sort, item) in page.items {
            let found: Subscription = stored::read(&item, &sort)?;
            let by = &mark.deletion.by;
            match extensions::unsubscribe(ports, self, oid, &found.extension, by).await {
                // Already unsubscribed.
                Err(Fault { code: Code::NotFound, .. }) | Ok(()) => {}
                Err(fault) => {
                    let write_refused = fault.code == Code::Unavailable;
                    return Err(Outage { write_refused, ..Outage::new(fault.message) });
                }
            }
        }
        let step = match page.next {
            Some(_) => DeletionStep::Unsubscribe,
            None => DeletionStep::Grace,
        };
        self.go_on(mark, Vec::new(), step, page.next).await
    }

    async fn sit_out(&self, mark: Mark) -> Result<(), Outage> {
        let ports = self.ports();
        let left = mark.deletion.at.plus(REMOVED_INSTALL_GRACE).since(ports.clock.now());
        if left.is_zero() {
            return self.go_on(mark, Vec::new(), DeletionStep::Remove(Area::ALL[0]), None).await;
        }
        let job = Job::Erase { oid: mark.org.oid };
        let sends = vec![send(QueueName::Resume, &job, left.min(QUEUE_DELAY_MAX))];
        ports.store.commit(Commit { sends, ..Commit::default() }).await.map(|_| ())
    }

    async fn remove_some(&self, mark: Mark, area: Area) -> Result<(), Outage> {
        let ports = self.ports();
        let oid = mark.org.oid;
        let cursor = mark.deletion.cursor.clone();
        let (items, next) = area_page(&*ports.store, oid, area, cursor, ITEMS_PER_STEP).await?;
        let mut writes = Vec::new();
        for (key, item) in &items {
            if area == Area::Invocations {
                self.forget_payloads(item).await;
            }
            if *key != keys::org(oid) {
                writes.extend(removal(oid, key, item));
            }
        }
        // The last ones go together with the next message; it takes one write itself.
        while COMMIT_WRITES_MAX - 1 < writes.len() {
            let rest = writes.split_off(COMMIT_WRITES_MAX);
            ports.store.commit(Commit { writes, ..Commit::default() }).await?;
            writes = rest;
        }
        match (next, area.after()) {
            (Some(next), _) => {
                self.go_on(mark, writes, DeletionStep::Remove(area), Some(next)).await
            }
            (None, Some(area)) => self.go_on(mark, writes, DeletionStep::Remove(area), None).await,
            (None, None) => {
                let when = When::Revision(mark.revision);
                writes.push(Write::Delete { key: keys::org(oid), when });
                tracing::info!(%oid, "nothing is left of a deleted organization");
                ports.store.commit(Commit { writes, ..Commit::default() }).await.map(|_| ())
            }
        }
    }

    /// Removes what an invocation has in the blobs.
    async fn forget_payloads(&self, item: &Item) {
        // What cannot be read goes all the same; its payloads expire.
        let Ok(record) = Record::read(item) else { return };
        record.data.forget(self.ports()).await;
        if let Some(data) = record.ending.and_then(|ending| ending.data) {
            data.forget(self.ports()).await;
        }
    }

    /// Notes the next step and sends its message. Losing to another message of the same deletion is as good: that one
    /// goes on.
    async fn go_on(
        &self,
        mark: Mark,
        mut writes: Vec<Write>,
        step: DeletionStep,
        cursor: Option<String>,
    ) -> Result<(), Outage> {
        let Mark { mut org, deletion, revision } = mark;
        let key = keys::org(org.oid);
        let sends = vec![self.erase_message(org.oid)];
        org.deletion = Some(Deletion { step, cursor, ..deletion });
        let (data, when) = (stored::bytes(&org), When::Revision(revision));
        writes.push(Write::Put { key, data, expires_at: None, when });
        let commit = Commit { writes, sends, ..Commit::default() };
        self.ports().store.commit(commit).await.map(|_| ())
    }
}

/// The mark of a deleted organization.
struct Mark {
    org: Org,
    deletion: Deletion,
    revision: u64,
}

/// The writes that remove an item of an organization, and the entries of indexes that lead to it.
fn removal(oid: Oid, key: &Key, item: &Item) -> Vec<Write> {
    let delete = |key| Write::Delete { key, when: When::Always };
    let mut writes = vec![delete(key.clone())];
    if let Some((_, Scoped::Session(slug))) = keys::scoped(&key.partition, &key.sort)
        && let Ok(slug) = Slug::parse(slug)
        && let Ok(session) = stored::read::<Session>(item, &key.sort)
    {
        writes.extend(all_indexes(&slug, &session.id).map(delete));
    }
    if key.partition != keys::settings(oid) {
        return writes;
    }
    if let Some(hash) = key.sort.strip_prefix(keys::API_KEYS) {
        let entry: Option<ApiKey> = stored::read(item, &key.sort).ok();
        writes.extend(api_key_names(hash, entry.as_ref()).map(delete));
    }
    if let Some(name) = key.sort.strip_prefix(keys::SUBSCRIPTIONS)
        && let Ok(name) = ExtensionName::parse(name)
    {
        writes.push(delete(keys::install(&name, oid)));
    }
    writes
}
