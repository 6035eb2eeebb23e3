//! How many deliveries of one extension are under way in this process: a slow extension uses up its own places and
//! nobody else's.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

/// Places by the name of the extension.
pub(crate) struct Slots<N> {
    taken: Arc<Mutex<HashMap<N, usize>>>,
}

impl<N> Default for Slots<N> {
    fn default() -> Self {
        Self { taken: Arc::default() }
    }
}

/// A place; free again when dropped.
pub(crate) struct Slot<N: Eq + Hash> {
    taken: Arc<Mutex<HashMap<N, usize>>>,
    extension: N,
}

impl<N: Clone + Eq + Hash> Slots<N> {
    /// Takes a place, unless `most` are taken.
    pub(crate) fn take(&self, extension: &N, most: usize) -> Option<Slot<N>> {
        let mut taken = self.taken.lock().expect("no holder of the lock panics");
        let count = taken.entry(extension.clone()).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Slot { taken: Arc::clone(&self.taken), extension: extension.clone() })
    }
}

impl<N: Eq + Hash> Drop for Slot<N> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().expect("no holder of the lock panics");
        if let Some(count) = taken.get_mut(&self.extension) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.extension);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ExtensionName;

    #[test]
    fn the_last_place_is_given_and_the_next_is_not_until_one_is_free() {
        let slots = Slots::default();
        let (a, b) = (ExtensionName::parse("a").unwrap(), ExtensionName::parse("b").unwrap());
        let first = slots.take(&a, 2);
        let second = slots.take(&a, 2);
        assert!(first.is_some() && second.is_some());
        assert!(slots.take(&a, 2).is_none());
        assert!(slots.take(&b, 2).is_some(), "another extension has places of its own");
        drop(first);
        assert!(slots.take(&a, 2).is_some());
        drop(second);
        assert!(slots.taken.lock().unwrap().is_empty(), "nothing is kept for free places");
    }
}
