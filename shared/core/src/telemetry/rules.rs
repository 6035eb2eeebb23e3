//! The rules of an organization: records of hive `dr-general`, parsed once for each version of a record.

use std::sync::Arc;

use crate::fault::Outcome;
use crate::hive::{self, RULES};
use crate::ids::Oid;
use crate::limits::RULES_PER_ORG_MAX;
use crate::ports::Ports;
use crate::remembered::Remembered;
use crate::rules::Rule;

/// Memory that parsed rules of one process take at most, in bytes, by [`Rule::weight`].
const CACHE_BYTES_MAX: u64 = 256 << 20;

/// A version of a record: a change of it has another etag, so nothing here is ever stale.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Version {
    oid: Oid,
    name: String,
    etag: String,
}

/// Parsed rules of every organization.
#[derive(Clone)]
pub(super) struct Parsed(Remembered<Version, Option<Arc<Rule>>>);

impl Parsed {
    pub(super) fn new() -> Self {
        Self(Remembered::weighed(CACHE_BYTES_MAX, |version, rule| {
            let rule = rule.as_ref().map_or(0, |rule| rule.weight());
            let key = version.name.len() + version.etag.len() + 256;
            u32::try_from(rule + key).unwrap_or(u32::MAX)
        }))
    }

    /// The enabled rules of an organization by name, at most [`RULES_PER_ORG_MAX`]. A record that is no rule was
    /// written before rules were checked, and is passed over.
    pub(super) async fn of(&self, ports: &Ports, oid: Oid) -> Outcome<Vec<(String, Arc<Rule>)>> {
        let mut rules = Vec::new();
        let mut after = String::new();
        loop {
            let paging = hive::Paging {
                after: &after,
                tag: "",
                records_max: RULES_PER_ORG_MAX,
                bytes_max: usize::MAX,
            };
            let page = hive::list(ports, oid, RULES, paging).await?;
            for (name, record) in page.records {
                if !record.user.enabled {
                    continue;
                }
                let version = Version { oid, name: name.clone(), etag: record.etag };
                let parse = async { Rule::parse(&record.data).ok().map(Arc::new) };
                if let Some(rule) = &*self.0.get_or(version, parse).await {
                    rules.push((name, Arc::clone(rule)));
                }
                if rules.len() == RULES_PER_ORG_MAX {
                    return Ok(rules);
                }
            }
            match page.next {
                Some(next) => after = next,
                None => return Ok(rules),
            }
        }
    }
}
