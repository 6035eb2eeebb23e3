//! Counting under bounds: the one write that looks before it adds.

use std::collections::BTreeMap;

use super::{Key, Write};
use crate::time::Timestamp;

/// Adds to counters of one item, if all of them that have a bound stand under it.
///
/// Where one does not, nothing is added and the item stays as it is, its expiry included. Whether the bounds hold and
/// the adding are one step: of any number of concurrent callers just as many get through as the bounds let.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Where.
    pub key: Key,
    /// What a new item holds; what stands there stays.
    pub data: Vec<u8>,
    /// What is added to which counter; at most [`crate::limits::COUNT_COUNTERS_MAX`]. A counter stops at 38 digits.
    pub add: Vec<(String, i128)>,
    /// What each counter must be less than before anything is added; one that is absent is 0. At most
    /// [`crate::limits::COUNT_COUNTERS_MAX`]. A counter may have a bound without being added to.
    pub below: Vec<(String, i128)>,
    /// The new expiry, where something is added; `None` keeps the item for good.
    pub expires_at: Option<Timestamp>,
}

/// How a count came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// It was added. These are all counters of the item now.
    Done(BTreeMap<String, i128>),
    /// Nothing was added: a counter has reached its bound. These are all counters of the item that stands there; none
    /// where there is no live one.
    Refused(BTreeMap<String, i128>),
}

impl Count {
    /// Whether each counter that has a bound is under it.
    pub fn fits(&self, counters: &BTreeMap<String, i128>) -> bool {
        let stands = |name| counters.get(name).copied().unwrap_or(0);
        self.below.iter().all(|(name, bound)| stands(name) < *bound)
    }

    /// The write that does it once the bounds hold.
    pub fn tally(&self) -> Write {
        Write::Tally {
            key: self.key.clone(),
            data: self.data.clone(),
            add: self.add.clone(),
            expires_at: self.expires_at,
        }
    }
}
