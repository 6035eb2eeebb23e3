//! Random values of requests: fresh ones, and ones that somebody gave.

use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::draft::Nonces;

/// Fresh values from the system's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct FreshNonces;

impl Nonces for FreshNonces {
    fn hawk(&self) -> String {
        random::<9>()
    }

    fn cnonce(&self) -> String {
        random::<16>()
    }

    fn uuid(&self) -> String {
        Uuid::new_v4().to_string()
    }

    fn boundary(&self) -> String {
        format!("annex-{}", random::<18>())
    }
}

/// So many random bytes in base64url.
pub(crate) fn random<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).expect("the system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Values that were given, one after the other; then ones that derive from them, always the same. For tests: whoever knows
/// them can send what was sent again.
#[derive(Debug)]
pub struct GivenNonces {
    values: Vec<String>,
    drawn: AtomicUsize,
    boundaries: AtomicUsize,
}

impl GivenNonces {
    /// With these values, of which each is used for one nonce, whatever its scheme.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, drawn: AtomicUsize::new(0), boundaries: AtomicUsize::new(0) }
    }

    fn next(&self) -> String {
        let index = self.drawn.fetch_add(1, Ordering::AcqRel);
        match self.values.get(index) {
            Some(value) => value.clone(),
            None => self.derived("nonce", index),
        }
    }

    fn derived(&self, purpose: &str, index: usize) -> String {
        let seed = format!("{purpose}:{index}:{}", self.values.join("\n"));
        hex::encode(&digest(&SHA256, seed.as_bytes()).as_ref()[..16])
    }
}

impl Nonces for GivenNonces {
    fn hawk(&self) -> String {
        self.next()
    }

    fn cnonce(&self) -> String {
        self.next()
    }

    fn uuid(&self) -> String {
        self.next()
    }

    fn boundary(&self) -> String {
        let index = self.boundaries.fetch_add(1, Ordering::AcqRel);
        format!("annex-{}", self.derived("boundary", index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AL-337, AL-380
    #[test]
    fn fresh_values_never_repeat() {
        for draw in [Nonces::hawk, Nonces::cnonce, Nonces::uuid, Nonces::boundary] {
            assert_ne!(draw(&FreshNonces), draw(&FreshNonces));
        }
        assert_eq!(FreshNonces.uuid().len(), 36);
        assert!(FreshNonces.boundary().len() <= 70);
    }

    #[test]
    fn given_values_come_in_their_order_and_then_always_the_same() {
        let nonces = || GivenNonces::new(vec!["a".into(), "b".into()]);
        let (one, two) = (nonces(), nonces());
        assert_eq!(
            [one.boundary(), one.hawk(), one.cnonce()],
            [two.boundary(), "a".into(), "b".into()]
        );
        let later = [one.uuid(), one.uuid()];
        assert_ne!(later[0], later[1]);
        assert_eq!([two.hawk(), two.hawk(), two.hawk(), two.hawk()][2..], later);
    }
}
