//! Sessions: extensions installed on locks.
//!
//! **Invariant:** the lock's item lists its sessions, and making or removing one changes it under its revision. So an
//! extension has one session on a lock at most, and whoever changes a lock knows all of them.

use futures_util::future::try_join_all;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{SCOPE_PAGE_BYTES_MAX, SESSIONS_PER_LOCK_MAX};
use crate::orgs::{self, Standing};
use crate::ports::{Committed, Item, Key, Outage, Ports, Query, When, Write};
use crate::stored;

use super::extensions;
use super::history::{self, empty};
use super::id::{LockId, Slug};
use super::locks::{self, put_lock};
use super::message::Named;
use super::model::{Lock, LockStatus, Session, SessionPlace};
use super::outbox::{self, Change, Place, What};
use super::view::{LockView, SessionView};

/// A session to make.
#[derive(Debug)]
pub struct NewSession {
    /// The extension, which must be registered.
    pub extension: Slug,
    /// Whether somebody holds the lock's key; `None`: as it is, nobody on a new lock.
    pub has_keyholder: Option<bool>,
    /// A JSON object; `None`: an empty one.
    pub config: Option<Box<RawValue>>,
}

/// What of a session is changed: JSON objects, each whole.
#[derive(Debug, Default)]
pub struct Patch {
    /// The new `config`.
    pub config: Option<Box<RawValue>>,
    /// The new `data`.
    pub data: Option<Box<RawValue>>,
    /// The new `metadata`.
    pub metadata: Option<Box<RawValue>>,
}

/// Whether a text has the form of an id of a session or of a history line: 32 hexadecimal digits in lower case.
pub fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

pub(super) fn unknown(session: &str) -> Fault {
    let shown = &session[..session.floor_char_boundary(64)];
    Fault::new(Code::NotFound, format!("there is no session {shown}"))
}

/// The entries of the index of sessions by id, and by the status of their locks.
fn index(slug: &Slug, id: &str, status: LockStatus) -> [Key; 2] {
    [keys::session_place(slug, id), keys::session_of_status(slug, status, id)]
}

/// The indexes' entries of a session whose lock has any status: what its removal deletes.
pub(crate) fn all_indexes(slug: &Slug, id: &str) -> impl Iterator<Item = Key> {
    let of_status = LockStatus::ALL.iter().map(|at| keys::session_of_status(slug, *at, id));
    std::iter::once(keys::session_place(slug, id)).chain(of_status.collect::<Vec<_>>())
}

pub(super) fn put_index(key: Key, oid: Oid, lock: &LockId) -> Write {
    let data = stored::bytes(&SessionPlace { oid, lock: lock.clone() });
    Write::Put { key, data, expires_at: None, when: When::Always }
}

fn put(session: &Session, when: When) -> Write {
    let key = keys::session(session.oid, &session.lock, &session.extension);
    Write::Put { key, data: stored::bytes(session), expires_at: None, when }
}

#[derive(Serialize)]
struct Told<'a, T> {
    session: T,
    extension: Named<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gone<'a> {
    session_id: &'a str,
    lock: LockView<'a>,
}

/// Tells the extension of a session what became of it.
async fn tell<T: Serialize>(
    ports: &Ports,
    change: &mut Change,
    session: &Session,
    event: &str,
    shown: T,
) -> Result<(), Outage> {
    if outbox::receives(ports, &session.extension).await? {
        let told = Told { session: shown, extension: Named { slug: &session.extension } };
        let what = What::Event(format!("extension_session.{event}"));
        change.post(ports, place(session), what, outbox::raw(&told));
    }
    Ok(())
}

/// Where deliveries to a session go.
pub fn place(session: &Session) -> Place {
    Place { oid: session.oid, lock: session.lock.clone(), extension: session.extension.clone() }
}

/// Installs an extension on a lock, which is made where it is not there. A second session of an extension on a lock is
/// [`Code::Conflict`].
pub async fn create(
    ports: &Ports,
    oid: Oid,
    lock_id: &LockId,
    new: NewSession,
) -> Outcome<Session> {
    extensions::require(ports, &new.extension).await?;
    let now = ports.clock.now();
    let session = Session {
        id: ports.ids.uuid().simple().to_string(),
        oid,
        lock: lock_id.clone(),
        extension: new.extension,
        config: new.config.unwrap_or_else(empty),
        data: empty(),
        metadata: empty(),
        availability: Default::default(),
        created_at: now,
        updated_at: now,
    };
    loop {
        let (mut lock, when) = match locks::load(ports, oid, lock_id).await? {
            Some((lock, item)) => (lock, When::Revision(item.revision)),
            None => (Lock::new(false, now), When::Absent),
        };
        if lock.sessions.contains_key(&session.extension) {
            let text = format!("the extension {} is on this lock already", session.extension);
            return Err(Fault::new(Code::Conflict, text));
        }
        if SESSIONS_PER_LOCK_MAX <= lock.sessions.len() {
            let text = format!("a lock has at most {SESSIONS_PER_LOCK_MAX} sessions");
            return Err(Fault::new(Code::BadRequest, text));
        }
        lock.sessions.insert(session.extension.clone(), session.id.clone());
        let had_keyholder = lock.has_keyholder;
        lock.has_keyholder = new.has_keyholder.unwrap_or(lock.has_keyholder);
        lock.updated_at = now;
        let mut change = Change::of(put_lock(oid, lock_id, &lock, when));
        if when != When::Absent && lock.has_keyholder != had_keyholder {
            let line = locks::keyholder_line(ports, lock.has_keyholder);
            history::add(ports, &mut change, (oid, lock_id), &lock, &line).await?;
        }
        change.writes.push(put(&session, When::Always));
        let places = index(&session.extension, &session.id, lock.status);
        change.writes.extend(places.map(|key| put_index(key, oid, lock_id)));
        let shown = SessionView::new(&session, &lock);
        tell(ports, &mut change, &session, "created", shown).await?;
        if change.commit(ports).await? == Committed::Done {
            return Ok(session);
        }
        // Somebody else changed the lock meanwhile: look again. Each round, one of them gets through.
    }
}

/// The session of this id of an extension, and its item. What is not its own, and what is of an organization that was
/// deleted, is [`Code::NotFound`].
pub async fn find(ports: &Ports, slug: &Slug, id: &str) -> Outcome<(Session, Item)> {
    if !is_id(id) {
        return Err(unknown(id));
    }
    let key = keys::session_place(slug, id);
    let found = stored::recent(ports, &key, |_| true).await?.ok_or_else(|| unknown(id))?;
    let at: SessionPlace = stored::read(&found, &key.sort)?;
    if orgs::standing(&*ports.store, at.oid).await? != Standing::Live {
        return Err(unknown(id));
    }
    let session: Option<(Session, Item)> =
        stored::load(ports, &keys::session(at.oid, &at.lock, slug)).await?;
    session.filter(|(session, _)| session.id == id).ok_or_else(|| unknown(id))
}

/// The session of an extension on a lock; `None`: it has none.
pub async fn on_lock(
    ports: &Ports,
    oid: Oid,
    lock: &LockId,
    slug: &Slug,
) -> Outcome<Option<Session>> {
    let found = stored::load(ports, &keys::session(oid, lock, slug)).await?;
    Ok(found.map(|(session, _)| session))
}

/// All sessions of a lock, by extension.
pub async fn list(ports: &Ports, oid: Oid, lock: &LockId) -> Outcome<Vec<Session>> {
    let partition = keys::lock_partition(oid, lock);
    let found = stored::all(ports, &partition, keys::LOCK_SESSIONS).await?;
    Ok(found.into_iter().map(|(_, session)| session).collect())
}

/// Changes a session of an extension, and tells it. A patch that changes nothing is told as well.
pub async fn patch(ports: &Ports, slug: &Slug, id: &str, patch: Patch) -> Outcome<(Session, Lock)> {
    loop {
        let (mut session, item) = find(ports, slug, id).await?;
        let lock = locks::require(ports, session.oid, &session.lock).await?.0;
        for (part, new) in [
            (&mut session.config, &patch.config),
            (&mut session.data, &patch.data),
            (&mut session.metadata, &patch.metadata),
        ] {
            if let Some(new) = new {
                part.clone_from(new);
            }
        }
        session.updated_at = ports.clock.now();
        let mut change = Change::of(put(&session, When::Revision(item.revision)));
        let shown = SessionView::new(&session, &lock);
        tell(ports, &mut change, &session, "updated", shown).await?;
        if change.commit(ports).await? == Committed::Done {
            return Ok((session, lock));
        }
    }
}

/// Changes what an extension said of its capabilities on a lock, under the session's revision.
pub(super) async fn replace(ports: &Ports, session: &Session, item: &Item) -> Outcome<Committed> {
    let change = Change::of(put(session, When::Revision(item.revision)));
    Ok(change.commit(ports).await?)
}

/// Removes a session from a lock, and tells its extension. The lock stays, with its history.
pub async fn delete(ports: &Ports, oid: Oid, lock_id: &LockId, id: &str) -> Outcome<()> {
    loop {
        let (mut lock, item) = locks::require(ports, oid, lock_id).await?;
        let slug =
            lock.sessions.iter().find(|(_, known)| *known == id).map(|(slug, _)| slug.clone());
        let slug = slug.ok_or_else(|| unknown(id))?;
        let session = on_lock(ports, oid, lock_id, &slug).await?.ok_or_else(|| unknown(id))?;
        lock.sessions.remove(&slug);
        lock.updated_at = ports.clock.now();
        let mut change = Change::of(put_lock(oid, lock_id, &lock, When::Revision(item.revision)));
        let gone = std::iter::once(keys::session(oid, lock_id, &slug)).chain(index(
            &slug,
            id,
            lock.status,
        ));
        change.writes.extend(gone.map(|key| Write::Delete { key, when: When::Always }));
        let shown = Gone { session_id: id, lock: LockView::new(lock_id, &lock) };
        tell(ports, &mut change, &session, "deleted", shown).await?;
        if change.commit(ports).await? == Committed::Done {
            return Ok(());
        }
    }
}

/// Which sessions of an extension are wanted.
#[derive(Debug)]
pub struct Search {
    /// Those on locks of this status; `None`: of any.
    pub status: Option<LockStatus>,
    /// How many at most, at least 1.
    pub limit: usize,
    /// Those made before the one of this id; `None`: from the newest.
    pub before: Option<String>,
}

/// Sessions with their locks, newest first.
#[derive(Debug, Default)]
pub struct Found {
    /// The sessions.
    pub sessions: Vec<(Session, Lock)>,
    /// Whether there are more behind the last.
    pub has_more: bool,
}

/// The sessions of an extension that a search wants, newest first, over all organizations.
pub async fn search(ports: &Ports, slug: &Slug, search: Search) -> Outcome<Found> {
    let partition = match search.status {
        Some(status) => keys::sessions_of_status(slug, status),
        None => keys::sessions(slug),
    };
    let mut query = Query::prefix(partition, "");
    query.backward = true;
    query.to = search.before.unwrap_or_default();
    let (mut found, mut bytes) = (Found::default(), 0);
    loop {
        query.limit = search.limit - found.sessions.len() + 1;
        let page = ports.store.query(query.clone()).await?;
        let read = page.items.iter().map(async |(id, item)| entry(ports, slug, id, item).await);
        for (session, lock, size) in try_join_all(read).await?.into_iter().flatten() {
            let full = SCOPE_PAGE_BYTES_MAX < bytes + size && !found.sessions.is_empty();
            if search.limit <= found.sessions.len() || full {
                found.has_more = true;
                return Ok(found);
            }
            bytes += size;
            found.sessions.push((session, lock));
        }
        match page.next {
            Some(next) => query.to = next,
            None => return Ok(found),
        }
    }
}

/// What an entry of the index leads to, and its size; `None`: nothing any more.
async fn entry(
    ports: &Ports,
    slug: &Slug,
    id: &str,
    item: &Item,
) -> Outcome<Option<(Session, Lock, usize)>> {
    let at: SessionPlace = stored::read(item, id)?;
    if orgs::standing(&*ports.store, at.oid).await? != Standing::Live {
        return Ok(None);
    }
    let found: Option<(Session, Item)> =
        stored::load(ports, &keys::session(at.oid, &at.lock, slug)).await?;
    let Some((session, item)) = found.filter(|(session, _)| session.id == id) else {
        return Ok(None);
    };
    let lock = locks::load(ports, at.oid, &at.lock).await?;
    Ok(lock.map(|(lock, _)| (session, lock, item.data.len())))
}
