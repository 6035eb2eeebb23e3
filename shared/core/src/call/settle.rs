//! What the end of a call means: a pure decision over its record and its last answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::chain::{self, Planned};
use crate::delivery::answer::Answer;
use crate::fault::Fault;
use crate::limits::{ERROR_TEXT_BYTES_MAX, SKU_BYTES_MAX};
use crate::meter::{self, Report, Usage};
use crate::profile::Profile;
use crate::redact::Redactor;
use crate::time::Timestamp;

use super::record::{Kind, Record};

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settlement {
    /// The data for the caller, redacted; or what went wrong, redacted.
    pub(super) result: Result<String, Fault>,
    /// What follows.
    pub(super) effects: Effects,
}

/// What follows from the end of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Effects {
    /// Continuations to queue.
    pub(super) planned: Vec<Planned>,
    /// Usage to record.
    pub(super) usage: Vec<Usage>,
    /// Faults in what the answer asked for: told to the organization, and to the extension (LC-065).
    pub(super) notices: Vec<String>,
}

/// Decides what follows. `reports` are those of earlier attempts.
///
/// Continuations go out only from the answer that ends the call, metrics also from attempts before it: what an attempt
/// used was used, and a repeat of its key is recorded once.
pub(super) fn settle(
    profile: &Profile,
    record: &Record,
    result: Result<(), Fault>,
    answer: Option<Answer>,
    reports: Vec<Report>,
    redactor: &Redactor,
    now: Timestamp,
) -> Settlement {
    let mut notices = Vec::new();
    let answer = answer.unwrap_or_default();
    let mut usage = Vec::new();
    for report in reports.into_iter().chain(answer.report) {
        let (key, skus, said) = meter::check(profile, report, &record.key);
        notices.extend(said);
        if !skus.is_empty() {
            let key = redactor.redact(&key).into_owned();
            let shown = |(sku, value): (String, u64)| {
                let mut sku = redactor.redact(&sku).into_owned();
                sku.truncate(sku.floor_char_boundary(SKU_BYTES_MAX));
                (sku, value)
            };
            let skus = merged(skus.into_iter().map(shown));
            let extension = record.extension.clone();
            usage.push(Usage { oid: record.oid, extension, key, at: now, skus });
        }
    }
    let (mut planned, said) = match record.kind {
        Kind::ErrorReport => Default::default(),
        _ => chain::plan(profile, &record.key, record.level, answer.continuations),
    };
    notices.extend(said);
    for planned in &mut planned {
        // It is stored as it is, and named in errors. The state is sealed.
        planned.action = redactor.redact(&planned.action).into_owned();
    }
    let result = match result {
        Ok(()) => Ok(hidden(answer.data, redactor)),
        Err(fault) => Err(Fault::new(fault.code, redactor.redact(&fault.message)).cut()),
    };
    let mut distinct: Vec<String> = Vec::new();
    for notice in notices {
        let notice = cut(&redactor.redact(&notice), ERROR_TEXT_BYTES_MAX).to_owned();
        if !distinct.contains(&notice) && distinct.len() < NOTICES_MAX {
            distinct.push(notice);
        }
    }
    Settlement { result, effects: Effects { planned, usage, notices: distinct } }
}

/// The longest start of `text` of at most `bytes` bytes that ends between two characters.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// SKUs whose names became equal are one.
fn merged(skus: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut merged: Vec<(String, u64)> = Vec::new();
    for (sku, value) in skus {
        match merged.iter_mut().find(|(known, _)| *known == sku) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => merged.push((sku, value)),
        }
    }
    merged
}

/// The data for the caller. An answer can be a hundred megabytes: it is not copied unless it holds a secret.
fn hidden(data: Option<Box<RawValue>>, redactor: &Redactor) -> String {
    let data = data.map_or_else(|| "{}".to_owned(), |data| String::from(Box::<str>::from(data)));
    let changed = match redactor.redact_json(&data) {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    };
    changed.unwrap_or(data)
}

/// Notices of one answer; a hostile answer could make hundreds of different ones.
const NOTICES_MAX: usize = 10;

/// The component of an organization error: the extension and the action or event, in characters that fit a path.
pub(super) fn component(extension: &crate::ids::ExtensionName, word: &str) -> String {
    let word: String = word
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    format!("{extension}.{word}")
}
