//! Reads: of one item, of a range, of everything under a prefix. All are consistent.

use std::collections::HashMap;

use annex_core::limits::{PAGE_BYTES_MAX, PAGE_ITEMS_MAX, SORT_KEY_BYTES_MAX};
use annex_core::ports::{Item, Key, Outage, Page, Query, Scan, ScanPage, check_query, check_scan};
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::DynamoStore;
use super::item::{Attributes, DATA, PK, SK, Stored, key_attributes, read_key};
use crate::outage::outage;

/// Keys that one request can ask for (DynamoDB).
pub(super) const BATCH_KEYS_MAX: usize = 100;

/// What a read of many items tells of one of them.
pub(super) enum Read {
    /// The live item, or that there is none.
    Known(Option<Item>),
    /// Nothing: DynamoDB had enough before.
    Skipped,
}

impl DynamoStore {
    /// What stands at each of these keys, which are at most [`BATCH_KEYS_MAX`] and all different.
    pub(super) async fn read_batch(&self, keys: &[Key]) -> Result<Vec<Read>, Outage> {
        let asked = KeysAndAttributes::builder()
            .set_keys(Some(keys.iter().map(key_attributes).collect()))
            .consistent_read(true)
            .build()
            .expect("it has keys");
        let request = self.client.batch_get_item().request_items(&self.table, asked);
        let answer = request.send().await.map_err(|error| outage("items cannot be read", error))?;
        let left = answer.unprocessed_keys.and_then(|mut all| all.remove(&self.table));
        let left: Vec<Key> =
            left.iter().flat_map(|left| left.keys()).map(read_key).collect::<Result<_, _>>()?;
        let found = answer.responses.and_then(|mut all| all.remove(&self.table));
        let mut found: HashMap<Key, Item> =
            self.live(found.unwrap_or_default())?.into_iter().collect();
        let read = |key: &Key| match found.remove(key) {
            None if left.contains(key) => Read::Skipped,
            found => Read::Known(found),
        };
        Ok(keys.iter().map(read).collect())
    }

    /// The live item at a key.
    pub(super) async fn read(&self, key: &Key) -> Result<Option<Item>, Outage> {
        let stored = self.read_stored(key).await?;
        let now = self.clock.now();
        Ok(stored.filter(|stored| stored.live(now).is_some()).map(|stored| stored.item))
    }

    /// What stands at a key, live or expired.
    pub(super) async fn read_stored(&self, key: &Key) -> Result<Option<Stored>, Outage> {
        let request = self.client.get_item().table_name(&self.table);
        let answer = request
            .set_key(Some(key_attributes(key)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| outage("an item cannot be read", error))?;
        answer.item.map(Stored::read).transpose()
    }

    pub(super) async fn read_range(&self, query: Query) -> Result<Page, Outage> {
        check_query(&query)?;
        let Query { partition, from, to, limit, backward } = query;
        if !to.is_empty() && to <= from {
            return Ok(Page::default());
        }
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut names = HashMap::from([("#p".to_owned(), PK.to_owned())]);
        let mut values = HashMap::from([(":p".to_owned(), text(&partition))]);
        // DynamoDB takes one condition of the sort key, and the one of two ends includes both. A backward query starts
        // behind `to` instead; a forward one drops what stands just there.
        let sort = match (from.is_empty(), to.is_empty() || backward) {
            (true, true) => "",
            (false, true) => " AND #s >= :f",
            (true, false) => " AND #s < :t",
            (false, false) => " AND #s BETWEEN :f AND :t",
        };
        if !sort.is_empty() {
            names.insert("#s".to_owned(), SK.to_owned());
        }
        if !from.is_empty() {
            values.insert(":f".to_owned(), text(&from));
        }
        if sort.contains(":t") {
            values.insert(":t".to_owned(), text(&to));
        }
        let behind = (backward && !to.is_empty())
            .then(|| key_attributes(&Key::new(partition.as_str(), to.as_str())));
        let limit = limit.clamp(1, PAGE_ITEMS_MAX);
        let request = self.client.query().table_name(&self.table).consistent_read(true);
        let answer = request
            .key_condition_expression(format!("#p = :p{sort}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .set_exclusive_start_key(behind)
            .scan_index_forward(!backward)
            .limit(i32::try_from(limit).expect("a page is small"))
            .send()
            .await
            .map_err(|error| outage("items cannot be queried", error))?;
        let end = |sort: &str| !backward && !to.is_empty() && to.as_str() <= sort;
        let items = self.live(answer.items.unwrap_or_default())?;
        let items = items.into_iter().map(|(key, item)| (key.sort, item));
        let items = items.filter(|(sort, _)| !end(sort)).collect();
        let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
        let last = last.map(|key| read_key(&key)).transpose()?.map(|key| key.sort);
        let next = match last {
            Some(last) if backward => Some(last),
            Some(last) => after(&last).filter(|next| !end(next)),
            None => None,
        };
        Ok(Page { items, next })
    }

    pub(super) async fn read_all(&self, scan: Scan) -> Result<ScanPage, Outage> {
        check_scan(&scan)?;
        let behind = scan.cursor.as_deref().map(read_cursor).transpose()?;
        let request = self.client.scan().table_name(&self.table).consistent_read(true);
        let answer = request
            .filter_expression("begins_with(#p, :p)")
            .expression_attribute_names("#p", PK)
            .expression_attribute_values(":p", AttributeValue::S(scan.prefix))
            .set_exclusive_start_key(behind)
            .send()
            .await
            .map_err(|error| outage("the table cannot be scanned", error))?;
        let mut found = answer.items.unwrap_or_default();
        let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
        let mut last = last.map(|key| read_key(&key)).transpose()?;
        let most = fitting(&found).min(scan.limit.clamp(1, PAGE_ITEMS_MAX));
        if most < found.len() {
            found.truncate(most);
            // The key of any item is where a scan can go on.
            last = found.last().map(read_key).transpose()?;
        }
        Ok(ScanPage { items: self.live(found)?, next: last.map(|key| cursor(&key)) })
    }

    /// Keys and items of those that are live, in their order.
    fn live(&self, found: Vec<Attributes>) -> Result<Vec<(Key, Item)>, Outage> {
        let now = self.clock.now();
        let mut live = Vec::with_capacity(found.len());
        for attributes in found {
            let key = read_key(&attributes)?;
            let stored = Stored::read(attributes)?;
            if stored.live(now).is_some() {
                live.push((key, stored.item));
            }
        }
        Ok(live)
    }
}

/// How many items fit a page, one at least.
fn fitting(found: &[Attributes]) -> usize {
    let mut bytes = 0;
    let full = found.iter().position(|attributes| {
        let data = attributes.get(DATA).and_then(|data| data.as_b().ok());
        bytes += data.map_or(0, |data| data.as_ref().len());
        PAGE_BYTES_MAX < bytes
    });
    full.unwrap_or(found.len()).max(1)
}

/// The first possible sort key after this one; `None` where there is none.
fn after(sort: &str) -> Option<String> {
    let mut text = sort.to_owned();
    if text.len() < SORT_KEY_BYTES_MAX {
        text.push('\0');
        return Some(text);
    }
    // No key is longer, so the next one differs in what is there: the last character that can be raised without
    // making the key too long.
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next.filter(|next| text.len() + next.len_utf8() <= SORT_KEY_BYTES_MAX) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

fn cursor(key: &Key) -> String {
    let text = serde_json::json!([key.partition, key.sort]).to_string();
    URL_SAFE_NO_PAD.encode(text)
}

fn read_cursor(cursor: &str) -> Result<Attributes, Outage> {
    let key = URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<(String, String)>(&bytes).ok());
    let (partition, sort) = key.ok_or_else(|| Outage::new("a cursor that is none of a scan"))?;
    Ok(key_attributes(&Key { partition, sort }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_after_another_is_the_next_possible_one() {
        let full = |end: &str| format!("{}{end}", "k".repeat(SORT_KEY_BYTES_MAX - end.len()));
        for (sort, next) in [
            ("a".to_owned(), Some("a\0".to_owned())),
            (full("")[1..].to_owned(), Some(format!("{}\0", &full("")[1..]))),
            (full("a"), Some(full("b"))),
            (full("a\u{7f}"), Some(full("a\u{7f}").replace("a\u{7f}", "b"))),
            (full("\u{d7ff}"), Some(full("\u{e000}"))),
            (full("a\u{10ffff}"), Some(full("a\u{10ffff}").replace("a\u{10ffff}", "b"))),
            ("\u{10ffff}".repeat(SORT_KEY_BYTES_MAX / 4), None),
        ] {
            assert_eq!(after(&sort), next, "{sort:?}");
        }
    }

    #[test]
    fn a_cursor_is_read_back_and_any_other_text_is_refused() {
        let key = Key::new("p\u{0}é", "s\"");
        assert_eq!(read_cursor(&cursor(&key)).unwrap(), key_attributes(&key));
        for bad in ["", "!", "e30", "WyJhIl0"] {
            assert!(read_cursor(bad).is_err(), "{bad}");
        }
    }
}
