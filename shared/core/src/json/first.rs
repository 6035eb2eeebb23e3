//! Lists from outside of which only the start is kept.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `MOST` elements of a list, and how many there were: a short text can hold millions of empty ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First<T, const MOST: usize> {
    /// The elements that are kept.
    pub elements: Vec<T>,
    /// How many the list had.
    pub count: usize,
}

impl<T, const MOST: usize> Default for First<T, MOST> {
    fn default() -> Self {
        Self { elements: Vec::new(), count: 0 }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for First<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Start(PhantomData))
    }
}

struct Start<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Start<T, MOST> {
    type Value = First<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut first = First::default();
        while first.count < MOST {
            let Some(element) = seq.next_element()? else { return Ok(first) };
            first.elements.push(element);
            first.count += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            first.count += 1;
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_all_are_counted() {
        for (text, elements, count) in [
            ("[]", &[][..], 0),
            ("[1,2]", &[1, 2], 2),
            ("[1,2,3]", &[1, 2, 3], 3),
            ("[1,2,3,{\"a\":[]}, 5]", &[1, 2, 3], 5),
        ] {
            let expected = First::<u8, 3> { elements: elements.to_vec(), count };
            assert_eq!(serde_json::from_str::<First<u8, 3>>(text).unwrap(), expected, "{text}");
        }
        for bad in ["{}", "null", "[1,\"x\"]", "7"] {
            assert!(serde_json::from_str::<First<u8, 3>>(bad).is_err(), "{bad}");
        }
    }
}
