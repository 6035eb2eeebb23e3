//! Patterns of schemas: regular expressions that match in linear time, and how large each is.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::json;

use super::place::Place;
use crate::limits::{
    PATTERN_CHARS_MAX, PATTERN_LAZY_BYTES_MAX, PATTERN_SIZES, SCHEMA_PATTERNS_MAX,
};

/// The patterns of a schema.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// What a byte of a text costs at most, by pattern.
    steps: HashMap<String, u64>,
    /// What all of them take once compiled, in bytes, at most.
    pub(super) bytes: usize,
}

impl Patterns {
    /// What a byte of a text costs at most. Refuses what is no regular expression, or too large a one.
    pub(super) fn steps(&mut self, pattern: &str, place: &Place) -> Result<u64, String> {
        if let Some(steps) = self.steps.get(pattern) {
            return Ok(*steps);
        }
        if pattern.chars().count() > PATTERN_CHARS_MAX {
            let what = format!("is a pattern of more than {PATTERN_CHARS_MAX} characters");
            return Err(place.fault(&what));
        }
        if self.steps.len() == SCHEMA_PATTERNS_MAX {
            let what = format!("is one more than the {SCHEMA_PATTERNS_MAX} patterns of a schema");
            return Err(place.fault(&what));
        }
        // Such a pattern would be taken apart into several, whose sizes nobody counts.
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)) {
            return Err(place.fault("is a pattern that looks ahead or behind"));
        }
        let size = PATTERN_SIZES.into_iter().find(|size| compiles(pattern, *size));
        let Some(size) = size else {
            return Err(
                place.fault("is no regular expression, or one that takes too much to match")
            );
        };
        let steps = (size / BYTES_OF_STEP) as u64;
        self.bytes += size;
        self.steps.insert(pattern.to_owned(), steps);
        Ok(steps)
    }
}

/// Bytes of a compiled pattern that are one step for each byte of a text: what was measured with the slowest that was
/// found, whose states are all alive all the time.
const BYTES_OF_STEP: usize = 256;

/// The engine for patterns of at most `size` bytes: without backtracking.
pub(super) fn engine(size: usize) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(size).dfa_size_limit(PATTERN_LAZY_BYTES_MAX)
}

fn compiles(pattern: &str, size: usize) -> bool {
    super::options(size).build(&json!({ "pattern": pattern })).is_ok()
}
