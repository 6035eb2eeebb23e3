//! What went wrong in an organization: one entry for each failure that repeats (LC-061 to LC-064).

use serde::{Deserialize, Serialize};

use crate::fault::Outcome;
use crate::ids::Oid;
use crate::keys;
use crate::limits::{
    COMMIT_WRITES_MAX, ERROR_RETENTION, ERROR_TEXT_BYTES_MAX, ERRORS_LISTED_MAX, NAME_BYTES_MAX,
    SORT_KEY_BYTES_MAX,
};
use crate::ports::{Commit, Committed, Item, Key, Outage, Ports, Query, When, Write};
use crate::stored;
use crate::time::Timestamp;

const COUNT: &str = "count";

/// Characters of the digest that ends an entry's sort key.
const DIGEST_CHARS: usize = 32;

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgError {
    /// What failed, most often an extension.
    pub component: String,
    /// What it said.
    pub error: String,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen.
    pub last_seen: Timestamp,
    /// How often it was seen.
    pub count: i128,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    component: String,
    error: String,
    ts: Timestamp,
}

/// The write that files an error: a new entry, or one more time of the same. It never fails a commit (LC-063).
///
/// The text is cut to [`ERROR_TEXT_BYTES_MAX`]; it must hold no secret by now.
pub fn write(oid: Oid, component: &str, text: &str, at: Timestamp) -> Write {
    write_times(oid, component, text, at, 1)
}

/// The write that files an error that was seen so many times since it was last filed.
pub fn write_times(oid: Oid, component: &str, text: &str, at: Timestamp, times: u32) -> Write {
    let component = cut(component, NAME_BYTES_MAX);
    let error = cut(text, ERROR_TEXT_BYTES_MAX);
    let key = keys::error(oid, component, error);
    let stored = Stored { component: component.to_owned(), error: error.to_owned(), ts: at };
    Write::Tally {
        key,
        data: stored::bytes(&stored),
        add: vec![(COUNT.to_owned(), i128::from(times))],
        expires_at: Some(at.plus(ERROR_RETENTION)),
    }
}

/// The longest start of `text` of at most `bytes` bytes that ends between two characters.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The entry in an item.
pub(crate) fn read(sort: &str, item: &Item) -> Result<OrgError, Outage> {
    let stored: Stored = stored::read(item, sort)?;
    Ok(OrgError {
        component: stored.component,
        error: stored.error,
        first_seen: stored.ts,
        // The expiry moves with each time it is seen.
        last_seen: item.expires_at.map_or(stored.ts, |at| at.minus(ERROR_RETENTION)),
        count: item.counters.get(COUNT).copied().unwrap_or(1),
    })
}

/// The errors of an organization, by component: the first [`ERRORS_LISTED_MAX`]. An extension that says something else
/// each time makes any number.
pub async fn list(ports: &Ports, oid: Oid) -> Outcome<Vec<OrgError>> {
    let mut found = Vec::new();
    let mut query = Query::prefix(keys::errors(oid), "");
    loop {
        let page = ports.store.query(query.clone()).await?;
        for (sort, item) in page.items {
            if ERRORS_LISTED_MAX <= found.len() {
                return Ok(found);
            }
            found.push(read(&sort, &item)?);
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(found),
        }
    }
}

/// Dismisses every error of a component, of which there may be none any more. What happens again is filed anew.
pub async fn dismiss(ports: &Ports, oid: Oid, component: &str) -> Outcome<()> {
    let prefix = format!("{component}#");
    if SORT_KEY_BYTES_MAX < prefix.len() + DIGEST_CHARS {
        // Nothing can be filed under it.
        return Ok(());
    }
    let mut query = Query::prefix(keys::errors(oid), &prefix);
    query.limit = COMMIT_WRITES_MAX;
    loop {
        let page = ports.store.query(query.clone()).await?;
        let writes: Vec<Write> = page
            .items
            .into_iter()
            // A component may hold the separator itself: `a` must not dismiss what is of `a#b`.
            .filter(|(sort, _)| sort.len() == prefix.len() + DIGEST_CHARS)
            .map(|(sort, _)| Write::Delete {
                key: Key::new(keys::errors(oid), sort),
                when: When::Always,
            })
            .collect();
        if !writes.is_empty() {
            let done = ports.store.commit(Commit { writes, ..Commit::default() }).await?;
            debug_assert_eq!(done, Committed::Done, "an unconditional delete is never lost");
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(component: &str, text: &str, stored: (&str, &str)) {
        let oid = Oid::new(uuid::Uuid::nil());
        let at = Timestamp::from_secs(5);
        let Write::Tally { key, data, add, expires_at } = write(oid, component, text, at) else {
            panic!("an error is tallied");
        };
        assert_eq!(key, keys::error(oid, stored.0, stored.1));
        assert_eq!(key.sort.len(), stored.0.len() + 1 + DIGEST_CHARS);
        let data: Stored = serde_json::from_slice(&data).unwrap();
        assert_eq!(
            (data.component.as_str(), data.error.as_str(), data.ts),
            (stored.0, stored.1, at)
        );
        assert_eq!(add, [(COUNT.to_owned(), 1)]);
        assert_eq!(expires_at, Some(at.plus(ERROR_RETENTION)));
    }

    #[test]
    fn an_error_is_one_item_whose_data_is_its_first_and_whose_counter_is_all() {
        // LC-063
        check("ext-demo", "boom", ("ext-demo", "boom"));
    }

    #[test]
    fn texts_are_cut_between_characters_at_the_limit() {
        let full = "x".repeat(ERROR_TEXT_BYTES_MAX);
        check("a", &full, ("a", &full));
        check("a", &format!("{full}y"), ("a", &full));
        check("a", &format!("{}é", &full[1..]), ("a", &full[1..]));
        let long = "c".repeat(NAME_BYTES_MAX + 1);
        check(&long, "t", (&long[1..], "t"));
    }
}
