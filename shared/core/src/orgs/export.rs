//! Everything that the platform keeps of an organization, a page at a time, for people and for other platforms.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::area_page;
use crate::auth::permission;
use crate::call::Calls;
use crate::cursor;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys::{self, Scoped};
use crate::limits::PAGE_ITEMS_MAX;
use crate::model::{ApiKey, Area, HiveData, HiveRecord, InstallationKey, Org, Subscription};
use crate::org_errors;
use crate::ports::{Item, Key, Outage, Ports};
use crate::stored;
use crate::time::Timestamp;

/// What a caller must hold in an organization to export it: the right to read each part of it.
pub const PERMISSIONS: &[&str] = &[
    permission::ORG_GET,
    permission::APIKEY_CTRL,
    permission::EXT_LIST,
    permission::EXT_CONF_GET,
    permission::SECRET_LIST,
    permission::DR_LIST,
    permission::CLOUDSENSOR_GET,
    permission::HIVE_GET,
    permission::IKEY_LIST,
    permission::ORG_ERRORS_GET,
    permission::USAGE_GET,
    permission::INSIGHT_EVT_GET,
    permission::INVOCATION_GET,
];

/// The parts of an organization that are exported, in order. Marks by which repeats are known are not: they tell nothing
/// that is not elsewhere.
const AREAS: &[Area] =
    &[Area::Settings, Area::Errors, Area::Usage, Area::Telemetry, Area::Invocations, Area::Scopes];

/// A page of an export. It may be empty while there is more: only `next` tells.
#[derive(Debug, Serialize)]
pub struct ExportPage {
    /// Objects whose member `type` says what they are.
    pub items: Vec<Box<RawValue>>,
    /// The cursor of the next page; `None`: that was all.
    pub next: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Cursor(Area, Option<String>);

impl Cursor {
    fn open(ports: &Ports, oid: Oid, text: &str) -> Outcome<Self> {
        cursor::open(ports, &["export", &oid.to_string()], text)
            .ok_or_else(|| Fault::new(Code::BadRequest, "cursor is not one of this export"))
    }

    fn seal(&self, ports: &Ports, oid: Oid) -> String {
        cursor::seal(ports, &["export", &oid.to_string()], self)
    }
}

/// A page of everything that is kept of an organization: itself, API keys without their hashes, subscriptions, hive
/// records (of sealed ones not the data), installation keys, errors, usage counters, telemetry, invocation records, locks
/// with their sessions, history, events and calls.
pub async fn export(calls: &Calls, oid: Oid, cursor: Option<&str>) -> Outcome<ExportPage> {
    let ports = calls.ports();
    super::get(ports, oid).await?;
    let Cursor(area, at) = match cursor {
        None | Some("") => Cursor(AREAS[0], None),
        Some(text) => Cursor::open(ports, oid, text)?,
    };
    let (found, next) = area_page(&*ports.store, oid, area, at, PAGE_ITEMS_MAX).await?;
    let mut items = Vec::with_capacity(found.len());
    for (key, item) in found {
        items.extend(entry(calls, oid, area, &key, &item).await?);
    }
    let next = match next {
        Some(at) => Some(Cursor(area, Some(at))),
        None => {
            let index = AREAS.iter().position(|known| *known == area);
            index.and_then(|index| AREAS.get(index + 1)).map(|area| Cursor(*area, None))
        }
    };
    Ok(ExportPage { items, next: next.map(|next| next.seal(ports, oid)) })
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    r#type: &'a str,
    #[serde(flatten)]
    entry: T,
}

fn tagged<T: Serialize>(kind: &str, entry: T) -> Result<Option<Box<RawValue>>, Outage> {
    to_raw_value(&Tagged { r#type: kind, entry })
        .map(Some)
        .map_err(|error| Outage::caused("an entry of an export cannot be written", error))
}

async fn entry(
    calls: &Calls,
    oid: Oid,
    area: Area,
    key: &Key,
    item: &Item,
) -> Outcome<Option<Box<RawValue>>> {
    let sort = key.sort.as_str();
    Ok(match area {
        Area::Settings => setting(oid, sort, item)?,
        Area::Errors => {
            let found = org_errors::read(sort, item)?;
            tagged(
                "error",
                json!({
                    "component": found.component, "error": found.error, "count": found.count.to_string(),
                    "first_seen": found.first_seen.to_string(), "last_seen": found.last_seen.to_string(),
                }),
            )?
        }
        Area::Usage => usage(sort, item)?,
        Area::Telemetry => {
            let text = std::str::from_utf8(&item.data).unwrap_or("null");
            let event: Box<RawValue> = serde_json::from_str(text)
                .map_err(|error| Outage::caused("an event cannot be read", error))?;
            tagged("event", Event { event })?
        }
        Area::Invocations => tagged("invocation", calls.exported(item).await?)?,
        Area::Scopes => scoped(key, item)?,
        Area::EventPosts | Area::Metered => None,
    })
}

#[derive(Serialize)]
struct Event {
    event: Box<RawValue>,
}

/// Something of a lock as it is stored, by where it lies. What waits to be delivered, and what counts against rates, is
/// gone within minutes, and is not exported.
fn scoped(key: &Key, item: &Item) -> Result<Option<Box<RawValue>>, Outage> {
    let kind = match keys::scoped(&key.partition, &key.sort) {
        Some((_, Scoped::Lock)) => "lock",
        Some((_, Scoped::Session(_))) => "session",
        Some((_, Scoped::Line)) => "history_line",
        Some((_, Scoped::Event)) => "lock_event",
        Some((_, Scoped::Call)) => "capability_call",
        Some((_, Scoped::Passing)) | None => return Ok(None),
    };
    let lock = keys::scoped(&key.partition, &key.sort).map(|(lock, _)| lock);
    let record: Box<RawValue> = stored::read(item, &key.sort)?;
    tagged(kind, Stored { lock, record })
}

#[derive(Serialize)]
struct Stored<'a> {
    lock: Option<&'a str>,
    record: Box<RawValue>,
}

fn usage(sort: &str, item: &Item) -> Result<Option<Box<RawValue>>, Outage> {
    let Some((hour, sku)) = sort.split_once('#') else { return Ok(None) };
    let hour = Timestamp::from_secs(hour.parse().unwrap_or(0));
    let value: i128 = item.counters.values().sum();
    tagged("usage", json!({"sku": sku, "hour": hour.to_string(), "value": value.to_string()}))
}

/// A setting, by what its sort key starts with.
fn setting(oid: Oid, sort: &str, item: &Item) -> Result<Option<Box<RawValue>>, Outage> {
    if sort == keys::org(oid).sort {
        let org: Org = stored::read(item, sort)?;
        return tagged(
            "organization",
            json!({
                "oid": org.oid, "name": org.name, "description": org.description,
                "created_at": org.created_at.to_string(),
            }),
        );
    }
    if sort.starts_with(keys::API_KEYS) {
        let key: ApiKey = stored::read(item, sort)?;
        return tagged(
            "api_key",
            json!({
                "name": key.name, "permissions": key.permissions, "created_by": key.created_by,
                "created_at": key.created_at.to_string(),
            }),
        );
    }
    if sort.starts_with(keys::SUBSCRIPTIONS) {
        let found: Subscription = stored::read(item, sort)?;
        return tagged(
            "subscription",
            json!({
                "extension": found.extension, "created_at": found.created_at.to_string(),
                "removed_at": found.removed_at.map(|at| at.to_string()),
            }),
        );
    }
    if sort.starts_with(keys::INSTALLATION_KEYS) {
        let key: InstallationKey = stored::read(item, sort)?;
        return tagged(
            "installation_key",
            json!({
                "iid": key.iid, "description": key.desc, "tags": key.tags,
                "created_at": key.created_at.to_string(),
            }),
        );
    }
    match sort.strip_prefix(keys::HIVES).and_then(|rest| rest.split_once('#')) {
        Some((hive, name)) => {
            tagged("hive_record", HiveEntry::new(hive, name, stored::read(item, sort)?))
        }
        None => tagged("other", json!({"key": sort})),
    }
}

#[derive(Serialize)]
struct HiveEntry<'a> {
    hive: &'a str,
    name: &'a str,
    /// `None` where it can hold secrets, and is not told.
    data: Option<Box<RawValue>>,
    redacted: bool,
    enabled: bool,
    tags: Vec<String>,
    comment: String,
    expiry: i64,
    etag: String,
    guid: String,
    created_at: String,
    created_by: String,
    last_mod: String,
    last_author: String,
}

impl<'a> HiveEntry<'a> {
    fn new(hive: &'a str, name: &'a str, record: HiveRecord) -> Self {
        let (data, redacted) = match record.data {
            HiveData::Plain(data) => (Some(data), false),
            HiveData::Sealed(_) => (None, true),
        };
        let user = record.user;
        Self {
            hive,
            name,
            data,
            redacted,
            enabled: user.enabled,
            tags: user.tags,
            comment: user.comment,
            expiry: user.expiry,
            etag: record.etag,
            guid: record.guid,
            created_at: record.created_at.to_string(),
            created_by: record.created_by,
            last_mod: record.last_mod.to_string(),
            last_author: record.last_author,
        }
    }
}
