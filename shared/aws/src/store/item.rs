//! How an item lies in the table.

use std::collections::{BTreeMap, HashMap};

use annex_core::limits::COUNTER_MAX;
use annex_core::ports::{Item, Key, Outage, When};
use annex_core::time::Timestamp;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

/// Attributes of an item, as DynamoDB gives and takes them.
pub(super) type Attributes = HashMap<String, AttributeValue>;

/// Partition key.
pub(super) const PK: &str = "pk";
/// Sort key.
pub(super) const SK: &str = "sk";
/// The item's bytes.
pub(super) const DATA: &str = "data";
/// Its revision.
pub(super) const REV: &str = "rev";
/// For DynamoDB's TTL: seconds since the epoch, rounded up, so that nothing is removed early.
pub(super) const EXPIRES_AT: &str = "expires_at";
/// What reads and conditions go by: milliseconds since the epoch.
pub(super) const EXPIRES_MS: &str = "expires_ms";
/// Who wrote it last: tells a request that is sent again from one that somebody else was faster than.
pub(super) const WRITER: &str = "w";
/// There where there are counters, which a put must drop and cannot name.
pub(super) const TALLIED: &str = "t";
/// What a counter's attribute starts with.
const COUNTER: &str = "c_";

/// What tells the writes of one commit from those of all others.
pub(super) type Writer = [u8; 8];

/// An item of the table, live or expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) item: Item,
    pub(super) writer: Option<Writer>,
}

impl Stored {
    /// Reads an item's attributes.
    pub(super) fn read(mut attributes: Attributes) -> Result<Self, Outage> {
        let data = match attributes.remove(DATA) {
            Some(AttributeValue::B(data)) => data.into_inner(),
            _ => return Err(broken(DATA)),
        };
        let revision = number(attributes.get(REV)).ok_or_else(|| broken(REV))?;
        let expires_at = match attributes.get(EXPIRES_MS) {
            None => None,
            found => Some(number(found).ok_or_else(|| broken(EXPIRES_MS))?),
        };
        let writer = match attributes.get(WRITER) {
            Some(AttributeValue::B(writer)) => writer.as_ref().try_into().ok(),
            _ => None,
        };
        let mut counters = BTreeMap::new();
        for (name, value) in attributes {
            if let Some(name) = name.strip_prefix(COUNTER) {
                let value = number(Some(&value)).ok_or_else(|| broken(name))?;
                counters.insert(name.to_owned(), value);
            }
        }
        let expires_at = expires_at.map(Timestamp::from_millis);
        Ok(Self { item: Item { data, counters, revision, expires_at }, writer })
    }

    /// The item where it is live at that time.
    pub(super) fn live(&self, now: Timestamp) -> Option<&Item> {
        Some(&self.item).filter(|item| is_live(item, now))
    }
}

/// Whether an item has not expired at that time.
pub(super) fn is_live(item: &Item, now: Timestamp) -> bool {
    item.expires_at.is_none_or(|end| now < end)
}

/// Whether a condition holds for what stands there, live.
pub(super) fn holds(when: When, found: Option<&Item>) -> bool {
    match (when, found) {
        (When::Always, _) | (When::Absent, None) | (When::Present, Some(_)) => true,
        (When::Revision(revision), Some(item)) => item.revision == revision,
        (When::Absent, Some(_)) | (When::Present | When::Revision(_), None) => false,
    }
}

/// All attributes of an item.
pub(super) fn attributes(key: &Key, item: Item, writer: Writer) -> Attributes {
    let mut attributes = key_attributes(key);
    if !item.counters.is_empty() {
        attributes.insert(TALLIED.to_owned(), AttributeValue::Bool(true));
    }
    if let Some(at) = item.expires_at {
        attributes.insert(EXPIRES_AT.to_owned(), expires_secs(at));
        attributes.insert(EXPIRES_MS.to_owned(), n(at.millis()));
    }
    attributes.insert(DATA.to_owned(), b(item.data));
    attributes.insert(REV.to_owned(), n(item.revision));
    attributes.insert(WRITER.to_owned(), b(writer));
    for (name, value) in item.counters {
        attributes.insert(counter(&name), n(value.clamp(-COUNTER_MAX, COUNTER_MAX)));
    }
    attributes
}

/// The attributes of a key.
pub(super) fn key_attributes(key: &Key) -> Attributes {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    HashMap::from([(PK.to_owned(), text(&key.partition)), (SK.to_owned(), text(&key.sort))])
}

/// The key of an item's attributes.
pub(super) fn read_key(attributes: &Attributes) -> Result<Key, Outage> {
    let text = |name| match attributes.get(name) {
        Some(AttributeValue::S(text)) => Ok(text.clone()),
        _ => Err(broken(name)),
    };
    Ok(Key { partition: text(PK)?, sort: text(SK)? })
}

/// The attribute of a counter.
pub(super) fn counter(name: &str) -> String {
    format!("{COUNTER}{name}")
}

/// The value of [`EXPIRES_AT`].
pub(super) fn expires_secs(at: Timestamp) -> AttributeValue {
    n(at.millis().div_euclid(1000).saturating_add(i64::from(at.millis().rem_euclid(1000) != 0)))
}

/// A number.
pub(super) fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Bytes.
pub(super) fn b(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

fn number<T: std::str::FromStr>(value: Option<&AttributeValue>) -> Option<T> {
    match value {
        Some(AttributeValue::N(number)) => number.parse().ok(),
        _ => None,
    }
}

fn broken(name: &str) -> Outage {
    Outage::new(format!("an item of the table whose attribute {name} is none of ours"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> Item {
        Item {
            data: vec![0, 255],
            counters: BTreeMap::from([("c_ü".to_owned(), -COUNTER_MAX)]),
            revision: u64::MAX,
            expires_at: Some(Timestamp::from_millis(1_001)),
        }
    }

    #[test]
    fn an_item_is_read_from_its_attributes() {
        let key = Key::new("p", "s");
        let attributes = attributes(&key, item(), [1; 8]);
        assert_eq!(read_key(&attributes).unwrap(), key);
        assert_eq!(attributes[EXPIRES_AT], n(2));
        assert_eq!(
            Stored::read(attributes).unwrap(),
            Stored { item: item(), writer: Some([1; 8]) }
        );
    }

    #[test]
    fn an_expiry_is_rounded_up_to_seconds() {
        for (millis, secs) in [(0, 0), (1, 1), (1000, 1), (1001, 2), (-1, 0), (-1000, -1)] {
            assert_eq!(expires_secs(Timestamp::from_millis(millis)), n(secs));
        }
    }

    #[test]
    fn attributes_that_are_none_of_ours_are_refused() {
        for (name, value) in
            [(DATA, n(1)), (REV, b("1")), (REV, n("-1")), (EXPIRES_MS, n("1e3")), ("c_n", b("1"))]
        {
            let mut attributes = attributes(&Key::new("p", "s"), item(), [1; 8]);
            attributes.insert(name.to_owned(), value);
            assert!(Stored::read(attributes).is_err(), "{name}");
        }
    }
}
