//! References to secrets in the values of fields.

use indexmap::IndexSet;

use super::{Kind, ObjectSchema, shown};
use crate::ids::is_name;
use crate::json::{Object, elements, quote, text};

/// What a reference to a secret begins with; its name follows.
pub const SECRET_PREFIX: &str = "hive://secret/";

/// The names of the secrets that `data` refers to, sorted by field, each once.
///
/// Only fields of type `secret` can refer to one, so that a caller cannot have any secret sent to an extension that
/// echoes (LC-007). A name that no secret can have is left out: [`fill_secrets`] reports it as missing.
pub fn secret_references(schema: &ObjectSchema, data: &Object) -> Vec<String> {
    let mut names = IndexSet::new();
    for (_, value) in secret_fields(schema, data) {
        for_each_string(value, |raw| {
            if let Some(name) = reference(raw)
                && is_name(&name)
            {
                names.insert(name);
            }
        });
    }
    names.into_iter().collect()
}

/// Puts the values of secrets where `data` refers to them. The error is the name of the first that is missing: for
/// which `lookup` has no value, or that no secret can have; `data` is then unchanged.
pub fn fill_secrets(
    schema: &ObjectSchema,
    data: &mut Object,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let mut filled = Vec::new();
    for (name, value) in secret_fields(schema, data) {
        if let Some(value) = fill(value, lookup)? {
            filled.push((name.to_owned(), value));
        }
    }
    for (name, value) in filled {
        data.insert_checked(&name, &value);
    }
    Ok(())
}

fn secret_fields<'a>(
    schema: &'a ObjectSchema,
    data: &'a Object,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = schema.fields().filter(|(_, field)| field.kind == Kind::Secret);
    fields.filter_map(|(name, _)| Some((name, data.get(name)?)))
}

fn for_each_string(value: &str, mut visit: impl FnMut(&str)) {
    if value.starts_with('[') { elements(value).for_each(visit) } else { visit(value) }
}

/// The name that a raw value refers to, if it is a reference.
fn reference(raw: &str) -> Option<String> {
    text(raw)?.strip_prefix(SECRET_PREFIX).map(str::to_owned)
}

/// The raw value with its references replaced; `None` when it has none.
fn fill(value: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    let secret = |raw: &str| match reference(raw) {
        None => Ok(None),
        Some(name) if !is_name(&name) => Err(shown(&name).to_owned()),
        Some(name) => lookup(&name).map(|secret| Some(quote(&secret))).ok_or(name),
    };
    if !value.starts_with('[') {
        return secret(value);
    }
    let mut out = String::from("[");
    let mut is_filled = false;
    for raw in elements(value) {
        if out.len() > 1 {
            out.push(',');
        }
        match secret(raw)? {
            Some(secret) => {
                is_filled = true;
                out.push_str(&secret);
            }
            None => out.push_str(raw),
        }
    }
    out.push(']');
    Ok(is_filled.then_some(out))
}
