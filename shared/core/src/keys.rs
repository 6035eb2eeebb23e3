//! Where each entity lies in the store: the one place that knows the data model's keys.
//!
//! Every key of a tenant's data holds the tenant, and no two tenants share a partition. What grows with calls
//! (records, telemetry, usage) lies in partitions of its own, so that a busy tenant spreads.

use aws_lc_rs::digest::{SHA256, digest};
use uuid::Uuid;

use crate::ids::{ExtensionName, Oid};
use crate::ports::Key;
use crate::time::Timestamp;

mod scopes;

pub use self::scopes::*;

/// Shards of the index of an extension's installs.
pub const INSTALL_SHARDS: u32 = 16;

/// Minutes of a day: the daily update of an organization is due in one of them.
pub const SLOTS: u32 = 1440;

/// Hex SHA-256 over parts, each with its length, so that no two lists of parts collide.
pub fn digest_hex(parts: &[&[u8]]) -> String {
    hex::encode(digest_bytes(parts))
}

/// SHA-256 over parts, each with its length.
pub fn digest_bytes(parts: &[&[u8]]) -> [u8; 32] {
    let mut text = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, &text).as_ref());
    out
}

/// The id that belongs to parts: a UUID of version 8 (RFC 9562) of 122 bits of their SHA-256.
pub fn uuid_of(parts: &[&[u8]]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest_bytes(parts)[..16]);
    Uuid::new_v8(bytes)
}

fn tenant(oid: Oid) -> String {
    format!("{ALL_SETTINGS}{oid}")
}

/// The organization itself.
pub fn org(oid: Oid) -> Key {
    Key::new(tenant(oid), "org")
}

/// Partition that lists the organizations, sorted by oid.
pub const ORGS: &str = "orgs";

/// The organization in the list of all.
pub fn org_index(oid: Oid) -> Key {
    Key::new(ORGS, oid.to_string())
}

/// Partition of an organization's settings: keys, subscriptions, hive records, installation keys.
pub fn settings(oid: Oid) -> String {
    tenant(oid)
}

/// Prefix of every organization's [`settings`].
pub const ALL_SETTINGS: &str = "org#";

/// The organization of a partition of [`settings`].
pub fn org_of_settings(partition: &str) -> Option<Oid> {
    Oid::parse(partition.strip_prefix(ALL_SETTINGS)?).ok()
}

/// Prefix of API keys in [`settings`].
pub const API_KEYS: &str = "key#";

/// An API key, by the hex of its keyed hash.
pub fn api_key(oid: Oid, hash: &str) -> Key {
    Key::new(tenant(oid), format!("{API_KEYS}{hash}"))
}

/// Which organization an API key is of, by the hex of its keyed hash: for a sign-in that names no organization.
pub fn api_key_owner(hash: &str) -> Key {
    Key::new(format!("api-key#{hash}"), "owner")
}

/// Prefix of subscriptions in [`settings`].
pub const SUBSCRIPTIONS: &str = "sub#";

/// A subscription: the install of an extension in an organization.
pub fn subscription(oid: Oid, extension: &ExtensionName) -> Key {
    Key::new(tenant(oid), format!("{SUBSCRIPTIONS}{extension}"))
}

/// Prefix of all hives' records in [`settings`].
pub const HIVES: &str = "hive#";

/// Prefix of a hive's records in [`settings`].
pub fn hive_prefix(hive: &str) -> String {
    format!("{HIVES}{hive}#")
}

/// A hive record.
pub fn hive(oid: Oid, hive: &str, name: &str) -> Key {
    Key::new(tenant(oid), format!("{}{name}", hive_prefix(hive)))
}

/// Prefix of installation keys in [`settings`].
pub const INSTALLATION_KEYS: &str = "iid#";

/// An installation key.
pub fn installation_key(oid: Oid, iid: &str) -> Key {
    Key::new(tenant(oid), format!("{INSTALLATION_KEYS}{iid}"))
}

/// Partition of extension definitions, sorted by name.
pub const EXTENSIONS: &str = "extensions";

/// The definition of an extension.
pub fn definition(extension: &ExtensionName) -> Key {
    Key::new(EXTENSIONS, extension.as_str())
}

/// What an extension was last seen to advertise, and when.
pub fn advertised(extension: &ExtensionName) -> Key {
    Key::new("extension-events", extension.as_str())
}

/// The minute of the day in which an organization's daily update is due: the day spread evenly by organization.
pub fn slot(oid: Oid) -> u32 {
    let digest = digest_bytes(&[b"daily", oid.to_string().as_bytes()]);
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    number % SLOTS
}

/// A shard of the index of an extension's installs, sorted by slot and organization.
pub fn installs(extension: &ExtensionName, shard: u32) -> String {
    format!("installs#{extension}#{shard}")
}

/// First sort key of a slot in [`installs`].
pub fn slot_start(slot: u32) -> String {
    format!("{slot:04}#")
}

/// The entry of an install in the index of its extension.
pub fn install(extension: &ExtensionName, oid: Oid) -> Key {
    let shard = (oid.bits() % u128::from(INSTALL_SHARDS)) as u32;
    Key::new(installs(extension, shard), format!("{}{oid}", slot_start(slot(oid))))
}

/// Prefix of the partitions of all invocation records.
pub const ALL_INVOCATIONS: &str = "inv#";

/// Prefix of the partitions of an organization's invocation records.
pub fn invocations(oid: Oid) -> String {
    format!("{ALL_INVOCATIONS}{oid}#")
}

/// The slot and the organization of an entry of [`installs`], by its sort key.
pub fn read_install(sort: &str) -> Option<(u32, Oid)> {
    let (slot, oid) = sort.split_once('#')?;
    Some((slot.parse().ok()?, Oid::parse(oid).ok()?))
}

/// An invocation record.
pub fn invocation(oid: Oid, id: &str) -> Key {
    Key::new(format!("{}{id}", invocations(oid)), "record")
}

/// Partition of an organization's errors, sorted by component.
pub fn errors(oid: Oid) -> String {
    format!("errors#{oid}")
}

/// One debounced error: a component and what it says.
pub fn error(oid: Oid, component: &str, text: &str) -> Key {
    let digest = digest_hex(&[text.as_bytes()]);
    Key::new(errors(oid), format!("{component}#{}", &digest[..32]))
}

/// Partition of an organization's usage counters, sorted by hour and SKU.
pub fn usage(oid: Oid) -> String {
    format!("usage#{oid}")
}

/// Sort key of the first counter of an hour.
pub fn usage_hour(at: Timestamp) -> String {
    format!("{:012}#", at.hour().secs().max(0))
}

/// The counter of a SKU (`<extension>:<sku>`) in an hour.
pub fn usage_counter(oid: Oid, at: Timestamp, sku: &str) -> Key {
    Key::new(usage(oid), format!("{}{sku}", usage_hour(at)))
}

/// Partition of the marks of an organization's metric reports.
pub fn metered_reports(oid: Oid) -> String {
    format!("metered#{oid}")
}

/// Remembers that a metric report was recorded.
pub fn metered(oid: Oid, extension: &ExtensionName, key: &str) -> Key {
    let digest = digest_hex(&[key.as_bytes()]);
    Key::new(metered_reports(oid), format!("{extension}#{digest}"))
}

/// Prefix of the partitions of an organization's telemetry.
pub fn telemetry_days(oid: Oid) -> String {
    format!("telemetry#{oid}#")
}

/// Partition of an organization's telemetry of one day since the epoch, sorted by time.
pub fn telemetry(oid: Oid, day: i64) -> String {
    format!("{}{day}", telemetry_days(oid))
}

/// Sort key of the first event at a time.
pub fn event_start(at: Timestamp) -> String {
    format!("{:015}#", at.millis().max(0))
}

/// A telemetry event.
pub fn event(oid: Oid, at: Timestamp, id: &str) -> Key {
    Key::new(telemetry(oid, at.day()), format!("{}{id}", event_start(at)))
}

/// Prefix of the partitions of an organization's marks of deliveries to adapters.
pub fn event_posts(oid: Oid) -> String {
    format!("event-post#{oid}#")
}

/// Remembers a part of a webhook delivery to an adapter, by the caller's key of the delivery.
pub fn event_post(oid: Oid, adapter: &str, key: &str, part: usize) -> Key {
    let digest = digest_hex(&[adapter.as_bytes(), key.as_bytes()]);
    Key::new(format!("{}{digest}", event_posts(oid)), format!("{part:06}"))
}

/// How far the daily fan-out has come.
pub fn daily_cursor() -> Key {
    Key::new("daily", "cursor")
}

/// What shows whether a key ring is the one that the store's secrets were sealed with.
pub fn key_check() -> Key {
    Key::new("platform", "key-check")
}

/// The same for one key of the ring.
pub fn key_check_of(id: u32) -> Key {
    Key::new("platform", format!("key-check#{id}"))
}
