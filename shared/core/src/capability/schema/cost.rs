//! What validating with a schema costs at most, known before anything is validated.
//!
//! A part of a schema is applied to a value, and leads to others: *in place* to the same value, or to its elements and
//! members. So what is spent on one value at some depth is what the ways through the parts that lead there cost, and
//! there can be exponentially many. They are counted here by adding up, depth by depth; the result is one number for
//! each depth, which the values at that depth are multiplied with. Where one of several parts is applied, the
//! most expensive one is counted.

use super::graph::{Graph, Id, Part};
use crate::limits::{
    CAPABILITY_JSON_DEPTH_MAX, SCHEMA_CHAIN_MAX, SCHEMA_MERGED_MAX, SCHEMA_VISITS_MAX,
};

/// Depths of a value's parts: the value itself is at 0.
pub(super) const DEPTHS: usize = CAPABILITY_JSON_DEPTH_MAX + 1;

/// Conditions under which the library looks for the same leftovers, at most.
const CONDITIONS_MAX: u64 = 64;

/// What is spent on one value. Sums stop at the largest number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Parts of the schema that are applied.
    pub(super) visits: u64,
    /// Single looks and comparisons.
    pub(super) steps: u64,
    /// Steps for each byte of a text.
    pub(super) per_byte: u64,
    /// Times that elements are compared with each other.
    pub(super) unique: u64,
}

impl Cost {
    /// Applying a part that asks nothing.
    pub(super) const fn visit() -> Self {
        Self { visits: 1, steps: 1, per_byte: 0, unique: 0 }
    }

    fn add(&mut self, other: Self) {
        *self = self.zip(other, u64::saturating_add);
    }

    fn times(self, factor: u64) -> Self {
        self.zip(self, |a, _| a.saturating_mul(factor))
    }

    fn most(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            visits: f(self.visits, other.visits),
            steps: f(self.steps, other.steps),
            per_byte: f(self.per_byte, other.per_byte),
            unique: f(self.unique, other.unique),
        }
    }
}

/// What applying one part costs at one depth below it.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// If the value is a list, and if it is an object: it is not both.
    element: Cost,
    member: Cost,
    /// The same for looking at what the part leaves over.
    search_element: Cost,
    search_member: Cost,
    /// Steps by all ways in place, each way once; counted at depth 0 only.
    once: u64,
    /// Parts applied inside one another, down to that depth.
    chain: u64,
}

impl Way {
    fn total(&self) -> Cost {
        self.element.most(self.member)
    }

    fn add_in_place(&mut self, inner: &Self, conditions: u64) {
        self.element.add(inner.element);
        self.member.add(inner.member);
        self.search_element.add(inner.element.times(conditions));
        self.search_element.add(inner.search_element);
        self.search_member.add(inner.member.times(conditions));
        self.search_member.add(inner.search_member);
        self.once = self.once.saturating_add(inner.once);
    }
}

/// The bounds of a schema, by depth.
#[derive(Debug)]
pub(super) struct Bounds {
    /// What is spent on one value at a depth.
    pub(super) costs: Vec<Cost>,
    /// Parts applied inside one another for a value of a depth: the stack grows with them.
    pub(super) chains: Vec<u64>,
}

impl Bounds {
    /// Of a schema; refuses one whose validation never ends, or takes too long for the simplest value.
    pub(super) fn of(graph: &Graph) -> Result<Self, String> {
        let order = innermost_first(&graph.parts)?;
        let mut bounds = Self { costs: Vec::new(), chains: Vec::new() };
        let mut above: Vec<Way> = Vec::new();
        let mut visits = Vec::new();
        for depth in 0..DEPTHS {
            let mut ways = vec![Way::default(); graph.parts.len()];
            for &id in &order {
                ways[id] = way(&graph.parts[id], &ways, &above, &visits);
            }
            if depth == 0 {
                visits = ways.iter().map(|way| way.total().visits).collect();
                check_in_place(&graph.parts, &ways)?;
            }
            bounds.costs.push(ways[0].total());
            bounds.chains.push(ways[0].chain);
            above = ways;
        }
        Ok(bounds)
    }
}

fn check_in_place(parts: &[Part], ways: &[Way]) -> Result<(), String> {
    if ways.iter().any(|way| way.chain > SCHEMA_CHAIN_MAX) {
        return Err(format!("applies more than {SCHEMA_CHAIN_MAX} schemas inside one another"));
    }
    if ways.iter().any(|way| way.total().visits > SCHEMA_VISITS_MAX) {
        return Err(format!("applies more than {SCHEMA_VISITS_MAX} schemas to one value"));
    }
    let merging = parts.iter().zip(ways).filter(|(part, _)| part.is_merging);
    if merging.fold(0, |sum: u64, (_, way)| sum.saturating_add(way.once)) > SCHEMA_MERGED_MAX {
        return Err(format!(
            "has keywords allOf and unevaluated… that bring together more than {SCHEMA_MERGED_MAX} keywords and names"
        ));
    }
    Ok(())
}

/// The way from a part, made of the ways from those that it leads to in place, at the same depth, and of those that it
/// leads to one level down, whose ways are one level shorter. `above` is empty at depth 0.
fn way(part: &Part, ways: &[Way], above: &[Way], visits: &[u64]) -> Way {
    let mut way = Way::default();
    let is_here = above.is_empty();
    if is_here {
        way = Way {
            element: part.own,
            member: part.own,
            search_element: part.own,
            search_member: part.own,
            once: part.own.steps,
            chain: 0,
        };
    }
    for &inner in &part.in_place {
        let conditions =
            visits.get(inner).map_or(CONDITIONS_MAX, |count| CONDITIONS_MAX.min(*count));
        way.add_in_place(&ways[inner], conditions);
        way.chain = way.chain.max(ways[inner].chain);
    }
    if !is_here {
        way.element.add(any(&part.any_element, above));
        way.member.add(any(&part.any_member, above));
        // What was left over is found out with these, and then they are applied.
        let (element, member) = (each(&part.each_element, above), each(&part.each_member, above));
        way.element.add(element);
        way.search_element.add(element);
        way.member.add(member);
        way.search_member.add(member);
        let inner = [&part.any_element, &part.each_element, &part.any_member, &part.each_member];
        let chains = inner.into_iter().flatten().map(|id| above[*id].chain);
        way.chain = chains.fold(way.chain, u64::max);
    }
    if part.is_unevaluated {
        // The search applies the same parts by the same ways: it takes steps, and makes no further ways.
        way.element.add(Cost { visits: 0, ..way.search_element });
        way.member.add(Cost { visits: 0, ..way.search_member });
    }
    way.chain += 1;
    way
}

/// One of these parts, one level down.
fn any(parts: &[Id], above: &[Way]) -> Cost {
    parts.iter().fold(Cost::default(), |most, id| most.most(above[*id].total()))
}

/// All of these parts, one level down.
fn each(parts: &[Id], above: &[Way]) -> Cost {
    let mut sum = Cost::default();
    for id in parts {
        sum.add(above[*id].total());
    }
    sum
}

/// The parts, each behind all those that it leads to in place.
fn innermost_first(parts: &[Part]) -> Result<Vec<Id>, String> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; parts.len()];
    let mut order = Vec::with_capacity(parts.len());
    let mut stack: Vec<(Id, usize)> = Vec::new();
    for start in 0..parts.len() {
        if states[start] == State::New {
            states[start] = State::Open;
            stack.push((start, 0));
        }
        while let Some((id, next)) = stack.pop() {
            let Some(&inner) = parts[id].in_place.get(next) else {
                states[id] = State::Done;
                order.push(id);
                continue;
            };
            stack.push((id, next + 1));
            match states[inner] {
                State::Done => {}
                State::Open => return Err("a $ref leads back to itself without an end".to_owned()),
                State::New => {
                    states[inner] = State::Open;
                    stack.push((inner, 0));
                }
            }
        }
    }
    Ok(order)
}
