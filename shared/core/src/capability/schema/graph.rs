//! Which parts of a schema are applied to which parts of a value.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::cost::Cost;
use super::keyword::Kind;
use super::pattern::Patterns;
use super::place::{Place, cut};
use crate::limits::{SCHEMA_PARTS_MAX, SCHEMA_REFERENCES_MAX, SCHEMA_UNEVALUATED_MAX};

/// Index of a part in [`Graph::parts`].
pub(super) type Id = usize;

/// A schema inside a schema, or the whole.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// What applying it costs by itself.
    pub(super) own: Cost,
    /// Applied to the same value.
    pub(super) in_place: Vec<Id>,
    /// Applied to elements: one of these to each.
    pub(super) any_element: Vec<Id>,
    /// Applied to elements: all of these to each.
    pub(super) each_element: Vec<Id>,
    /// Applied to members: one of these to each.
    pub(super) any_member: Vec<Id>,
    /// Applied to members: all of these to each.
    pub(super) each_member: Vec<Id>,
    /// Whether it looks for what other parts left over. For that, those are applied again.
    pub(super) is_unevaluated: bool,
    /// Whether the library brings together what all parts below it in place declare, when it is first used.
    pub(super) is_merging: bool,
}

/// A schema as its parts. The first is the whole.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) parts: Vec<Part>,
}

impl Graph {
    /// Of a schema that was cleaned.
    pub(super) fn of(schema: &Value, patterns: &mut Patterns) -> Result<Self, String> {
        let mut builder = Builder {
            root: schema,
            parts: Vec::new(),
            ids: HashMap::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
            unevaluated: 0,
            patterns,
        };
        builder.part(schema, &Place::default())?;
        builder.finish()
    }
}

/// Steps of dividing numbers of very different sizes.
const MULTIPLE_STEPS: u64 = 1_000;

struct Reference<'s> {
    from: Id,
    to: &'s str,
    place: Place,
}

struct Builder<'s, 'p> {
    root: &'s Value,
    parts: Vec<Part>,
    /// Parts by where they lie in memory: the texts of their paths could be long.
    ids: HashMap<*const Value, Id>,
    anchors: HashMap<&'s str, Id>,
    references: Vec<Reference<'s>>,
    unevaluated: usize,
    patterns: &'p mut Patterns,
}

impl<'s> Builder<'s, '_> {
    fn part(&mut self, schema: &'s Value, place: &Place) -> Result<Id, String> {
        let id = self.parts.len();
        if id == SCHEMA_PARTS_MAX {
            let what = format!("is one more than the {SCHEMA_PARTS_MAX} schemas inside one");
            return Err(place.fault(&what));
        }
        self.ids.insert(std::ptr::from_ref(schema), id);
        self.parts.push(Part::default());
        let mut part = Part { own: Cost::visit(), ..Part::default() };
        if let Value::Object(members) = schema {
            for (word, value) in members {
                self.keyword(id, &mut part, word, value, &place.within(word))?;
            }
            part.is_unevaluated = members.contains_key("unevaluatedItems")
                || members.contains_key("unevaluatedProperties");
            part.is_merging = part.is_unevaluated || members.contains_key("allOf");
        }
        self.parts[id] = part;
        Ok(id)
    }

    fn keyword(
        &mut self,
        id: Id,
        part: &mut Part,
        word: &'s str,
        value: &'s Value,
        place: &Place,
    ) -> Result<(), String> {
        part.own.steps += 1;
        match (Kind::of(word), value) {
            (Kind::Schema, _) => {
                let inner = self.part(value, place)?;
                self.schema(part, word, inner, place)?;
            }
            (Kind::List, Value::Array(schemas)) => {
                let into =
                    if word == "prefixItems" { &mut part.any_element } else { &mut part.in_place };
                for (index, schema) in schemas.iter().enumerate() {
                    into.push(self.part(schema, &place.within(&index.to_string()))?);
                }
            }
            (Kind::Map, Value::Object(schemas)) => self.map(part, word, schemas, place)?,
            _ => self.plain(id, part, word, value, place)?,
        }
        Ok(())
    }

    fn schema(
        &mut self,
        part: &mut Part,
        word: &str,
        inner: Id,
        place: &Place,
    ) -> Result<(), String> {
        if word.starts_with("unevaluated") {
            self.unevaluated += 1;
            if self.unevaluated > SCHEMA_UNEVALUATED_MAX {
                return Err(place.fault(&format!(
                    "is one more than the {SCHEMA_UNEVALUATED_MAX} such keywords of a schema"
                )));
            }
        }
        match word {
            "items" => part.any_element.push(inner),
            "contains" | "unevaluatedItems" => part.each_element.push(inner),
            "additionalProperties" => part.any_member.push(inner),
            "propertyNames" | "unevaluatedProperties" => part.each_member.push(inner),
            _ => part.in_place.push(inner),
        }
        Ok(())
    }

    fn map(
        &mut self,
        part: &mut Part,
        word: &str,
        schemas: &'s Map<String, Value>,
        place: &Place,
    ) -> Result<(), String> {
        for (name, schema) in schemas {
            let place = place.within(name);
            let inner = self.part(schema, &place)?;
            match word {
                "properties" => part.any_member.push(inner),
                "dependentSchemas" => part.in_place.push(inner),
                "patternProperties" => {
                    part.own.per_byte += self.patterns.steps(name, &place)?;
                    part.each_member.push(inner);
                }
                _ => continue,
            }
            part.own.steps += 1;
        }
        Ok(())
    }

    fn plain(
        &mut self,
        id: Id,
        part: &mut Part,
        word: &str,
        value: &'s Value,
        place: &Place,
    ) -> Result<(), String> {
        match (word, value) {
            ("$ref" | "$dynamicRef", Value::String(to)) => {
                self.references.push(Reference { from: id, to, place: place.clone() });
            }
            ("$dynamicAnchor", Value::String(name)) => {
                if self.anchors.insert(name, id).is_some_and(|other| other != id) {
                    return Err(place.fault("names two schemas"));
                }
            }
            ("pattern", Value::String(pattern)) => {
                part.own.per_byte += self.patterns.steps(pattern, place)?;
            }
            ("minLength" | "maxLength", _) => part.own.per_byte += 1,
            ("multipleOf", _) => part.own.steps += MULTIPLE_STEPS,
            ("uniqueItems", Value::Bool(true)) => part.own.unique += 1,
            _ => {
                let (steps, bytes) = size(value);
                part.own.steps += steps + bytes / 16;
            }
        }
        Ok(())
    }

    /// Puts the references in.
    fn finish(mut self) -> Result<Graph, String> {
        let references = std::mem::take(&mut self.references);
        let mut targets = HashSet::new();
        for Reference { from, to, place } in references {
            let Some(target) = self.resolve(to) else {
                let what = format!("\"{}\" names no schema inside this one", cut(to));
                return Err(place.fault(&what));
            };
            targets.insert(target);
            if targets.len() > SCHEMA_REFERENCES_MAX {
                return Err(place.fault(&format!(
                    "is one more than the {SCHEMA_REFERENCES_MAX} schemas that are referred to"
                )));
            }
            self.parts[from].in_place.push(target);
        }
        Ok(Graph { parts: self.parts })
    }

    /// The part that a settled reference names: `#`, `#/a/path` or, where it is dynamic, `#anchor`.
    fn resolve(&self, to: &str) -> Option<Id> {
        let fragment = percent_decode_str(to.strip_prefix('#')?).decode_utf8().ok()?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let target = self.root.pointer(&fragment)?;
            return self.ids.get(&std::ptr::from_ref(target)).copied();
        }
        self.anchors.get(&*fragment).copied()
    }
}

/// Values in a value, itself included, and bytes of the texts among them.
fn size(value: &Value) -> (u64, u64) {
    let sum = |(steps, bytes): (u64, u64), inner: &Value| {
        let (more_steps, more_bytes) = size(inner);
        (steps + more_steps, bytes + more_bytes)
    };
    match value {
        Value::String(text) => (1, text.len() as u64),
        Value::Array(elements) => elements.iter().fold((1, 0), sum),
        Value::Object(members) => {
            let names = members.keys().map(|name| name.len() as u64).sum();
            members.values().fold((1, names), sum)
        }
        _ => (1, 0),
    }
}
