//! Ids and random numbers from the operating system's generator: the same for one machine and for AWS.

use annex_core::ports::Ids;
use uuid::Uuid;

/// UUIDs of version 7 by the wall clock, each after the ones that this process made before, and random numbers that nobody
/// can guess.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemIds;

fn random<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    aws_lc_rs::rand::fill(&mut out)
        .expect("the system's generator never runs dry once it has started");
    out
}

impl Ids for SystemIds {
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn random(&self) -> u64 {
        u64::from_le_bytes(random())
    }

    fn secret(&self) -> [u8; 32] {
        random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_nothing_comes_twice() {
        let ids = SystemIds;
        let (first, second) = (ids.uuid(), ids.uuid());
        assert_eq!((first.get_version_num(), second.get_version_num()), (7, 7));
        assert!(first < second);
        assert_ne!(ids.random(), ids.random());
        assert_ne!(ids.secret(), ids.secret());
    }
}
