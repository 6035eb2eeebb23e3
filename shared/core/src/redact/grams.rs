//! Finds long patterns in a text by looking at four bytes in every few.
//!
//! Every pattern has at least `step + 3` bytes, so wherever one begins, one of its first `step` groups of four bytes
//! (*grams*) stands at the next place that is looked at. Nearly every place is passed by one look into a bit set of all
//! those grams; a place that is in the set is compared with the patterns that have its gram there.

use super::finder::{Anchor, Effort, Found, LONG_BYTES_MIN};

/// Bytes of a gram.
const GRAM_BYTES: usize = 4;

/// Largest step: places that are looked at are at most so far apart. A larger one needs more grams than it saves places.
const STEP_MAX: usize = 8;

/// Smallest step, which the shortest pattern has.
const STEP_MIN: usize = LONG_BYTES_MIN - GRAM_BYTES + 1;

/// Bits of a hash: the set has 32 KiB, which stays in the fastest cache.
const HASH_BITS: u32 = 18;

const WORDS: usize = 1 << (HASH_BITS - 6);

/// Places that are looked at together.
const PLACES: usize = 4;

/// Bytes in which those places lie, at the largest step.
const BLOCK_BYTES: usize = PLACES * STEP_MAX;

/// Bytes that a hit is worth to the [`Effort`]: eight comparisons, as a value has some forms that begin alike.
const HIT_BYTES: usize = 128;

#[derive(Clone)]
pub(super) struct Grams {
    step: usize,
    set: Box<[u64; WORDS]>,
    /// In the order of their grams.
    entries: Vec<Entry>,
}

/// A gram of an anchor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    gram: u32,
    anchor: u32,
    /// Bytes before it in the anchor.
    offset: u32,
}

impl Grams {
    /// For the anchors of [`LONG_BYTES_MIN`] bytes and more; `None` where there is none.
    pub(super) fn new(anchors: &[Anchor]) -> Option<Self> {
        let long =
            || (0_u32..).zip(anchors).filter(|(_, anchor)| LONG_BYTES_MIN <= anchor.text.len());
        let shortest = long().map(|(_, anchor)| anchor.text.len()).min()?;
        let step = (shortest - GRAM_BYTES + 1).min(STEP_MAX);
        let mut entries = Vec::with_capacity(long().count() * step);
        let mut set = Box::new([0; WORDS]);
        for (anchor, Anchor { text, .. }) in long() {
            for (offset, bytes) in (0_u32..).zip(text.as_bytes().windows(GRAM_BYTES)).take(step) {
                let gram = gram(bytes, 0);
                let (word, bit) = place(gram);
                set[word] |= 1 << bit;
                entries.push(Entry { gram, anchor, offset });
            }
        }
        entries.sort_unstable();
        Some(Self { step, set, entries })
    }

    /// The first anchor from `from` on, the longest of those that begin there; `None` where the effort is spent first.
    pub(super) fn find(
        &self,
        text: &[u8],
        anchors: &[Anchor],
        from: usize,
        effort: &mut Effort,
    ) -> Option<Option<Found>> {
        let mut passed = from;
        // Looked at is the last place where a pattern that begins at `from` or soon after it has a gram.
        let mut at = from + self.step - 1;
        while let Some(place) = self.next(text, at) {
            effort.earn(place - passed);
            passed = place;
            match self.compare(text, anchors, place, effort)? {
                Some(found) => {
                    // To hide something is no effort in vain.
                    effort.earn(HIT_BYTES);
                    return Some(Some(found));
                }
                None => at = place + self.step,
            }
        }
        Some(None)
    }

    /// The first and then longest anchor that has its gram at this place.
    fn compare(
        &self,
        text: &[u8],
        anchors: &[Anchor],
        place: usize,
        effort: &mut Effort,
    ) -> Option<Option<Found>> {
        let gram = gram(text, place);
        let first = self.entries.partition_point(|entry| entry.gram < gram);
        let mut best: Option<(usize, usize, Found)> = None;
        effort.spend().then_some(())?;
        for entry in self.entries[first..].iter().take_while(|entry| entry.gram == gram) {
            effort.spend().then_some(())?;
            let (start, anchor) = (place - entry.offset as usize, entry.anchor as usize);
            let pattern = anchors[anchor].text.as_bytes();
            if !text[start..].starts_with(pattern) {
                continue;
            }
            let is_better = best.is_none_or(|(best_start, length, _)| {
                start < best_start || (start == best_start && length < pattern.len())
            });
            if is_better {
                best = Some((start, pattern.len(), Found { start, anchor }));
            }
        }
        Some(best.map(|(_, _, found)| found))
    }

    /// The next place, in steps from `at`, whose gram is in the set.
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        match self.step {
            STEP_MIN => self.next_by::<STEP_MIN>(text, at),
            6 => self.next_by::<6>(text, at),
            7 => self.next_by::<7>(text, at),
            _ => self.next_by::<STEP_MAX>(text, at),
        }
    }

    fn next_by<const STEP: usize>(&self, text: &[u8], mut at: usize) -> Option<usize> {
        while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<BLOCK_BYTES>) {
            let has: [bool; PLACES] =
                std::array::from_fn(|index| self.has(gram(block, index * STEP)));
            if has != [false; PLACES] {
                return has.iter().position(|has| *has).map(|index| at + index * STEP);
            }
            at += PLACES * STEP;
        }
        while at + GRAM_BYTES <= text.len() {
            if self.has(gram(text, at)) {
                return Some(at);
            }
            at += STEP;
        }
        None
    }

    #[inline]
    fn has(&self, gram: u32) -> bool {
        let (word, bit) = place(gram);
        self.set[word] >> bit & 1 == 1
    }
}

#[inline]
fn gram(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Where the set has a gram: which word, and which bit of it.
#[inline]
fn place(gram: u32) -> (usize, u32) {
    let hash = gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS);
    ((hash >> 6) as usize, hash & 63)
}
