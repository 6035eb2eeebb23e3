//! Entities as JSON in the store's items.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Outcome;
use crate::ports::{Item, Key, Outage, Ports, Query};

/// The entity at `key`, and its item.
pub async fn load<T: DeserializeOwned>(ports: &Ports, key: &Key) -> Outcome<Option<(T, Item)>> {
    match ports.store.get(key).await? {
        Some(item) => Ok(Some((read(&item, &key.sort)?, item))),
        None => Ok(None),
    }
}

/// The item at `key`, or what it was a while ago ([`Store::recent`]), for what every call reads. Where what is
/// remembered is nothing, or is not `usable`, the store is asked: what was just added works at once.
///
/// [`Store::recent`]: crate::ports::Store::recent
pub async fn recent(
    ports: &Ports,
    key: &Key,
    usable: impl Fn(&Item) -> bool + Send,
) -> Result<Option<Item>, Outage> {
    match ports.store.recent(key).await? {
        Some(item) if usable(&item) => Ok(Some(item)),
        _ => ports.store.get(key).await,
    }
}

/// All entities of a partition whose sort key starts with `prefix`, with the rest of their sort keys, in order. For
/// what an organization has few of.
pub async fn all<T: DeserializeOwned>(
    ports: &Ports,
    partition: &str,
    prefix: &str,
) -> Outcome<Vec<(String, T)>> {
    let mut found = Vec::new();
    let mut query = Query::prefix(partition, prefix);
    loop {
        let page = ports.store.query(query.clone()).await?;
        for (sort, item) in page.items {
            let entity = read(&item, &sort)?;
            found.push((sort.strip_prefix(prefix).unwrap_or(&sort).to_owned(), entity));
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(found),
        }
    }
}

/// The entity in an item.
pub fn read<T: DeserializeOwned>(item: &Item, sort: &str) -> Result<T, Outage> {
    serde_json::from_slice(&item.data)
        .map_err(|error| unreadable(&format!("the item {sort}"), &error))
}

/// The outage of a text of ours that cannot be read.
pub fn unreadable(what: &str, error: &serde_json::Error) -> Outage {
    Outage::new(format!("{what} cannot be read: {}", fault(error)))
}

/// What is wrong with a JSON text, and where. The library's own words quote values, and go into no log.
pub fn fault(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("{:?} error at line {line} column {column}", error.classify())
}

/// An entity as an item's data.
pub fn bytes<T: Serialize>(entity: &T) -> Vec<u8> {
    serde_json::to_vec(entity).expect("entities have text keys and no failing parts")
}
