//! What an organization used: sums of the hourly counters that metric reports add to.

use std::collections::BTreeMap;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{USAGE_COUNTERS_MAX, USAGE_ENTRIES_MAX, USAGE_RANGE_MAX};
use crate::ports::{Ports, Query};
use crate::time::Timestamp;

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;

/// How a report is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// One entry per SKU.
    Whole,
    /// One entry per SKU and day, in UTC.
    Day,
    /// One entry per SKU and hour.
    Hour,
}

impl Grain {
    /// Reads `hour` or `day`; absent: the whole range.
    pub fn parse(text: Option<&str>) -> Outcome<Self> {
        match text {
            None | Some("") => Ok(Self::Whole),
            Some("day") => Ok(Self::Day),
            Some("hour") => Ok(Self::Hour),
            Some(_) => Err(bad("by is neither hour nor day")),
        }
    }
}

/// A range of whole hours: counters are kept by the hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its start, included.
    pub from: Timestamp,
    /// Its end, excluded.
    pub to: Timestamp,
}

impl Range {
    /// Reads a range: `to` is now, and `from` a day before it, unless given. The start is rounded down to the hour
    /// and the end up, so that what was just recorded is in a report to now.
    pub fn parse(from: Option<&str>, to: Option<&str>, now: Timestamp) -> Outcome<Self> {
        let read = |what: &str, text: Option<&str>| match text {
            None | Some("") => Ok(None),
            Some(text) => Timestamp::parse(text).map(Some).ok_or_else(|| {
                bad(format!("{what} is neither RFC 3339 text nor seconds since the epoch"))
            }),
        };
        let to_asked = read("to", to)?.unwrap_or(now);
        let from_asked = read("from", from)?.unwrap_or_else(|| {
            Timestamp::from_millis(to_asked.millis().saturating_sub(DAY_MILLIS))
        });
        if to_asked < from_asked {
            return Err(bad("from is after to"));
        }
        let from = from_asked.max(Timestamp::default()).hour();
        let to = Timestamp::from_millis(to_asked.millis().saturating_add(HOUR_MILLIS - 1)).hour();
        if USAGE_RANGE_MAX.saturating_add(std::time::Duration::from_secs(7_200)) < to.since(from) {
            let days = USAGE_RANGE_MAX.as_secs() / 86_400;
            return Err(bad(format!("the range is longer than {days} days")));
        }
        Ok(Self { from, to })
    }
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

/// An entry of a report. Each recorded unit stands in exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `<extension>:<sku>`.
    pub sku: String,
    /// The sum.
    pub value: i128,
    /// Start of what it sums, included.
    pub from: Timestamp,
    /// End of what it sums, excluded.
    pub to: Timestamp,
}

/// What an organization used in a range, sorted by time and SKU.
pub async fn report(ports: &Ports, oid: Oid, range: Range, grain: Grain) -> Outcome<Vec<Entry>> {
    let mut sums: BTreeMap<(Timestamp, String), i128> = BTreeMap::new();
    let mut query = Query {
        from: keys::usage_hour(range.from),
        to: keys::usage_hour(range.to),
        ..Query::prefix(keys::usage(oid), "")
    };
    let mut counters = 0;
    if range.from == range.to {
        return Ok(Vec::new());
    }
    loop {
        let page = ports.store.query(query.clone()).await?;
        counters += page.items.len();
        for (sort, item) in page.items {
            let Some((hour, sku)) = split(&sort) else { continue };
            let value: i128 = item.counters.values().sum();
            let sum = sums.entry((start(hour, range, grain), sku.to_owned())).or_default();
            *sum = sum.saturating_add(value);
        }
        if USAGE_ENTRIES_MAX < sums.len() || USAGE_COUNTERS_MAX < counters {
            return Err(bad(format!(
                "the report has more than {USAGE_ENTRIES_MAX} entries: ask for a shorter range"
            )));
        }
        match page.next {
            Some(next) => query.from = next,
            None => break,
        }
    }
    let entry = |((from, sku), value)| Entry { sku, value, from, to: end(from, range, grain) };
    Ok(sums.into_iter().map(entry).collect())
}

/// The hour and the SKU of a counter's sort key.
fn split(sort: &str) -> Option<(Timestamp, &str)> {
    let (hour, sku) = sort.split_once('#')?;
    Some((Timestamp::from_secs(hour.parse().ok()?), sku))
}

/// Start of the entry that an hour belongs to.
fn start(hour: Timestamp, range: Range, grain: Grain) -> Timestamp {
    match grain {
        Grain::Whole => range.from,
        Grain::Day => Timestamp::from_millis(hour.day().saturating_mul(DAY_MILLIS)).max(range.from),
        Grain::Hour => hour,
    }
}

/// End of the entry that starts at `from`.
fn end(from: Timestamp, range: Range, grain: Grain) -> Timestamp {
    let end = match grain {
        Grain::Whole => range.to.millis(),
        Grain::Day => from.day().saturating_add(1).saturating_mul(DAY_MILLIS),
        Grain::Hour => from.millis().saturating_add(HOUR_MILLIS),
    };
    Timestamp::from_millis(end).min(range.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: Option<&str>, to: Option<&str>) -> Result<(String, String), String> {
        let now = Timestamp::parse("2026-03-04T05:06:07Z").unwrap();
        Range::parse(from, to, now)
            .map(|range| (range.from.to_string(), range.to.to_string()))
            .map_err(|fault| fault.message)
    }

    fn check(from: Option<&str>, to: Option<&str>, hours: (&str, &str)) {
        let stamp = |text: &str| format!("{text}:00:00.000Z");
        assert_eq!(range(from, to), Ok((stamp(hours.0), stamp(hours.1))));
    }

    #[test]
    fn a_range_is_the_last_day_unless_given_and_covers_whole_hours() {
        check(None, None, ("2026-03-03T05", "2026-03-04T06"));
        check(Some(""), Some(""), ("2026-03-03T05", "2026-03-04T06"));
        check(Some("2026-03-01T00:59:59Z"), None, ("2026-03-01T00", "2026-03-04T06"));
        check(None, Some("2026-03-02T00:00:00Z"), ("2026-03-01T00", "2026-03-02T00"));
        check(Some("1700000000"), Some("1700000001"), ("2023-11-14T22", "2023-11-14T23"));
        check(Some("0"), Some("0"), ("1970-01-01T00", "1970-01-01T00"));
        check(Some("-5"), Some("0"), ("1970-01-01T00", "1970-01-01T00"));
    }

    #[test]
    fn a_range_that_is_reversed_too_long_or_no_time_is_refused() {
        let message = |from: &str, to: &str| range(Some(from), Some(to)).unwrap_err();
        assert_eq!(message("2", "1"), "from is after to");
        assert!(message("x", "1").starts_with("from is neither"));
        assert!(message("1", "1e3").starts_with("to is neither"));
        let days = USAGE_RANGE_MAX.as_secs();
        assert!(range(Some("0"), Some(&days.to_string())).is_ok());
        assert_eq!(message("0", &(days + 7_201).to_string()), "the range is longer than 400 days");
        assert_eq!(
            message("0", &(i64::MAX / 1000).to_string()),
            "the range is longer than 400 days"
        );
    }

    #[test]
    fn an_hour_belongs_to_one_entry_that_is_cut_to_the_range() {
        let at = |text| Timestamp::parse(text).unwrap();
        let range = Range { from: at("2026-03-03T05:00:00Z"), to: at("2026-03-04T06:00:00Z") };
        let bounds = |hour, grain| {
            let from = start(at(hour), range, grain);
            (from, end(from, range, grain))
        };
        assert_eq!(bounds("2026-03-03T07:00:00Z", Grain::Whole), (range.from, range.to));
        assert_eq!(
            bounds("2026-03-03T07:00:00Z", Grain::Day),
            (range.from, at("2026-03-04T00:00:00Z"))
        );
        assert_eq!(
            bounds("2026-03-04T05:00:00Z", Grain::Day),
            (at("2026-03-04T00:00:00Z"), range.to)
        );
        assert_eq!(
            bounds("2026-03-04T05:00:00Z", Grain::Hour),
            (at("2026-03-04T05:00:00Z"), range.to)
        );
    }
}
