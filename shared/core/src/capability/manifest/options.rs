//! `x-chaster-options`: fields of an input whose choices come from a query.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::fields::{Fields, raw};
use crate::capability::id::Qualified;
use crate::json::Object;
use crate::limits::OPTIONS_FIELD_BYTES_MAX;

const KEYWORD: &str = "x-chaster-options";

/// Where the choices of a field come from.
#[derive(Debug, Clone)]
pub struct OptionsSource {
    /// The query that answers them: its id, which may be another extension's, or nobody's.
    pub query: Qualified,
    /// What it gets; `{}` where nothing is declared. A JSON object.
    pub params: Box<RawValue>,
}

/// The fields with choices of an input's schema, by name: that of their property, and for one inside an object the path
/// to it, `outer.inner`. An error says what is wrong, and where.
///
/// `schema` is one that [`super::super::schema::Schema::compile`] takes.
pub(crate) fn of_schema(schema: &str) -> Result<HashMap<String, OptionsSource>, String> {
    let mut found = HashMap::new();
    // Most schemas have none, and this is one look instead of many. The keyword may be spelled with escapes.
    if schema.contains(KEYWORD) || schema.contains("\\u") {
        properties(schema, "", "", &mut found)?;
    }
    Ok(found)
}

/// Adds the fields among the properties of a schema, which is that of the field `outer` and stands at `place`.
fn properties(
    schema: &str,
    outer: &str,
    place: &str,
    found: &mut HashMap<String, OptionsSource>,
) -> Result<(), String> {
    // `true` and `false` are schemas too.
    let Ok(schema) = Object::parse(schema) else { return Ok(()) };
    let Some(Ok(all)) = schema.get("properties").map(Object::parse) else {
        return Ok(());
    };
    let mut inner_fields = Vec::new();
    for (name, inner) in all.iter() {
        let field = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
        if field.len() > OPTIONS_FIELD_BYTES_MAX {
            // So long a field has no choices, and none inside it.
            continue;
        }
        let place = format!("{place}/properties/{name}");
        let Ok(members) = Object::parse(inner) else { continue };
        if let Some(declared) = members.get(KEYWORD) {
            let source = source(declared, &format!("{place}/{KEYWORD}"))?;
            found.entry(field.clone()).or_insert(source);
        }
        inner_fields.push((inner, field, place));
    }
    // Where a name has a dot in it, the field that is nearer to the whole wins.
    for (inner, field, place) in inner_fields {
        properties(inner, &field, &place, found)?;
    }
    Ok(())
}

fn source(declared: &str, place: &str) -> Result<OptionsSource, String> {
    let fields = Fields::open(place, declared, &["query", "params"])?;
    fields.required("query")?;
    let query = fields.text("query")?.and_then(|text| Qualified::parse(&text));
    let query = query.ok_or_else(|| fields.fault("query", "is not the id of a query"))?;
    let params = fields.optional("params").unwrap_or("{}");
    if !params.starts_with('{') {
        return Err(fields.fault("params", "is not an object"));
    }
    Ok(OptionsSource { query, params: raw(params) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, expected: Result<&[(&str, &str, &str)], &str>) {
        let found = of_schema(schema).map(|found| {
            let mut found: Vec<_> = found
                .into_iter()
                .map(|(field, source)| {
                    (field, source.query.to_string(), source.params.get().to_owned())
                })
                .collect();
            found.sort();
            found
        });
        let owned = |(field, query, params): &(&str, &str, &str)| {
            ((*field).to_owned(), (*query).to_owned(), (*params).to_owned())
        };
        let expected = expected.map(|found| found.iter().map(owned).collect::<Vec<_>>());
        assert_eq!(found, expected.map_err(str::to_owned), "{schema}");
    }

    /// A schema whose property `a` has this keyword.
    fn of(declared: &str) -> String {
        format!(r#"{{"properties":{{"a":{{"x-chaster-options":{declared}}}}}}}"#)
    }

    #[test]
    fn a_property_names_the_query_behind_its_choices() {
        // CH-016
        check("true", Ok(&[]));
        check("{}", Ok(&[]));
        check(r#"{"properties":{"a":{},"b":true}}"#, Ok(&[]));
        check(&of(r#"{"query":"dice.sides"}"#), Ok(&[("a", "dice.sides", "{}")]));
        check(
            &of(r#"{"params":{"n":1.50,"s":"x"},"query":"dice.sides"}"#),
            Ok(&[("a", "dice.sides", r#"{"n":1.50,"s":"x"}"#)]),
        );
        check(
            r#"{"properties":{"o":{"properties":{"i":{"x-chaster-options":{"query":"a.b"}}}},
                "p":{"x-chaster-\u006fptions":{"query":"c.d"}}}}"#,
            Ok(&[("o.i", "a.b", "{}"), ("p", "c.d", "{}")]),
        );
        check(
            r#"{"properties":{"o":{"properties":{"i":{"x-chaster-options":{"query":"a.inner"}}}},
                "o.i":{"x-chaster-options":{"query":"a.outer"}}}}"#,
            Ok(&[("o.i", "a.outer", "{}")]),
        );
        // A property of this name, and not the keyword.
        check(r#"{"properties":{"x-chaster-options":{"query":1}}}"#, Ok(&[]));
    }

    #[test]
    fn a_keyword_that_is_not_well_formed_is_refused_with_its_place() {
        let at = "/properties/a/x-chaster-options";
        for (declared, what) in [
            ("true", ": not a JSON object"),
            ("{}", ".query: is missing"),
            (r#"{"query":1}"#, ".query: is not a string"),
            (r#"{"query":null}"#, ".query: is null: leave it out, or give a value"),
            (r#"{"query":"sides"}"#, ".query: is not the id of a query"),
            (r#"{"query":"a.b","params":[]}"#, ".params: is not an object"),
            (r#"{"query":"a.b","more":1}"#, ".more: is not known"),
            (r#"{"query":"a.b","query":"a.b"}"#, ": the key \"query\" stands twice"),
        ] {
            check(&of(declared), Err(&format!("{at}{what}")));
        }
    }

    #[test]
    fn a_field_has_a_name_of_limited_length() {
        let schema = |name: &str| {
            format!(r#"{{"properties":{{"{name}":{{"x-chaster-options":{{"query":"a.b"}}}}}}}}"#)
        };
        let longest = "n".repeat(OPTIONS_FIELD_BYTES_MAX);
        check(&schema(&longest), Ok(&[(&longest, "a.b", "{}")]));
        check(&schema(&format!("{longest}n")), Ok(&[]));
    }
}
