//! What references inside a schema mean: each becomes `#` and a path, so that names and their bases are read here, once,
//! and nothing behind this has another reading of them.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use super::keyword::{Kind, is_known_draft};
use super::place::{Place, cut};
use crate::limits::{CAPABILITY_SCHEMA_BYTES_MAX, SCHEMA_REFERENCES_MAX};

/// Longest name of a schema, in bytes, with its base.
const NAME_BYTES_MAX: usize = 2_048;

/// Bytes of all paths that are kept of a schema, or written into it.
const PATH_BYTES_MAX: usize = 4 * CAPABILITY_SCHEMA_BYTES_MAX;

/// The base of what has no name of its own. Nobody's schema is there.
const BASE: &str = "https://schema.invalid/";

/// What a fragment cannot hold as it is, and `%`, which would be read as the start of something encoded.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Settles all references of a schema, and drops what they named: `$id` and `$anchor`. `$dynamicAnchor` stays, and so
/// does a `$dynamicRef` to one; a schema with those has no other schemas in it.
pub(super) fn settle(schema: &mut Value) -> Result<(), String> {
    let mut names = Names { left: PATH_BYTES_MAX, ..Names::default() };
    let base = Url::parse(BASE).expect("it is a URL");
    names.resource(&base, "", &Place::default())?;
    names.collect(schema, &At { base: &base, resource: 0 }, "", &Place::default())?;
    names.rewrite(schema, &At { base: &base, resource: 0 }, &Place::default())
}

/// Where in the schemas inside a schema something stands.
#[derive(Clone, Copy)]
struct At<'a> {
    base: &'a Url,
    /// The number of the schema that has a name.
    resource: usize,
}

struct Anchor {
    path: String,
    is_dynamic: bool,
}

#[derive(Default)]
struct Names {
    /// The numbers of the schemas that have a name, by it.
    resources: HashMap<String, usize>,
    /// Their paths, by number.
    paths: Vec<String>,
    anchors: HashMap<(usize, String), Anchor>,
    /// Bytes of paths that may still be kept.
    left: usize,
}

impl Names {
    fn resource(&mut self, name: &Url, path: &str, place: &Place) -> Result<usize, String> {
        let number = self.paths.len();
        if number > SCHEMA_REFERENCES_MAX {
            return Err(place.fault(&format!("is one more than {SCHEMA_REFERENCES_MAX} names")));
        }
        if self.resources.insert(name.as_str().to_owned(), number).is_some() {
            return Err(place.fault("names two schemas"));
        }
        let path = self.kept(path, place)?;
        self.paths.push(path);
        Ok(number)
    }

    fn kept(&mut self, path: &str, place: &Place) -> Result<String, String> {
        self.left = self
            .left
            .checked_sub(path.len())
            .ok_or_else(|| place.fault("makes the paths of all references too long"))?;
        Ok(path.to_owned())
    }

    fn collect(
        &mut self,
        schema: &mut Value,
        at: &At<'_>,
        path: &str,
        place: &Place,
    ) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        let named = named(members, at.base, place)?;
        let resource = match &named {
            // The whole schema has one name at least, and its own beside it.
            Some(name) if path.is_empty() => {
                self.resources.insert(name.as_str().to_owned(), at.resource);
                at.resource
            }
            Some(name) => self.resource(name, path, &place.within("$id"))?,
            None => at.resource,
        };
        for word in ["$anchor", "$dynamicAnchor"] {
            let Some(name) = members.get(word) else { continue };
            let place = place.within(word);
            let name = name.as_str().ok_or_else(|| place.fault("is not a string"))?;
            let is_dynamic = word == "$dynamicAnchor";
            let anchor = Anchor { path: self.kept(path, &place)?, is_dynamic };
            let other = self.anchors.insert((resource, name.to_owned()), anchor);
            if other.is_some_and(|other| other.path != path) {
                return Err(place.fault("names two schemas"));
            }
        }
        let at = At { base: named.as_ref().unwrap_or(at.base), resource };
        each(members, |name, inner| {
            let (mut path, mut place) = (path.to_owned(), place.clone());
            for step in name {
                path.push('/');
                path.push_str(&step.replace('~', "~0").replace('/', "~1"));
                place = place.within(step);
            }
            self.collect(inner, &at, &path, &place)
        })
    }

    fn rewrite(&mut self, schema: &mut Value, at: &At<'_>, place: &Place) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        let named = named(members, at.base, place)?;
        let base = named.as_ref().unwrap_or(at.base);
        let resource = self.resources.get(base.as_str()).copied().unwrap_or(at.resource);
        let at = At { base, resource };
        if members.shift_remove("$id").is_some()
            && members.get("$schema").is_some_and(is_known_draft)
        {
            members.shift_remove("$schema");
        }
        members.shift_remove("$anchor");
        for word in ["$ref", "$dynamicRef"] {
            self.reference(members, word, &at, &place.within(word))?;
        }
        each(members, |name, inner| {
            let place = name.iter().fold(place.clone(), |place, step| place.within(step));
            self.rewrite(inner, &at, &place)
        })
    }

    fn reference(
        &mut self,
        members: &mut Map<String, Value>,
        word: &str,
        at: &At<'_>,
        place: &Place,
    ) -> Result<(), String> {
        let Some(to) = members.get(word) else { return Ok(()) };
        let to = to.as_str().ok_or_else(|| place.fault("is not a string"))?;
        let unknown = || place.fault(&format!("\"{}\" names no schema inside this one", cut(to)));
        let (path, dynamic) = self.target(to, at).ok_or_else(unknown)?;
        if word == "$dynamicRef" && dynamic.is_some() {
            if self.paths.len() > 1 {
                return Err(place.fault("is not supported beside schemas with an $id of their own"));
            }
            members
                .insert(word.to_owned(), Value::from(format!("#{}", dynamic.unwrap_or_default())));
            return Ok(());
        }
        let path = self.kept(&path, place)?;
        let settled = Value::from(format!("#{}", utf8_percent_encode(&path, ESCAPED)));
        // To what is not dynamic, a dynamic reference is a reference.
        if word == "$dynamicRef" && members.contains_key("$ref") {
            return Err(place.fault("is not supported beside $ref"));
        }
        if word == "$dynamicRef" {
            members.shift_remove(word);
        }
        members.insert("$ref".to_owned(), settled);
        Ok(())
    }

    /// The path that a reference names, and the name of the dynamic anchor that it does so by.
    fn target(&self, to: &str, at: &At<'_>) -> Option<(String, Option<String>)> {
        let (name, fragment) = to.split_once('#').unwrap_or((to, ""));
        let resource = match name {
            "" => at.resource,
            name => *self.resources.get(joined(at.base, name)?.as_str())?,
        };
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        let path = &self.paths[resource];
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some((format!("{path}{fragment}"), None));
        }
        let anchor = self.anchors.get(&(resource, fragment.clone().into_owned()))?;
        Some((anchor.path.clone(), anchor.is_dynamic.then(|| fragment.into_owned())))
    }
}

/// The name that a schema gives itself.
fn named(members: &Map<String, Value>, base: &Url, place: &Place) -> Result<Option<Url>, String> {
    let Some(id) = members.get("$id") else { return Ok(None) };
    let place = place.within("$id");
    let id = id.as_str().ok_or_else(|| place.fault("is not a string"))?;
    let name = id.strip_suffix('#').unwrap_or(id);
    if name.contains('#') {
        return Err(place.fault("has a fragment"));
    }
    joined(base, name).map(Some).ok_or_else(|| place.fault("is no URI, or too long"))
}

fn joined(base: &Url, name: &str) -> Option<Url> {
    base.join(name).ok().filter(|name| name.as_str().len() <= NAME_BYTES_MAX)
}

/// What stands inside a schema, and the names on the way to it. What is malformed is left to others.
fn each(
    members: &mut Map<String, Value>,
    mut visit: impl FnMut(&[&str], &mut Value) -> Result<(), String>,
) -> Result<(), String> {
    for (word, value) in members {
        match (Kind::of(word), value) {
            (Kind::Schema, inner) => visit(&[word], inner)?,
            (Kind::List, Value::Array(schemas)) => {
                for (index, inner) in schemas.iter_mut().enumerate() {
                    visit(&[word, &index.to_string()], inner)?;
                }
            }
            (Kind::Map, Value::Object(schemas)) => {
                for (name, inner) in schemas.iter_mut() {
                    visit(&[word, name], inner)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
