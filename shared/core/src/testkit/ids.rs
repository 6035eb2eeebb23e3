//! Ids that are the same in every run.

use std::sync::Mutex;

use uuid::Uuid;

use crate::ports::Ids;

/// Ids and random numbers from a seed: the same seed gives the same sequence. Nothing of it is secret.
#[derive(Debug)]
pub struct SeededIds(Mutex<State>);

#[derive(Debug)]
struct State {
    seed: u64,
    millis: u64,
}

impl SeededIds {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(State { seed, millis: 1_700_000_000_000 }))
    }
}

impl Ids for SeededIds {
    fn uuid(&self) -> Uuid {
        let mut rest = [0; 10];
        rest.copy_from_slice(&self.secret()[..10]);
        let mut state = self.0.lock().expect("no holder of the lock panics");
        state.millis += 1;
        uuid::Builder::from_unix_timestamp_millis(state.millis, &rest).into_uuid()
    }

    fn random(&self) -> u64 {
        // SplitMix64.
        let mut state = self.0.lock().expect("no holder of the lock panics");
        state.seed = state.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn secret(&self) -> [u8; 32] {
        let mut out = [0; 32];
        for part in out.chunks_exact_mut(8) {
            part.copy_from_slice(&self.random().to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence_of_ordered_ids() {
        let draw = |seed| {
            let ids = SeededIds::new(seed);
            (ids.uuid(), ids.uuid(), ids.random(), ids.secret())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let (first, second, ..) = draw(1);
        assert!(first < second);
        assert_eq!(first.get_version_num(), 7);
    }
}
