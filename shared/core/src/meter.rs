//! Usage: metric reports in, usage counters out.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ids::{ExtensionName, Oid};
use crate::json::First;
use crate::keys;
use crate::limits;
use crate::orgs::{self, Standing};
use crate::ports::{Commit, Committed, Outage, Store, When, Write};
use crate::profile::Profile;
use crate::time::Timestamp;

/// A metric report as an extension sends it.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// What the report is deduplicated by; absent or empty: the message's own key.
    #[serde(default)]
    pub idempotent_key: Option<String>,
    /// What was used.
    #[serde(default)]
    pub metrics: Option<First<Metric, { limits::SKUS_PER_REPORT_MAX }>>,
}

/// One line of a report.
#[derive(Debug, Clone, Deserialize)]
pub struct Metric {
    /// The extension's own name of what is counted.
    #[serde(default)]
    pub sku: Option<String>,
    /// How many.
    #[serde(default)]
    pub value: Option<Box<RawValue>>,
}

/// A report that was checked: what the `meter` queue carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Whose usage.
    pub oid: Oid,
    /// Which extension reported it.
    pub extension: ExtensionName,
    /// What it is deduplicated by, within organization and extension (LC-099).
    pub key: String,
    /// When it was reported.
    pub at: Timestamp,
    /// Own SKU name and value; every value is above zero, and each SKU stands once.
    pub skus: Vec<(String, u64)>,
}

/// Checks a report; the texts tell what was not recorded and why (LC-093 to LC-098).
pub fn check(
    profile: &Profile,
    report: Report,
    message_key: &str,
) -> (String, Vec<(String, u64)>, Vec<String>) {
    let key = report
        .idempotent_key
        .filter(|key| !key.is_empty())
        .unwrap_or_else(|| message_key.to_owned());
    let key = match key.len() <= limits::METRIC_KEY_BYTES_MAX {
        true => key,
        false => keys::digest_hex(&[key.as_bytes()]),
    };
    let metrics = report.metrics.unwrap_or_default();
    if profile.skus_max < metrics.count {
        return (key, Vec::new(), vec!["too many metrics".to_owned()]);
    }
    let mut skus: Vec<(String, u64)> = Vec::with_capacity(metrics.elements.len());
    let mut notices = Vec::new();
    for metric in metrics.elements {
        match value(&metric) {
            Ok((sku, value)) => match skus.iter_mut().find(|(name, _)| *name == sku) {
                Some((_, sum)) => *sum = sum.saturating_add(value),
                None => skus.push((sku, value)),
            },
            Err(text) => notices.push(text),
        }
    }
    skus.retain(|(_, value)| *value > 0);
    (key, skus, notices)
}

fn value(metric: &Metric) -> Result<(String, u64), String> {
    let sku = metric.sku.as_deref().unwrap_or_default();
    let bad_name = sku.is_empty()
        || sku.len() > limits::SKU_BYTES_MAX
        || sku.bytes().any(|b| b < b' ' || b == b'#');
    if bad_name {
        return Err("metric without a valid sku skipped".to_owned());
    }
    let text = metric.value.as_deref().map_or("null", RawValue::get);
    if let Ok(value) = text.parse::<u64>() {
        return Ok((sku.to_owned(), value));
    }
    match text.parse::<f64>() {
        Ok(value) if value < 0.0 => Err(format!("negative value for metric {sku} skipped")),
        // Python extensions send whole numbers as floats.
        Ok(value) if value.fract() == 0.0 && value <= 9_007_199_254_740_992.0 => {
            Ok((sku.to_owned(), value as u64))
        }
        _ => Err(format!("invalid value for metric {sku} skipped")),
    }
}

/// What came of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Counted now.
    Now,
    /// The same key was counted before.
    Before,
    /// The organization was deleted meanwhile.
    Gone,
}

/// Adds usage to the counters of its hour, once per key, all of it or nothing (LC-090, LC-099).
pub async fn record(store: &dyn Store, usage: &Usage) -> Result<Recorded, Outage> {
    if orgs::standing(store, usage.oid).await? != Standing::Live {
        return Ok(Recorded::Gone);
    }
    let mut writes = vec![Write::Put {
        key: keys::metered(usage.oid, &usage.extension, &usage.key),
        data: b"1".to_vec(),
        expires_at: Some(usage.at.plus(limits::METRIC_DEDUPE)),
        when: When::Absent,
    }];
    for (sku, value) in &usage.skus {
        let name = format!("{}:{sku}", usage.extension);
        writes.push(Write::Tally {
            key: keys::usage_counter(usage.oid, usage.at, &name),
            data: Vec::new(),
            add: vec![("value".to_owned(), i128::from(*value))],
            expires_at: Some(usage.at.plus(limits::USAGE_RETENTION)),
        });
    }
    Ok(match store.commit(Commit { writes, ..Commit::default() }).await? {
        Committed::Done => Recorded::Now,
        Committed::Lost { .. } => Recorded::Before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::LIMACHARLIE;

    #[track_caller]
    fn check_report(text: &str, key: &str, skus: &[(&str, u64)], notices: &[&str]) {
        let (found_key, found, said) =
            check(&LIMACHARLIE, serde_json::from_str(text).unwrap(), "message-key");
        let found: Vec<_> = found.iter().map(|(sku, value)| (sku.as_str(), *value)).collect();
        assert_eq!(
            (
                found_key.as_str(),
                &found[..],
                &said.iter().map(String::as_str).collect::<Vec<_>>()[..]
            ),
            (key, skus, notices)
        );
    }

    fn of_count(count: usize) -> String {
        let all: Vec<_> =
            (0..count).map(|n| format!(r#"{{"sku":"s{n}","value":{}}}"#, n + 1)).collect();
        format!(r#"{{"idempotent_key":"k","metrics":[{}]}}"#, all.join(","))
    }

    #[test]
    fn ten_skus_are_recorded_and_eleven_are_discarded_whole() {
        let ten = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
        let expected: Vec<_> =
            ten.iter().enumerate().map(|(n, sku)| (*sku, n as u64 + 1)).collect();
        check_report(&of_count(10), "k", &expected, &[]);
        check_report(&of_count(11), "k", &[], &["too many metrics"]);
    }

    #[test]
    fn a_negative_value_is_skipped_and_the_others_stay() {
        check_report(
            r#"{"idempotent_key":"k","metrics":[{"sku":"scans","value":-1},{"sku":"bytes","value":5}]}"#,
            "k",
            &[("bytes", 5)],
            &["negative value for metric scans skipped"],
        );
    }

    #[test]
    fn an_empty_key_falls_back_to_the_message() {
        for text in [
            r#"{"metrics":[]}"#,
            r#"{"idempotent_key":"","metrics":null}"#,
            r#"{"idempotent_key":null}"#,
        ] {
            check_report(text, "message-key", &[], &[]);
        }
    }

    #[test]
    fn a_key_of_any_length_is_kept_or_known_by_its_digest() {
        let of = |key: &str| format!(r#"{{"idempotent_key":"{key}"}}"#);
        let longest = "k".repeat(limits::METRIC_KEY_BYTES_MAX);
        check_report(&of(&longest), &longest, &[], &[]);
        let longer = format!("{longest}k");
        check_report(&of(&longer), &keys::digest_hex(&[longer.as_bytes()]), &[], &[]);
    }

    #[test]
    fn values_are_whole_numbers_in_any_spelling_and_never_overflow() {
        let one = |value: &str| {
            format!(r#"{{"idempotent_key":"k","metrics":[{{"sku":"s","value":{value}}}]}}"#)
        };
        check_report(&one("18446744073709551615"), "k", &[("s", u64::MAX)], &[]);
        check_report(&one("3.0"), "k", &[("s", 3)], &[]);
        check_report(&one("0"), "k", &[], &[]);
        for bad in ["18446744073709551616", "3.5", "\"3\"", "null", "1e400", "true"] {
            check_report(&one(bad), "k", &[], &["invalid value for metric s skipped"]);
        }
        check_report(
            r#"{"idempotent_key":"k","metrics":[{"sku":"s","value":18446744073709551615},{"sku":"s","value":2}]}"#,
            "k",
            &[("s", u64::MAX)],
            &[],
        );
    }

    #[test]
    fn a_sku_without_a_usable_name_is_skipped() {
        for name in ["\"\"", "null", "\"a#b\"", "\"a\\nb\""] {
            check_report(
                &format!(r#"{{"idempotent_key":"k","metrics":[{{"sku":{name},"value":1}}]}}"#),
                "k",
                &[],
                &["metric without a valid sku skipped"],
            );
        }
    }
}
