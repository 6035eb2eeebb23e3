//! How large a value is, by depth, read from its text.

use super::cost::{Bounds, Cost, DEPTHS};
use crate::json::{JsonFault, Scanner, Token};
use crate::limits::SCHEMA_STACK_CHAIN_MAX;

/// What stands at one depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Values.
    pub(super) values: u64,
    /// Bytes of texts and of their members' keys.
    pub(super) bytes: u64,
    /// Steps of comparing the elements of lists with each other.
    pub(super) pairs: u64,
}

/// A value's size.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// By depth, down to the deepest value; the whole is at 0.
    pub(super) levels: Vec<Level>,
    /// Keys of objects.
    pub(super) keys: usize,
}

/// A number of more characters may look like another once it is a floating-point number.
const EXACT_NUMBER_CHARS: usize = 15;

/// Steps of looking up an element among others by its hash.
const LOOKUP_STEPS: u64 = 16;

/// A container that was entered.
struct Open {
    at: usize,
    /// Values before it.
    before: u64,
    elements: u64,
    /// Whether elements of it can be made to hash alike: the library hashes lists by their scalars only.
    is_alike: bool,
}

impl Open {
    /// Steps of finding out whether all elements differ.
    fn pairs(&self, end: usize, values: u64) -> u64 {
        let size = values - self.before + (end - self.at) as u64 / 32;
        if self.is_alike { self.elements * size } else { self.elements * LOOKUP_STEPS + size }
    }
}

impl Measure {
    /// Reads a text, and checks it as [`crate::json::check`] does.
    pub(super) fn of(text: &str) -> Result<Self, JsonFault> {
        let mut measure = Self { levels: Vec::with_capacity(DEPTHS), keys: 0 };
        let mut scanner = Scanner::new(text);
        let mut open: Vec<Open> = Vec::new();
        let mut values = 0;
        while let Some(token) = scanner.token()? {
            match token {
                Token::Close(_) => {
                    let Some(closed) = open.pop() else { continue };
                    measure.level(open.len()).pairs += closed.pairs(scanner.end(), values);
                    continue;
                }
                Token::Key(key) => {
                    measure.keys += 1;
                    measure.level(open.len()).bytes += key.len() as u64;
                    continue;
                }
                Token::Text(inner) => measure.level(open.len()).bytes += inner.len() as u64,
                _ => {}
            }
            values += 1;
            measure.level(open.len()).values += 1;
            if let Some(parent) = open.last_mut() {
                parent.elements += 1;
                parent.is_alike |= match token {
                    Token::Open(_) => true,
                    Token::Number(number) => number.len() > EXACT_NUMBER_CHARS,
                    _ => false,
                };
            }
            if let Token::Open(_) = token {
                let at = scanner.start();
                open.push(Open { at, before: values, elements: 0, is_alike: false });
            }
        }
        Ok(measure)
    }

    fn level(&mut self, depth: usize) -> &mut Level {
        if self.levels.len() <= depth {
            self.levels.resize(depth + 1, Level::default());
        }
        &mut self.levels[depth]
    }

    /// The steps that validating such a value takes at most; `None` where the stack might not do.
    pub(super) fn steps(&self, bounds: &Bounds) -> Option<u64> {
        let deepest = self.levels.len().checked_sub(1)?;
        if *bounds.chains.get(deepest)? > SCHEMA_STACK_CHAIN_MAX {
            return None;
        }
        let mut steps: u64 = 0;
        // What is applied to a list or an object looks at each element and member too, and at each key.
        let mut outer = Cost::default();
        for (level, cost) in self.levels.iter().zip(&bounds.costs) {
            let per_value = cost.steps.saturating_add(outer.steps);
            let per_byte = cost.per_byte.saturating_add(outer.per_byte);
            for (count, each) in
                [(level.values, per_value), (level.bytes, per_byte), (level.pairs, cost.unique)]
            {
                steps = steps.saturating_add(count.saturating_mul(each));
            }
            outer = *cost;
        }
        Some(steps)
    }
}
