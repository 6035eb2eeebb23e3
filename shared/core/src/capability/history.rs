//! The visible history of a lock: one line for each thing that people on it should know of.

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fault::Outcome;
use crate::ids::Oid;
use crate::keys;
use crate::limits::{HISTORY_RETENTION, LINES_SCANNED_MAX, PAGE_ITEMS_MAX, SCOPE_PAGE_BYTES_MAX};
use crate::ports::{Key, Outage, Ports, Query, When, Write};
use crate::stored;
use crate::time::Timestamp;

use super::id::{LockId, Slug};
use super::model::{Invoker, Lock};
use super::outbox::{self, Change, Place, What};

/// The namespace of lines whose type is one of the platform.
pub const DEFAULT_PREFIX: &str = "default";

/// A line of a lock's history, in the contract's own form: its `actionLog`, without the lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryLine {
    /// 32 hexadecimal digits, ordered by time.
    #[serde(rename = "_id")]
    pub id: String,
    /// What happened: a word of the platform, `custom`, or the type of an event.
    #[serde(rename = "type")]
    pub kind: String,
    /// A JSON object.
    pub payload: Box<RawValue>,
    /// Who did it.
    pub role: Role,
    /// The extension that did it, or through which it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<Slug>,
    /// For people; `%USER%` in it stands for who did it.
    pub title: String,
    /// For people.
    pub description: String,
    /// The name of an icon.
    #[serde(default)]
    pub icon: Option<String>,
    /// A color of the web.
    #[serde(default)]
    pub color: Option<String>,
    /// The namespace of the type: [`DEFAULT_PREFIX`], or the slug of the extension whose word it is.
    #[serde(default = "default_prefix")]
    pub prefix: String,
    /// When it happened.
    pub created_at: Timestamp,
}

fn default_prefix() -> String {
    DEFAULT_PREFIX.to_owned()
}

/// Who did what a line says, in the words of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The wearer.
    User,
    /// The keyholder.
    Keyholder,
    /// An extension.
    Extension,
    /// Somebody in the organization, or the platform.
    Admin,
}

impl Role {
    /// Reads a role; `wearer` and `user` are the same.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "wearer" | "user" => Some(Self::User),
            "keyholder" => Some(Self::Keyholder),
            "extension" => Some(Self::Extension),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}

impl From<Invoker> for Role {
    fn from(invoker: Invoker) -> Self {
        match invoker {
            Invoker::Wearer => Self::User,
            Invoker::Keyholder => Self::Keyholder,
            Invoker::Extension => Self::Extension,
        }
    }
}

impl HistoryLine {
    /// A line of the platform's own words, without a payload, by this extension or, without one, by the organization.
    pub fn new(ports: &Ports, kind: &str, title: &str, extension: Option<&Slug>) -> Self {
        Self {
            id: ports.ids.uuid().simple().to_string(),
            kind: kind.to_owned(),
            payload: empty(),
            role: if extension.is_some() { Role::Extension } else { Role::Admin },
            extension: extension.cloned(),
            title: title.to_owned(),
            description: String::new(),
            icon: None,
            color: None,
            prefix: default_prefix(),
            created_at: ports.clock.now(),
        }
    }

    /// The write that adds it to the history of a lock.
    pub fn write(&self, oid: Oid, lock: &LockId) -> Write {
        Write::Put {
            key: Key::new(keys::history(oid, lock), &*self.id),
            data: stored::bytes(self),
            expires_at: Some(self.created_at.plus(HISTORY_RETENTION)),
            when: When::Always,
        }
    }
}

/// `{}`
pub(super) fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

/// A line as the contract shows it.
#[derive(Serialize)]
pub struct ActionLog<'a> {
    #[serde(flatten)]
    line: Shown<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: &'a RawValue,
    lock: &'a LockId,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension: Option<&'a Slug>,
    title: &'a str,
    description: &'a str,
    color: Option<&'a str>,
    icon: Option<&'a str>,
    prefix: &'a str,
    created_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created<'a> {
    session_id: &'a str,
    action_log: ActionLog<'a>,
}

impl<'a> ActionLog<'a> {
    /// Of a line of this lock.
    pub fn new(lock: &'a LockId, line: &'a HistoryLine) -> Self {
        Self {
            line: Shown {
                id: &line.id,
                kind: &line.kind,
                payload: &line.payload,
                lock,
                role: line.role,
                extension: line.extension.as_ref(),
                title: &line.title,
                description: &line.description,
                color: line.color.as_deref(),
                icon: line.icon.as_deref(),
                prefix: &line.prefix,
                created_at: line.created_at.to_string(),
            },
        }
    }
}

/// Adds a line to the history of a lock, and tells the extensions on it, but for the one that did it, with
/// `action_log.created`.
pub async fn add(
    ports: &Ports,
    change: &mut Change,
    (oid, lock_id): (Oid, &LockId),
    lock: &Lock,
    line: &HistoryLine,
) -> Result<(), Outage> {
    change.writes.push(line.write(oid, lock_id));
    let others = lock.sessions.iter().filter(|(slug, _)| line.extension.as_ref() != Some(slug));
    let told = others.map(async |(slug, session)| {
        Ok::<_, Outage>(outbox::receives(ports, slug).await?.then_some((slug, session)))
    });
    for (slug, session_id) in try_join_all(told).await?.into_iter().flatten() {
        let place = Place { oid, lock: lock_id.clone(), extension: slug.clone() };
        let data = outbox::raw(&Created { session_id, action_log: ActionLog::new(lock_id, line) });
        change.post(ports, place, What::Event("action_log.created".to_owned()), data);
    }
    Ok(())
}

/// Which lines of a history are wanted.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Those of this role.
    pub role: Option<Role>,
    /// Those of this type.
    pub kind: Option<String>,
    /// Those of this extension.
    pub extension: Option<Slug>,
    /// Those before the line of this id; `None`: from the newest.
    pub before: Option<String>,
    /// How many at most, at least 1.
    pub limit: usize,
}

/// Lines, newest first.
#[derive(Debug, Default)]
pub struct Lines {
    /// The lines.
    pub lines: Vec<HistoryLine>,
    /// Where there is more: what [`Search::before`] goes on from. There may be no lines and yet more of them.
    pub next: Option<String>,
}

/// The lines of a lock's history that a search wants: one page, newest first.
pub async fn search(ports: &Ports, oid: Oid, lock: &LockId, search: Search) -> Outcome<Lines> {
    let mut query = Query::prefix(keys::history(oid, lock), "");
    query.backward = true;
    query.limit = (search.limit + 1).min(PAGE_ITEMS_MAX);
    query.to = search.before.unwrap_or_default();
    let (mut found, mut bytes, mut scanned) = (Lines::default(), 0, 0);
    loop {
        let page = ports.store.query(query.clone()).await?;
        for (sort, item) in page.items {
            let last = query.to.clone();
            if search.limit <= found.lines.len()
                || LINES_SCANNED_MAX <= scanned
                || (SCOPE_PAGE_BYTES_MAX < bytes && !found.lines.is_empty())
            {
                found.next = Some(last);
                return Ok(found);
            }
            let line: HistoryLine = stored::read(&item, &sort)?;
            query.to = sort;
            scanned += 1;
            let fits = search.role.is_none_or(|role| role == line.role)
                && search.kind.as_ref().is_none_or(|kind| *kind == line.kind)
                && search.extension.as_ref().is_none_or(|by| line.extension.as_ref() == Some(by));
            if fits {
                bytes += item.data.len();
                found.lines.push(line);
            }
        }
        match page.next {
            Some(next) => query.to = next,
            None => return Ok(found),
        }
    }
}
