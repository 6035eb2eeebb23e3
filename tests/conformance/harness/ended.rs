//! What was written about invocations: which have ended, and whether one did so twice.

use std::collections::BTreeMap;

use annex_core::ports::Write;
use serde_json::Value;

/// Ends by partition of the record, and what must not be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    ends: BTreeMap<String, (usize, Value)>,
    twice: Vec<String>,
}

impl Ended {
    /// Takes note of writes that were done.
    pub(crate) fn note(&mut self, writes: &[Write]) {
        for write in writes {
            let Write::Put { key, data, .. } = write else { continue };
            if !key.partition.starts_with("inv#") {
                continue;
            }
            let record: Value = serde_json::from_slice(data).unwrap_or_default();
            if let Some((ends, created_at)) = self.ends.get(&key.partition)
                && *ends > 0
                && *created_at == record["at"]
            {
                self.twice.push(format!("{} was written after its end: {record}", key.partition));
            }
            let has_ended = is_ended(&record);
            self.ends.insert(key.partition.clone(), (usize::from(has_ended), record["at"].clone()));
        }
    }

    /// A record that was written after its end, which belonged to the same publish.
    pub(crate) fn twice(&self) -> Option<&str> {
        self.twice.first().map(String::as_str)
    }
}

/// Whether a record, as it is stored, has its end.
pub(crate) fn is_ended(record: &Value) -> bool {
    matches!(record["s"].as_str(), Some("succeeded" | "failed"))
}
