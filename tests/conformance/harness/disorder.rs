//! How queues may deliver: at least once, in any order, and as late as they like.

use std::collections::BTreeMap;
use std::time::Duration;

use super::tap::Queued;

/// One way of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Disorder {
    /// Once, when it is due, in order.
    #[default]
    None,
    /// Every message twice, one after the other.
    Twice,
    /// Every message twice in one batch.
    SideBySide,
    /// Every message once more after it was worked on.
    Again,
    /// The last one first.
    Reverse,
    /// In a random order of this seed.
    Shuffled(u64),
    /// So much later than it is due.
    Delayed(Duration),
}

impl Disorder {
    /// Every way, with the seeds and delays that are tried.
    pub(crate) const ALL: &[Self] = &[
        Self::Twice,
        Self::SideBySide,
        Self::Again,
        Self::Reverse,
        Self::Shuffled(1),
        Self::Shuffled(2),
        Self::Shuffled(3),
        Self::Shuffled(4),
        Self::Delayed(Duration::from_secs(401)),
        Self::Delayed(Duration::from_secs(13 * 3600)),
    ];

    /// Whether messages come more than once.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::Twice | Self::SideBySide | Self::Again)
    }

    /// Whether no message comes later than this after it is due.
    pub(crate) fn delays_at_most(self, most: Duration) -> bool {
        !matches!(self, Self::Reverse | Self::Shuffled(_)) && self.delay() <= most
    }

    pub(crate) fn copies(self) -> usize {
        if self == Self::Twice { 2 } else { 1 }
    }

    pub(crate) fn again(self) -> bool {
        self == Self::Again
    }

    pub(crate) fn delay(self) -> Duration {
        if let Self::Delayed(delay) = self { delay } else { Duration::ZERO }
    }

    /// The number of the message that is next.
    pub(crate) fn next(&mut self, queued: &BTreeMap<u64, Queued>) -> Option<u64> {
        let order = |found: &&Queued| (found.due, found.number);
        let found = match self {
            Self::Reverse => queued.values().max_by_key(order),
            Self::Shuffled(seed) => {
                // A linear congruential generator is random enough to choose.
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
                let count = u64::try_from(queued.len()).expect("there are few").max(1);
                let place = usize::try_from((*seed >> 33) % count).expect("there are few");
                queued.values().nth(place)
            }
            _ => queued.values().min_by_key(order),
        };
        found.map(|found| found.number)
    }
}
