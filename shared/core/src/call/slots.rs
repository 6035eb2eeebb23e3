//! How many deliveries of one extension are under way: a slow extension uses up its own places and nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::ids::ExtensionName;

/// Places by extension.
#[derive(Default)]
pub(super) struct Slots {
    taken: Arc<Mutex<HashMap<ExtensionName, usize>>>,
}

/// A place; free again when dropped.
pub(super) struct Slot {
    taken: Arc<Mutex<HashMap<ExtensionName, usize>>>,
    extension: ExtensionName,
}

impl Slots {
    /// Takes a place, unless `most` are taken.
    pub(super) fn take(&self, extension: &ExtensionName, most: usize) -> Option<Slot> {
        let mut taken = self.taken.lock().expect("no holder of the lock panics");
        let count = taken.entry(extension.clone()).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Slot { taken: Arc::clone(&self.taken), extension: extension.clone() })
    }
}

impl Drop for Slot {
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
