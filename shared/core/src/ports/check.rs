//! The limits of a commit, the same on every adapter, since no emulator of a cloud store refuses all of them.

use std::collections::HashSet;
use std::time::Duration;

use super::{Commit, Count, Key, Outage, Outgoing, Query, Scan, Write};
use crate::limits::{
    COMMIT_BYTES_MAX, COMMIT_WRITES_MAX, COUNT_COUNTERS_MAX, COUNTER_NAME_BYTES_MAX,
    ITEM_BYTES_MAX, MESSAGE_BYTES_MAX, PARTITION_KEY_BYTES_MAX, QUEUE_DELAY_MAX,
    SORT_KEY_BYTES_MAX,
};
use crate::time::Timestamp;

/// What a counter takes of an item beside its name, in bytes.
const COUNTER_BYTES: usize = 21;

/// The size of an item as the limits count it, in bytes. An adapter refuses a tally that makes one too large.
pub fn item_bytes<'a>(
    key: &Key,
    data: &[u8],
    counters: impl IntoIterator<Item = &'a String>,
) -> usize {
    let counters: usize = counters.into_iter().map(|name| name.len() + COUNTER_BYTES).sum();
    key.partition.len() + key.sort.len() + data.len() + counters
}

/// Refuses a commit that passes a limit: empty or long keys, large items, too many writes, a key twice, large or
/// empty messages, long delays. An adapter calls it before anything else.
pub fn check(commit: &Commit) -> Result<(), Outage> {
    if COMMIT_WRITES_MAX < commit.writes.len() {
        return over("writes of a commit", commit.writes.len(), COMMIT_WRITES_MAX);
    }
    let mut total = 0;
    for write in &commit.writes {
        let (key, size) = measure(write);
        check_key(key)?;
        if let Write::Tally { add, .. } = write {
            add.iter().try_for_each(|(name, _)| {
                check_part("counter name", name, COUNTER_NAME_BYTES_MAX)
            })?;
        }
        if ITEM_BYTES_MAX < size {
            return over("bytes of an item", size, ITEM_BYTES_MAX);
        }
        total += size;
    }
    if COMMIT_BYTES_MAX < total {
        return over("bytes of a commit", total, COMMIT_BYTES_MAX);
    }
    if has_duplicates(&commit.writes) {
        return Err(Outage::new("a commit writes one key twice"));
    }
    commit.sends.iter().chain(commit.holds.iter().map(|hold| &hold.send)).try_for_each(check_send)
}

/// Refuses a count that passes a limit: an empty or long key or name, too many counters, a large item.
pub fn check_count(count: &Count) -> Result<(), Outage> {
    check_key(&count.key)?;
    let most = count.add.len().max(count.below.len());
    if COUNT_COUNTERS_MAX < most {
        return over("counters of a count", most, COUNT_COUNTERS_MAX);
    }
    count
        .add
        .iter()
        .chain(&count.below)
        .try_for_each(|(name, _)| check_part("counter name", name, COUNTER_NAME_BYTES_MAX))?;
    let size = item_bytes(&count.key, &count.data, count.add.iter().map(|(name, _)| name));
    if ITEM_BYTES_MAX < size {
        return over("bytes of an item", size, ITEM_BYTES_MAX);
    }
    Ok(())
}

/// Refuses a key with an empty or too long part.
pub fn check_key(key: &Key) -> Result<(), Outage> {
    check_part("partition key", &key.partition, PARTITION_KEY_BYTES_MAX)?;
    check_part("sort key", &key.sort, SORT_KEY_BYTES_MAX)
}

/// Refuses a query whose partition or bounds cannot be keys.
pub fn check_query(query: &Query) -> Result<(), Outage> {
    check_part("partition key", &query.partition, PARTITION_KEY_BYTES_MAX)?;
    [&query.from, &query.to]
        .into_iter()
        .filter(|bound| !bound.is_empty())
        .try_for_each(|bound| check_part("bound of a query", bound, SORT_KEY_BYTES_MAX))
}

/// Refuses a scan of everything, and one whose prefix cannot start a partition key.
pub fn check_scan(scan: &Scan) -> Result<(), Outage> {
    check_part("prefix of a scan", &scan.prefix, PARTITION_KEY_BYTES_MAX)
}

fn check_part(what: &str, text: &str, max: usize) -> Result<(), Outage> {
    match text.len() {
        0 => Err(Outage::new(format!("an empty {what}"))),
        size if max < size => over(&format!("bytes of a {what}"), size, max),
        _ => Ok(()),
    }
}

fn check_send(send: &Outgoing) -> Result<(), Outage> {
    if send.body.is_empty() {
        return Err(Outage::new("an empty message"));
    }
    if MESSAGE_BYTES_MAX < send.body.len() {
        return over("bytes of a message", send.body.len(), MESSAGE_BYTES_MAX);
    }
    if QUEUE_DELAY_MAX < send.delay {
        let millis = |delay: Duration| usize::try_from(delay.as_millis()).unwrap_or(usize::MAX);
        return over("milliseconds of a delay", millis(send.delay), millis(QUEUE_DELAY_MAX));
    }
    Ok(())
}

/// The key of a write, and the bytes of its item as far as the write itself tells.
fn measure(write: &Write) -> (&Key, usize) {
    match write {
        Write::Put { key, data, .. } => (key, item_bytes(key, data, [])),
        Write::Delete { key, .. } => (key, item_bytes(key, &[], [])),
        Write::Tally { key, data, add, .. } => {
            (key, item_bytes(key, data, add.iter().map(|(name, _)| name)))
        }
    }
}

fn has_duplicates(writes: &[Write]) -> bool {
    // Nearly every commit has a handful of writes; comparing those pairwise needs no memory.
    if writes.len() <= 8 {
        return writes
            .iter()
            .enumerate()
            .any(|(index, write)| writes[..index].iter().any(|other| other.key() == write.key()));
    }
    let mut seen = HashSet::with_capacity(writes.len());
    !writes.iter().all(|write| seen.insert(write.key()))
}

fn over(what: &str, found: usize, max: usize) -> Result<(), Outage> {
    Err(Outage::new(format!("{found} {what}, at most {max} are possible")))
}

impl Write {
    /// From when on the item is absent that it leaves; a delete leaves none.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Put { expires_at, .. } | Self::Tally { expires_at, .. } => *expires_at,
            Self::Delete { .. } => None,
        }
    }

    /// Where it writes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } | Self::Tally { key, .. } => key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Hold, QueueName, When};
    use uuid::Uuid;

    fn put(key: Key, size: usize) -> Write {
        Write::Put { key, data: vec![0; size], expires_at: None, when: When::Always }
    }

    fn puts(count: usize) -> Vec<Write> {
        (0..count).map(|n| put(Key::new("p", n.to_string()), 1)).collect()
    }

    fn send(size: usize, delay: Duration) -> Outgoing {
        Outgoing { queue: QueueName::Dispatch, body: "x".repeat(size), delay }
    }

    fn writes(writes: Vec<Write>) -> Commit {
        Commit { writes, ..Commit::default() }
    }

    fn sends(one: Outgoing) -> Commit {
        Commit { sends: vec![one], ..Commit::default() }
    }

    fn tally(name: String) -> Write {
        Write::Tally { key: key(1, 1), data: Vec::new(), add: vec![(name, 1)], expires_at: None }
    }

    fn key(partition: usize, sort: usize) -> Key {
        Key::new("p".repeat(partition), "s".repeat(sort))
    }

    #[test]
    fn a_commit_is_refused_just_past_each_limit() {
        let hold =
            |send| Commit { holds: vec![Hold { id: Uuid::nil(), send }], ..Commit::default() };
        let item = ITEM_BYTES_MAX - 2;
        let ok = [
            ("nothing", Commit::default()),
            ("100 writes", writes(puts(100))),
            ("an item of nearly 400 KiB", writes(vec![put(key(1, 1), item)])),
            ("long keys", writes(vec![put(key(2048, 1024), 1)])),
            ("a long counter name", writes(vec![tally("n".repeat(1024))])),
            ("a long message", sends(send(MESSAGE_BYTES_MAX, Duration::ZERO))),
            ("a long delay", sends(send(1, QUEUE_DELAY_MAX))),
        ];
        for (case, commit) in ok {
            assert_eq!(check(&commit).map_err(|outage| outage.what), Ok(()), "{case}");
        }
        let late = QUEUE_DELAY_MAX + Duration::from_millis(1);
        let refused = [
            ("101 writes of a commit, at most 100 are possible", writes(puts(101))),
            (
                "408577 bytes of an item, at most 408576 are possible",
                writes(vec![put(key(1, 1), item + 1)]),
            ),
            (
                "2049 bytes of a partition key, at most 2048 are possible",
                writes(vec![put(key(2049, 1), 1)]),
            ),
            (
                "1025 bytes of a sort key, at most 1024 are possible",
                writes(vec![put(key(1, 1025), 1)]),
            ),
            (
                "1025 bytes of a counter name, at most 1024 are possible",
                writes(vec![tally("n".repeat(1025))]),
            ),
            ("an empty counter name", writes(vec![tally(String::new())])),
            ("an empty partition key", writes(vec![put(key(0, 1), 1)])),
            ("an empty sort key", writes(vec![put(key(1, 0), 1)])),
            ("a commit writes one key twice", writes([puts(3), puts(1)].concat())),
            ("a commit writes one key twice", writes([puts(30), puts(1)].concat())),
            (
                "4494336 bytes of a commit, at most 4091904 are possible",
                writes((11..22).map(|n| put(Key::new("p", n.to_string()), item - 1)).collect()),
            ),
            ("an empty message", sends(send(0, Duration::ZERO))),
            (
                "1048577 bytes of a message, at most 1048576 are possible",
                sends(send(MESSAGE_BYTES_MAX + 1, Duration::ZERO)),
            ),
            ("900001 milliseconds of a delay, at most 900000 are possible", sends(send(1, late))),
            ("900001 milliseconds of a delay, at most 900000 are possible", hold(send(1, late))),
        ];
        for (text, commit) in refused {
            assert_eq!(check(&commit).map_err(|outage| outage.what), Err(text.to_owned()));
        }
    }

    #[test]
    fn a_count_is_refused_just_past_each_limit() {
        let few = |count: usize| (0..count).map(|n| (n.to_string(), 1)).collect::<Vec<_>>();
        let count = |key, size, add, below| Count {
            key,
            data: vec![0; size],
            add,
            below,
            expires_at: None,
        };
        let named = |size: usize| vec![("n".repeat(size), 1)];
        let most = few(COUNT_COUNTERS_MAX);
        let item = ITEM_BYTES_MAX - 2 - 22;
        for (case, accepted) in [
            ("nothing", count(key(1, 1), 0, vec![], vec![])),
            ("20 counters and bounds", count(key(1, 1), 0, most.clone(), most)),
            ("long keys and names", count(key(2048, 1024), 1, named(1024), named(1024))),
            ("an item of nearly 400 KiB", count(key(1, 1), item, named(1), vec![])),
        ] {
            assert_eq!(check_count(&accepted).map_err(|outage| outage.what), Ok(()), "{case}");
        }
        let many = "21 counters of a count, at most 20 are possible";
        let name = "1025 bytes of a counter name, at most 1024 are possible";
        for (text, refused) in [
            (many, count(key(1, 1), 0, few(21), vec![])),
            (many, count(key(1, 1), 0, vec![], few(21))),
            (name, count(key(1, 1), 0, named(1025), vec![])),
            (name, count(key(1, 1), 0, vec![], named(1025))),
            ("an empty counter name", count(key(1, 1), 0, vec![], named(0))),
            ("an empty partition key", count(key(0, 1), 0, vec![], vec![])),
            ("an empty sort key", count(key(1, 0), 0, vec![], vec![])),
            (
                "408577 bytes of an item, at most 408576 are possible",
                count(key(1, 1), item + 1, named(1), vec![]),
            ),
        ] {
            assert_eq!(check_count(&refused).map_err(|outage| outage.what), Err(text.to_owned()));
        }
    }

    #[test]
    fn a_query_is_refused_for_what_cannot_be_a_key() {
        let query = |partition: usize, from: usize| Query {
            partition: "p".repeat(partition),
            from: "s".repeat(from),
            to: String::new(),
            limit: 1,
            backward: false,
        };
        let accepted = [(1, 0), (2048, 1024)];
        let refused = [(0, 0), (2049, 0), (1, 1025)];
        assert!(accepted.iter().all(|&(p, s)| check_query(&query(p, s)).is_ok()));
        assert!(refused.iter().all(|&(p, s)| check_query(&query(p, s)).is_err()));
    }
}
