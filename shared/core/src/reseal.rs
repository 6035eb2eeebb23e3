//! Sealing anew: after a rotation of the key ring, what an older key sealed is sealed with the current one, so that the
//! older one can be retired.
//!
//! The walk goes over everything that is sealed at rest, a page at a time, and can be broken off and repeated at any
//! point: each item is replaced whole, under its revision, by what opens to the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::call::Calls;
use crate::capability;
use crate::cursor;
use crate::extensions;
use crate::fault::{Code, Fault, Outcome};
use crate::hive;
use crate::key_check;
use crate::keys;
use crate::limits::PAGE_ITEMS_MAX;
use crate::model::{ApiKey, Definition, HiveRecord};
use crate::ports::{
    Commit, Committed, Item, Key, Outage, Ports, Query, QueueName, Scan, When, Write,
};
use crate::stored;

/// Dead letters of a queue that are looked at. There are few; more are looked at when these are gone.
const LETTERS_MAX: usize = 1_000;

/// What the cursor of a walk is bound to.
const CURSOR: &[&str] = &["reseal"];

/// What a walk does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Counts.
    Count,
    /// Seals anew.
    Seal,
}

/// What a page of the walk came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    /// The key that this process seals with.
    pub current: u32,
    /// Values that were sealed anew.
    pub resealed: u64,
    /// What other keys than the current one are still needed for, by their ids.
    pub remaining_by_key: BTreeMap<u32, u64>,
    /// Those of them that are API keys: each is hashed anew when it is used to sign in.
    pub api_keys_by_key: BTreeMap<u32, u64>,
    /// The cursor of the next page; `None`: that was all.
    pub next: Option<String>,
}

/// What is walked over, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Extensions,
    CapabilityExtensions,
    Organizations,
    Invocations,
    DeadLetters,
    KeyCheck,
}

impl Part {
    const fn after(self) -> Option<Self> {
        match self {
            Self::Extensions => Some(Self::CapabilityExtensions),
            Self::CapabilityExtensions => Some(Self::Organizations),
            Self::Organizations => Some(Self::Invocations),
            Self::Invocations => Some(Self::DeadLetters),
            Self::DeadLetters => Some(Self::KeyCheck),
            Self::KeyCheck => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Cursor(Part, Option<String>);

/// What is to be done about a sealed value.
pub(crate) enum Due {
    /// Nothing: the current key sealed it, or it is not sealed.
    Nothing,
    /// It stays sealed with this key for now.
    Stays(u32),
    /// It is written anew.
    Write(Box<Write>),
    /// It was sealed anew where it lies.
    Done,
}

/// Does a page of the walk.
pub async fn page(calls: &Calls, cursor: Option<&str>, mode: Mode) -> Outcome<Page> {
    let ports = calls.ports();
    let bad = || Fault::new(Code::BadRequest, "cursor is not one of a reseal");
    let Cursor(part, at) = match cursor {
        None | Some("") => Cursor(Part::Extensions, None),
        Some(text) => cursor::open(ports, CURSOR, text).ok_or_else(bad)?,
    };
    let mut page = Page { current: ports.keyring.current(), ..Page::default() };
    let next = match part {
        Part::Extensions | Part::CapabilityExtensions | Part::Organizations | Part::Invocations => {
            let (items, next) = items(ports, part, at).await?;
            for (key, item) in items {
                visit(calls, &mut page, part, &key, item, mode).await?;
            }
            next
        }
        Part::DeadLetters => {
            letters(calls, &mut page).await?;
            None
        }
        Part::KeyCheck => {
            if mode == Mode::Seal {
                page.resealed += u64::from(key_check::reseal(ports).await?);
            }
            page.count(key_check::sealed_with(ports).await?);
            None
        }
    };
    let next = match next {
        Some(at) => Some(Cursor(part, Some(at))),
        None => part.after().map(|part| Cursor(part, None)),
    };
    page.next = next.map(|next| cursor::seal(ports, CURSOR, &next));
    Ok(page)
}

impl Page {
    fn count(&mut self, key: Option<u32>) {
        if let Some(key) = key.filter(|key| *key != self.current) {
            *self.remaining_by_key.entry(key).or_default() += 1;
        }
    }
}

async fn items(
    ports: &Ports,
    part: Part,
    cursor: Option<String>,
) -> Result<(Vec<(Key, Item)>, Option<String>), Outage> {
    let prefix = match part {
        Part::Organizations => keys::ALL_SETTINGS,
        Part::Invocations => keys::ALL_INVOCATIONS,
        Part::Extensions | Part::CapabilityExtensions | Part::DeadLetters | Part::KeyCheck => {
            let partition = match part {
                Part::CapabilityExtensions => keys::CAPABILITY_EXTENSIONS,
                _ => keys::EXTENSIONS,
            };
            let query = Query { from: cursor.unwrap_or_default(), ..Query::prefix(partition, "") };
            let page = ports.store.query(query).await?;
            let key = |(sort, item)| (Key::new(partition, sort), item);
            return Ok((page.items.into_iter().map(key).collect(), page.next));
        }
    };
    let scan = Scan { prefix: prefix.to_owned(), cursor, limit: PAGE_ITEMS_MAX };
    let page = ports.store.scan(scan).await?;
    Ok((page.items, page.next))
}

/// Looks at an item, and seals it anew where that is to be done. Somebody who writes it meanwhile wins: it is looked at
/// again.
async fn visit(
    calls: &Calls,
    page: &mut Page,
    part: Part,
    key: &Key,
    mut item: Item,
    mode: Mode,
) -> Result<(), Outage> {
    let ports = calls.ports();
    loop {
        match due(calls, page, part, key, &item, mode).await? {
            Due::Nothing => return Ok(()),
            Due::Stays(with) => {
                page.count(Some(with));
                return Ok(());
            }
            Due::Done => {
                page.resealed += 1;
                return Ok(());
            }
            Due::Write(write) => {
                let commit = Commit { writes: vec![*write], ..Commit::default() };
                match ports.store.commit(commit).await? {
                    Committed::Done => {
                        page.resealed += 1;
                        return Ok(());
                    }
                    Committed::Lost { found: Some(found), .. } => item = found,
                    Committed::Lost { found: None, .. } => return Ok(()),
                }
            }
        }
    }
}

async fn due(
    calls: &Calls,
    page: &mut Page,
    part: Part,
    key: &Key,
    item: &Item,
    mode: Mode,
) -> Result<Due, Outage> {
    match part {
        Part::Extensions => definition(calls.ports(), key, item, mode),
        Part::CapabilityExtensions => webhook(calls.ports(), key, item, mode),
        Part::Organizations => setting(calls.ports(), page, key, item, mode),
        Part::Invocations => calls.reseal_record(item, mode).await,
        Part::DeadLetters | Part::KeyCheck => Ok(Due::Nothing),
    }
}

fn definition(ports: &Ports, key: &Key, item: &Item, mode: Mode) -> Result<Due, Outage> {
    let definition: Definition = stored::read(item, &key.sort)?;
    let current = ports.keyring.current();
    let previous = definition.previous_secret.as_ref().map(|previous| &previous.secret);
    let mut secrets = [Some(&definition.secret), previous].into_iter().flatten();
    let with = secrets.find_map(|sealed| sealed.key_id().filter(|with| *with != current));
    decide(ports, with, mode, || {
        let new = extensions::resealed(ports, &definition)?;
        Ok(new.map(|new| replace(key, item, stored::bytes(&new))))
    })
}

/// The password of a capability extension.
fn webhook(ports: &Ports, key: &Key, item: &Item, mode: Mode) -> Result<Due, Outage> {
    let extension: capability::model::Extension = stored::read(item, &key.sort)?;
    let password = extension.webhook.as_ref().map(|credentials| &credentials.password);
    decide(ports, password.and_then(|sealed| sealed.key_id()), mode, || {
        let new = capability::extensions::resealed(ports, &extension)?;
        Ok(new.map(|new| replace(key, item, stored::bytes(&new))))
    })
}

/// A hive record, or an API key, which is only counted.
fn setting(
    ports: &Ports,
    page: &mut Page,
    key: &Key,
    item: &Item,
    mode: Mode,
) -> Result<Due, Outage> {
    if key.sort.starts_with(keys::API_KEYS) {
        let entry: ApiKey = stored::read(item, &key.sort)?;
        let found_with = [entry.hashed_with, entry.found_with()];
        if found_with.contains(&page.current) {
            return Ok(Due::Nothing);
        }
        *page.api_keys_by_key.entry(entry.found_with()).or_default() += 1;
        return Ok(Due::Stays(entry.found_with()));
    }
    let named = key.sort.strip_prefix(keys::HIVES).and_then(|rest| rest.split_once('#'));
    let oid = keys::org_of_settings(&key.partition);
    let (Some((hive, name)), Some(oid)) = (named, oid) else { return Ok(Due::Nothing) };
    let record: HiveRecord = stored::read(item, &key.sort)?;
    decide(ports, hive::sealed_with(&record), mode, || {
        let new = hive::resealed(ports, oid, hive, name, &record)?;
        Ok(new.map(|new| replace(key, item, stored::bytes(&new))))
    })
}

/// What is to be done about a value that `with` sealed. One that does not open is left as it is, and named in the log.
pub(crate) fn decide(
    ports: &Ports,
    with: Option<u32>,
    mode: Mode,
    anew: impl FnOnce() -> Result<Option<Write>, Outage>,
) -> Result<Due, Outage> {
    let Some(with) = with.filter(|with| *with != ports.keyring.current()) else {
        return Ok(Due::Nothing);
    };
    if mode == Mode::Count {
        return Ok(Due::Stays(with));
    }
    match anew() {
        Ok(Some(write)) => Ok(Due::Write(Box::new(write))),
        Ok(None) => Ok(Due::Nothing),
        Err(outage) => {
            tracing::error!(key = with, "a sealed value cannot be sealed anew: {outage}");
            Ok(Due::Stays(with))
        }
    }
}

fn replace(key: &Key, item: &Item, data: Vec<u8>) -> Write {
    let when = When::Revision(item.revision);
    Write::Put { key: key.clone(), data, expires_at: item.expires_at, when }
}

/// Counts what dead letters carry sealed: they can be put back, and cannot be changed.
async fn letters(calls: &Calls, page: &mut Page) -> Result<(), Outage> {
    for &queue in QueueName::ALL {
        for letter in calls.ports().dead_letters.list(queue, LETTERS_MAX).await? {
            page.count(calls.sealed_in_message(queue, &letter.body).await);
        }
    }
    Ok(())
}
