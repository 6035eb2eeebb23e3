//! Reading and writing hive records.

use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{Hive, RULES, check_name, check_size};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{HIVE_PAGE_BYTES_MAX, HIVE_PAGE_RECORDS_MAX, RULES_PER_ORG_MAX};
use crate::model::{HiveData, HiveRecord, UserMetadata};
use crate::ports::{Commit, Committed, Item, Outage, Ports, Query, When, Write};
use crate::seal;
use crate::stored;
use crate::time::Timestamp;

/// Records the store is asked for at a time: they can be large.
const STORE_PAGE: usize = 16;

/// A record, its data opened.
#[derive(Clone)]
pub struct Record {
    /// The data: a JSON object, byte for byte as it was written.
    pub data: Zeroizing<String>,
    /// What the user set beside it.
    pub user: UserMetadata,
    /// A version of data and user metadata.
    pub etag: String,
    /// A UUID of the record.
    pub guid: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// When it was last changed.
    pub last_mod: Timestamp,
    /// Who changed it last.
    pub last_author: String,
}

/// What a write changes. What is `None` stays as it is.
#[derive(Clone, Default)]
pub struct Change {
    /// The data: the JSON text of an object that [`super::check`] accepted.
    pub data: Option<Zeroizing<String>>,
    /// The metadata, whole.
    pub user: Option<UserMetadata>,
    /// The version that is changed; any where it is `None`, and none yet where it is empty.
    pub etag: Option<String>,
}

/// The record, if there is a live one.
pub async fn get(ports: &Ports, oid: Oid, hive: &Hive, name: &str) -> Outcome<Option<Record>> {
    check_name(name)?;
    match load(ports, oid, hive, name).await? {
        Some((record, _)) => Ok(Some(opened(ports, oid, hive, name, record)?)),
        None => Ok(None),
    }
}

/// The record; a fault where there is none.
pub async fn require(ports: &Ports, oid: Oid, hive: &Hive, name: &str) -> Outcome<Record> {
    get(ports, oid, hive, name).await?.ok_or_else(|| not_found(name))
}

async fn load(
    ports: &Ports,
    oid: Oid,
    hive: &Hive,
    name: &str,
) -> Outcome<Option<(HiveRecord, Item)>> {
    stored::load(ports, &keys::hive(oid, hive.name, name)).await
}

/// A page of a listing.
#[derive(Clone, Default)]
pub struct Listing {
    /// Names and records, by name.
    pub records: Vec<(String, Record)>,
    /// The name after which the next page goes on; `None`: that was all.
    pub next: Option<String>,
}

/// Which records a page of a listing holds.
#[derive(Debug, Clone, Copy)]
pub struct Paging<'a> {
    /// Those whose name is after this; empty: from the start.
    pub after: &'a str,
    /// Those with a tag that starts with this; empty: all.
    pub tag: &'a str,
    /// At most so many, and at most [`HIVE_PAGE_RECORDS_MAX`].
    pub records_max: usize,
    /// At most so many bytes of data, and at most [`HIVE_PAGE_BYTES_MAX`]; the first record is there anyway.
    pub bytes_max: usize,
}

/// A page of the records of a hive, by name.
pub async fn list(ports: &Ports, oid: Oid, hive: &Hive, paging: Paging<'_>) -> Outcome<Listing> {
    let Paging { after, tag, .. } = paging;
    let limit = paging.records_max.clamp(1, HIVE_PAGE_RECORDS_MAX);
    let bytes_max = paging.bytes_max.min(HIVE_PAGE_BYTES_MAX);
    let prefix = keys::hive_prefix(hive.name);
    let mut query = Query::prefix(keys::settings(oid), &prefix);
    query.limit = STORE_PAGE;
    if !after.is_empty() {
        check_name(after)?;
        // The first key after a name: no name holds a control character.
        query.from = format!("{prefix}{after}\0");
    }
    let mut listing = Listing::default();
    let mut bytes = 0;
    loop {
        let page = ports.store.query(query.clone()).await?;
        for (sort, item) in page.items {
            let name = sort.strip_prefix(&prefix).unwrap_or(&sort);
            let record: HiveRecord = stored::read(&item, &sort)?;
            if !tag.is_empty() && !record.user.tags.iter().any(|held| held.starts_with(tag)) {
                continue;
            }
            let record = opened(ports, oid, hive, name, record)?;
            bytes += record.data.len();
            let full = limit <= listing.records.len() || bytes_max < bytes;
            if full && !listing.records.is_empty() {
                listing.next = listing.records.last().map(|(last, _)| last.clone());
                return Ok(listing);
            }
            listing.records.push((name.to_owned(), record));
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(listing),
        }
    }
}

/// Writes a record. The etag, where the change names one, must be that of the live record.
pub async fn set(
    ports: &Ports,
    oid: Oid,
    hive: &Hive,
    name: &str,
    change: Change,
    author: &str,
) -> Outcome<Record> {
    check_name(name)?;
    if let Some(data) = &change.data {
        check_size(data)?;
    }
    loop {
        let (before, when) = match load(ports, oid, hive, name).await? {
            Some((record, item)) => (Some(record), When::Revision(item.revision)),
            None => (None, When::Absent),
        };
        let now = ports.clock.now();
        let current = before.as_ref().map_or("", |record| record.etag.as_str());
        if change.etag.as_deref().is_some_and(|etag| etag != current) {
            return Err(etag_mismatch());
        }
        let before = before.map(|record| opened(ports, oid, hive, name, record)).transpose()?;
        if before.is_none() && *hive == *RULES {
            check_rules_left(ports, oid).await?;
        }
        let expiry = change.user.as_ref().map_or(0, |user| user.expiry);
        if expiry != 0 && expiry <= now.millis() {
            return Err(expired());
        }
        let record = changed(ports, before, &change, author, now).ok_or_else(|| not_found(name))?;
        let write = put(ports, oid, hive, name, &record, when);
        let commit = Commit { writes: vec![write], ..Commit::default() };
        if ports.store.commit(commit).await? == Committed::Done {
            return Ok(record);
        }
        // Somebody else wrote it meanwhile: with an etag this is lost now, else the later write stands.
    }
}

/// Refuses one more rule than an organization may have: each costs time for every event.
async fn check_rules_left(ports: &Ports, oid: Oid) -> Outcome<()> {
    let mut query = Query::prefix(keys::settings(oid), &keys::hive_prefix(RULES.name));
    let mut rules = 0;
    loop {
        let page = ports.store.query(query.clone()).await?;
        rules += page.items.len();
        if RULES_PER_ORG_MAX <= rules {
            let text = format!("an organization has at most {RULES_PER_ORG_MAX} rules");
            return Err(Fault::new(Code::BadRequest, text));
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(()),
        }
    }
}

/// The record after a change; `None` where metadata is to be set on nothing.
fn changed(
    ports: &Ports,
    before: Option<Record>,
    change: &Change,
    author: &str,
    now: Timestamp,
) -> Option<Record> {
    let mut record = match (before, &change.data) {
        (Some(before), _) => before,
        (None, Some(data)) => Record {
            data: data.clone(),
            user: UserMetadata::default(),
            etag: String::new(),
            guid: ports.ids.uuid().to_string(),
            created_at: now,
            created_by: author.to_owned(),
            last_mod: now,
            last_author: String::new(),
        },
        (None, None) => return None,
    };
    if let Some(data) = &change.data {
        record.data.clone_from(data);
    }
    if let Some(user) = &change.user {
        record.user.clone_from(user);
    }
    // Not a digest of the data: that would let whoever reads the metadata of a secret test guesses of its value.
    record.etag = ports.ids.uuid().simple().to_string();
    record.last_mod = now;
    record.last_author = author.to_owned();
    Some(record)
}

/// Removes a record.
pub async fn delete(ports: &Ports, oid: Oid, hive: &Hive, name: &str) -> Outcome<()> {
    check_name(name)?;
    let write = Write::Delete { key: keys::hive(oid, hive.name, name), when: When::Present };
    match ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await? {
        Committed::Done => Ok(()),
        Committed::Lost { .. } => Err(not_found(name)),
    }
}

/// Moves a record to a name that is free.
pub async fn rename(
    ports: &Ports,
    oid: Oid,
    hive: &Hive,
    name: &str,
    to: &str,
    author: &str,
) -> Outcome<Record> {
    check_name(name)?;
    check_name(to)?;
    let taken = || Fault::new(Code::Conflict, "there is a record of the new name already");
    if name == to {
        return Err(taken());
    }
    loop {
        let Some((record, item)) = load(ports, oid, hive, name).await? else {
            return Err(not_found(name));
        };
        let now = ports.clock.now();
        let before = opened(ports, oid, hive, name, record)?;
        let record =
            changed(ports, Some(before), &Change::default(), author, now).expect("it was there");
        let writes = vec![
            put(ports, oid, hive, to, &record, When::Absent),
            Write::Delete {
                key: keys::hive(oid, hive.name, name),
                when: When::Revision(item.revision),
            },
        ];
        match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
            Committed::Done => return Ok(record),
            Committed::Lost { index: 0, .. } => return Err(taken()),
            Committed::Lost { .. } => {}
        }
    }
}

fn put(ports: &Ports, oid: Oid, hive: &Hive, name: &str, record: &Record, when: When) -> Write {
    let data = if hive.sealed {
        let (oid, plain) = (oid.to_string(), record.data.as_bytes());
        let binding = [oid.as_str(), hive.name, name];
        HiveData::Sealed(seal::seal(ports.keyring.as_ref(), ports.ids.as_ref(), &binding, plain))
    } else {
        let raw = RawValue::from_string(record.data.as_str().to_owned());
        HiveData::Plain(raw.expect("the data of a record was checked to be JSON"))
    };
    let stored = HiveRecord {
        data,
        user: record.user.clone(),
        etag: record.etag.clone(),
        guid: record.guid.clone(),
        created_at: record.created_at,
        created_by: record.created_by.clone(),
        last_mod: record.last_mod,
        last_author: record.last_author.clone(),
    };
    Write::Put {
        key: keys::hive(oid, hive.name, name),
        data: stored::bytes(&stored),
        expires_at: (record.user.expiry != 0).then(|| Timestamp::from_millis(record.user.expiry)),
        when,
    }
}

/// The data of a record, opened where it is sealed.
pub(crate) fn open_data(
    ports: &Ports,
    oid: Oid,
    hive: &str,
    name: &str,
    data: &HiveData,
) -> Result<Zeroizing<String>, Outage> {
    match data {
        HiveData::Plain(raw) => Ok(Zeroizing::new(raw.get().to_owned())),
        HiveData::Sealed(sealed) => {
            let oid = oid.to_string();
            seal::open_text(ports.keyring.as_ref(), &[oid.as_str(), hive, name], sealed)
        }
    }
}

fn opened(
    ports: &Ports,
    oid: Oid,
    hive: &Hive,
    name: &str,
    record: HiveRecord,
) -> Result<Record, Outage> {
    let data = open_data(ports, oid, hive.name, name, &record.data)?;
    Ok(Record {
        data,
        user: record.user,
        etag: record.etag,
        guid: record.guid,
        created_at: record.created_at,
        created_by: record.created_by,
        last_mod: record.last_mod,
        last_author: record.last_author,
    })
}

/// Real clients look for the word at its start.
fn not_found(name: &str) -> Fault {
    Fault::new(
        Code::RecordNotFound,
        format!("lc_error_code:RECORD_NOT_FOUND - there is no record {name}"),
    )
}

fn etag_mismatch() -> Fault {
    Fault::new(
        Code::EtagMismatch,
        "lc_error_code:ETAG_MISMATCH - the record changed since the etag that the request names",
    )
}

fn expired() -> Fault {
    Fault::new(
        Code::BadRequest,
        "lc_error_code:INVALID_EXPIRY_TIME - expiry is in the past; it is in milliseconds",
    )
}
