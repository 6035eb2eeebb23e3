//! What each write asks of DynamoDB.
//!
//! A write is first tried without a read. Where what stands there is in the way (it has expired, or has counters that
//! a put must drop, or a counter is about to pass its limit), DynamoDB's refusal shows it, and the second try replaces
//! just that.

use std::collections::{BTreeMap, HashMap};

use annex_core::limits::COUNTER_MAX;
use annex_core::ports::{Item, Key, When, Write};
use annex_core::time::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use super::item::{
    Attributes, DATA, EXPIRES_AT, EXPIRES_MS, PK, REV, Stored, TALLIED, WRITER, Writer, attributes,
    b, counter, expires_secs, is_live, key_attributes, n,
};

/// Counters of a tally that fit the expressions of one update (4 KiB each, 300 operators). More are added up here.
const COUNTERS_PER_UPDATE_MAX: usize = 50;

/// Up to here, either way, DynamoDB adds. What it does at its 38th digit, where an error and a rounding are possible, is
/// not documented well enough; a counter that comes near is added up here, which no real one ever does.
const ADDED_MAX: i128 = 10_i128.pow(27);

/// What is known of what stands at a write's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Basis {
    /// Nothing yet.
    Unknown,
    /// Just this, a moment ago.
    Seen(Option<Stored>),
}

/// One write as DynamoDB takes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) action: Action,
    pub(super) condition: Option<String>,
    pub(super) names: HashMap<String, String>,
    pub(super) values: Attributes,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Puts an item of these attributes.
    Put(Attributes),
    /// Updates the item of this key by an expression.
    Update(Attributes, String),
    /// Deletes the item of this key.
    Delete(Attributes),
}

/// The time and the writer of a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Timestamp,
    pub(super) writer: Writer,
}

/// The request of a write; `None` where that cannot be said before what stands there has been read.
pub(super) fn request(write: &Write, basis: &Basis, now: Now) -> Option<Request> {
    match (write, basis) {
        (Write::Delete { key, when }, _) => Some(delete(key, *when, now)),
        (Write::Put { key, data, expires_at, when }, Basis::Unknown) => {
            Some(put(key, data, *expires_at, *when, now))
        }
        (Write::Tally { key, data, add, expires_at }, Basis::Unknown) => {
            tally(key, data, &sums(add), *expires_at, now)
        }
        (Write::Put { key, .. } | Write::Tally { key, .. }, Basis::Seen(seen)) => {
            Some(replace(key, seen.as_ref(), applied(write, seen.as_ref(), now.at), now))
        }
    }
}

/// What a put or a tally makes of what stands there.
pub(super) fn applied(write: &Write, seen: Option<&Stored>, at: Timestamp) -> Item {
    let found = seen.map(|seen| &seen.item).filter(|item| is_live(item, at));
    let revision = found.map_or(1, |item| item.revision.saturating_add(1));
    let new = |data: &Vec<u8>| Item {
        data: data.clone(),
        counters: BTreeMap::new(),
        revision,
        expires_at: write.expires_at(),
    };
    match write {
        Write::Put { data, .. } => new(data),
        Write::Tally { data, add, .. } => {
            let mut item = new(found.map_or(data, |item| &item.data));
            item.counters = found.map(|item| item.counters.clone()).unwrap_or_default();
            for (name, amount) in add {
                let counter = item.counters.entry(name.clone()).or_default();
                *counter = counter.saturating_add(*amount).clamp(-COUNTER_MAX, COUNTER_MAX);
            }
            item
        }
        Write::Delete { .. } => unreachable!("a delete makes no item"),
    }
}

/// Collects what an expression names.
#[derive(Default)]
struct Expression {
    names: HashMap<String, String>,
    values: Attributes,
}

impl Expression {
    /// A placeholder of an attribute: no name is reserved behind one.
    fn name(&mut self, short: &str, attribute: impl Into<String>) -> String {
        let short = format!("#{short}");
        self.names.insert(short.clone(), attribute.into());
        short
    }

    fn value(&mut self, short: &str, value: AttributeValue) -> String {
        let short = format!(":{short}");
        self.values.insert(short.clone(), value);
        short
    }

    /// "It has not expired", true of what is absent too.
    fn unexpired(&mut self, now: Now) -> String {
        let expires = self.name("m", EXPIRES_MS);
        let at = self.value("now", n(now.at.millis()));
        format!("(attribute_not_exists({expires}) OR {expires} > {at})")
    }

    fn condition(&mut self, when: When, now: Now) -> Option<String> {
        match when {
            When::Always => None,
            When::Absent => {
                let (key, expires) = (self.name("p", PK), self.name("m", EXPIRES_MS));
                let at = self.value("now", n(now.at.millis()));
                Some(format!("attribute_not_exists({key}) OR {expires} <= {at}"))
            }
            When::Present => {
                let key = self.name("p", PK);
                Some(format!("attribute_exists({key}) AND {}", self.unexpired(now)))
            }
            When::Revision(revision) => {
                let (name, value) = (self.name("r", REV), self.value("r", n(revision)));
                Some(format!("{name} = {value} AND {}", self.unexpired(now)))
            }
        }
    }

    /// "What stands there is what was seen."
    fn same(&mut self, seen: Option<&Stored>) -> String {
        let Some(seen) = seen else {
            return format!("attribute_not_exists({})", self.name("p", PK));
        };
        let (name, value) = (self.name("r", REV), self.value("r", n(seen.item.revision)));
        let expires = self.name("m", EXPIRES_MS);
        match seen.item.expires_at {
            None => format!("{name} = {value} AND attribute_not_exists({expires})"),
            Some(at) => {
                let at = self.value("m", n(at.millis()));
                format!("{name} = {value} AND {expires} = {at}")
            }
        }
    }

    /// "It was not written by this commit": an update that is sent again changes nothing more.
    fn unwritten(&mut self, now: Now) -> String {
        let (name, value) = (self.name("w", WRITER), self.value("w", b(now.writer)));
        format!("(attribute_not_exists({name}) OR {name} <> {value})")
    }

    /// The parts of an update that every one has: the next revision, the writer, the expiry.
    fn update(&mut self, data: String, expires_at: Option<Timestamp>, now: Now) -> String {
        let (rev, zero) = (self.name("r", REV), self.value("z", n(0)));
        let (one, writer) = (self.value("o", n(1)), self.name("w", WRITER));
        let by = self.value("w", b(now.writer));
        let set =
            format!("SET {data}, {rev} = if_not_exists({rev}, {zero}) + {one}, {writer} = {by}");
        let (secs, millis) = (self.name("e", EXPIRES_AT), self.name("m", EXPIRES_MS));
        match expires_at {
            None => format!("{set} REMOVE {secs}, {millis}"),
            Some(at) => {
                let by_secs = self.value("e", expires_secs(at));
                let by_millis = self.value("m", n(at.millis()));
                format!("{set}, {secs} = {by_secs}, {millis} = {by_millis}")
            }
        }
    }

    fn request(self, action: Action, condition: Option<String>) -> Request {
        Request { action, condition, names: self.names, values: self.values }
    }
}

fn delete(key: &Key, when: When, now: Now) -> Request {
    let mut expression = Expression::default();
    let condition = expression.condition(when, now);
    expression.request(Action::Delete(key_attributes(key)), condition)
}

fn put(key: &Key, data: &[u8], expires_at: Option<Timestamp>, when: When, now: Now) -> Request {
    let mut expression = Expression::default();
    let known = match when {
        When::Absent => Some(0),
        When::Revision(revision) => Some(revision),
        When::Always | When::Present => None,
    };
    if let Some(revision) = known {
        let revision = revision.saturating_add(1);
        let item = Item { data: data.to_vec(), counters: BTreeMap::new(), revision, expires_at };
        let condition = expression.condition(when, now);
        return expression.request(Action::Put(attributes(key, item, now.writer)), condition);
    }
    // The revision of what stands there is not known, so this is an update; one that cannot remove counters.
    let tallied = expression.name("t", TALLIED);
    let mut condition = format!(
        "attribute_not_exists({tallied}) AND {} AND {}",
        expression.unexpired(now),
        expression.unwritten(now)
    );
    if when == When::Present {
        condition = format!("attribute_exists({}) AND {condition}", expression.name("p", PK));
    }
    let (name, value) = (expression.name("d", DATA), expression.value("d", b(data)));
    let update = expression.update(format!("{name} = {value}"), expires_at, now);
    expression.request(Action::Update(key_attributes(key), update), Some(condition))
}

/// What is added to each counter in all.
fn sums(add: &[(String, i128)]) -> BTreeMap<&str, i128> {
    let mut sums = BTreeMap::new();
    for (name, amount) in add {
        let sum: &mut i128 = sums.entry(name.as_str()).or_default();
        *sum = sum.saturating_add(*amount);
    }
    sums
}

fn tally(
    key: &Key,
    data: &[u8],
    add: &BTreeMap<&str, i128>,
    expires_at: Option<Timestamp>,
    now: Now,
) -> Option<Request> {
    let highest = add.values().copied().max().unwrap_or(0).max(0);
    let lowest = add.values().copied().min().unwrap_or(0).min(0);
    let fits = add.len() <= COUNTERS_PER_UPDATE_MAX && highest <= ADDED_MAX && -ADDED_MAX <= lowest;
    if !fits {
        return None;
    }
    let mut expression = Expression::default();
    let mut condition = format!("{} AND {}", expression.unexpired(now), expression.unwritten(now));
    let (name, value) = (expression.name("d", DATA), expression.value("d", b(data)));
    let set = format!("{name} = if_not_exists({name}, {value})");
    let set = match add.is_empty() {
        true => set,
        false => {
            let tallied = expression.name("t", TALLIED);
            format!("{set}, {tallied} = {}", expression.value("t", AttributeValue::Bool(true)))
        }
    };
    let mut update = expression.update(set, expires_at, now);
    for (index, (counter_name, amount)) in add.iter().enumerate() {
        let name = expression.name(&format!("c{index}"), counter(counter_name));
        let value = expression.value(&format!("c{index}"), n(amount));
        update.push_str(if index == 0 { " ADD " } else { ", " });
        update.push_str(&format!("{name} {value}"));
        let (low, high) = (
            expression.value("l", n(-ADDED_MAX - lowest)),
            expression.value("h", n(ADDED_MAX - highest)),
        );
        condition.push_str(&format!(
            " AND (attribute_not_exists({name}) OR {name} BETWEEN {low} AND {high})"
        ));
    }
    Some(expression.request(Action::Update(key_attributes(key), update), Some(condition)))
}

fn replace(key: &Key, seen: Option<&Stored>, item: Item, now: Now) -> Request {
    let mut expression = Expression::default();
    let condition = expression.same(seen);
    expression.request(Action::Put(attributes(key, item, now.writer)), Some(condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { at: Timestamp::from_secs(1), writer: [1; 8] };

    fn counters(count: usize, amount: i128) -> Write {
        Write::Tally {
            key: Key::new("p", "s"),
            data: Vec::new(),
            add: (0..count).map(|n| (n.to_string(), amount)).collect(),
            expires_at: Some(NOW.at),
        }
    }

    #[test]
    fn the_largest_update_fits_the_limits_of_expressions() {
        let largest = request(&counters(COUNTERS_PER_UPDATE_MAX, 1), &Basis::Unknown, NOW).unwrap();
        let Action::Update(_, update) = &largest.action else { panic!("{:?}", largest.action) };
        let condition = largest.condition.unwrap();
        assert!(update.len() <= 4_096 && condition.len() <= 4_096, "{}", condition.len());
        let is_operator = |word: &&str| ["AND", "OR", "BETWEEN", "<>", ">"].contains(word);
        let functions = condition.matches("attribute_").count();
        assert!(condition.split(' ').filter(is_operator).count() + functions <= 300);
        // No attribute stands in an expression by its name: it could be a reserved word.
        let words = [update.as_str(), &condition].concat().replace(['(', ')', ','], " ");
        assert!(words.split_whitespace().all(|word| !largest.names.values().any(|it| it == word)));
        assert!(largest.names.keys().chain(largest.values.keys()).all(|it| words.contains(&**it)));
    }

    #[test]
    fn a_tally_is_read_first_where_an_update_cannot_hold_it() {
        for (write, is_blind) in [
            (counters(COUNTERS_PER_UPDATE_MAX, 1), true),
            (counters(COUNTERS_PER_UPDATE_MAX + 1, 1), false),
            (counters(1, ADDED_MAX), true),
            (counters(1, ADDED_MAX + 1), false),
            (counters(1, -ADDED_MAX), true),
            (counters(1, -ADDED_MAX - 1), false),
            (counters(1, i128::MIN), false),
        ] {
            assert_eq!(request(&write, &Basis::Unknown, NOW).is_some(), is_blind);
            assert!(request(&write, &Basis::Seen(None), NOW).is_some());
        }
    }
}
