//! One version of an extension with its schemas compiled.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::value::RawValue;

use crate::limits::{
    COMPILED_ENTRY_BYTES, COMPILED_PATTERNS_BYTES, COMPILED_SCHEMA_FACTOR, PATTERN_BYTES_MAX,
};

use super::id::Qualified;
use super::manifest::options::{self, OptionsSource};
use super::model::{Capability, EventDeclaration, Manifest};
use super::refusal::Refusal;
use super::schema::Schema;

/// One version of an extension: what it declares, by id, each schema compiled when it is first needed.
#[derive(Debug)]
pub struct Compiled {
    capabilities: HashMap<Qualified, CompiledCapability>,
    events: HashMap<Qualified, CompiledEvent>,
    bytes: usize,
}

impl Compiled {
    /// Of a manifest that was read with [`super::manifest::read`].
    pub fn new(manifest: &Manifest) -> Self {
        let commands = manifest.commands.iter().map(|declared| (declared, false));
        let queries = manifest.queries.iter().map(|declared| (declared, true));
        let capabilities = commands.chain(queries).map(|(declared, is_query)| {
            (declared.id.clone(), CompiledCapability::new(declared.clone(), is_query))
        });
        let events = manifest.events.iter().map(|declared| {
            let event = CompiledEvent { declared: declared.clone(), payload: OnceLock::new() };
            (declared.event.clone(), event)
        });
        Self {
            capabilities: capabilities.collect(),
            events: events.collect(),
            bytes: weight(manifest),
        }
    }

    /// About what it takes in memory once all of it was used, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The command or query of this id; `None` is [`Refusal::UnknownCommand`] (CH-013, CH-014).
    pub fn capability(&self, id: &Qualified) -> Option<&CompiledCapability> {
        self.capabilities.get(id)
    }

    /// The command of this id.
    pub fn command(&self, id: &Qualified) -> Option<&CompiledCapability> {
        self.capability(id).filter(|capability| !capability.is_query)
    }

    /// The query of this id.
    pub fn query(&self, id: &Qualified) -> Option<&CompiledCapability> {
        self.capability(id).filter(|capability| capability.is_query)
    }

    /// The event of this type; `None` is [`Refusal::UnknownEvent`] (CH-015).
    pub fn event(&self, event: &Qualified) -> Option<&CompiledEvent> {
        self.events.get(event)
    }
}

/// About what a compiled manifest takes in memory, in bytes. Its patterns are taken for as large as they may be.
fn weight(manifest: &Manifest) -> usize {
    let capabilities = manifest.commands.iter().chain(&manifest.queries);
    let schemas = capabilities
        .flat_map(|each| std::iter::once(&each.input_schema).chain(&each.output_schema))
        .chain(manifest.events.iter().map(|each| &each.payload_schema));
    let mut bytes = COMPILED_ENTRY_BYTES;
    let mut patterns = 0;
    for schema in schemas {
        // `pattern`, and `patternProperties`, which may hold several.
        let words = schema.get().matches("attern").count();
        patterns += if words == 0 { 0 } else { words + schema.get().matches(':').count() };
        bytes += COMPILED_ENTRY_BYTES + COMPILED_SCHEMA_FACTOR * schema.get().len();
    }
    bytes + (patterns * PATTERN_BYTES_MAX).min(COMPILED_PATTERNS_BYTES)
}

/// A command or a query with its schemas.
#[derive(Debug)]
pub struct CompiledCapability {
    /// As it was declared.
    pub declared: Capability,
    /// Whether it is a query.
    pub is_query: bool,
    /// Fields with dynamic choices, by name.
    options: HashMap<String, OptionsSource>,
    input: OnceLock<Option<Schema>>,
    output: OnceLock<Option<Schema>>,
}

impl CompiledCapability {
    fn new(declared: Capability, is_query: bool) -> Self {
        let options = options::of_schema(declared.input_schema.get()).unwrap_or_default();
        Self { declared, is_query, options, input: OnceLock::new(), output: OnceLock::new() }
    }

    /// Checks an input: [`Refusal::InvalidInput`] where it does not fit the `inputSchema` (CH-022), is nested too deep
    /// (CH-065), is no JSON text, or is too large or too costly to be validated.
    pub fn check_input(&self, input: &[u8]) -> Result<(), Refusal> {
        if fits(&self.input, &self.declared.input_schema, input) {
            Ok(())
        } else {
            Err(Refusal::InvalidInput)
        }
    }

    /// Whether an output is a JSON text that fits the `outputSchema`. Without one, every JSON text does.
    pub fn check_output(&self, output: &[u8]) -> bool {
        match &self.declared.output_schema {
            None => crate::json::check(output).is_ok(),
            Some(schema) => fits(&self.output, schema, output),
        }
    }

    /// Where the choices of a field of the input come from; `None` is [`Refusal::OptionsNotDeclared`] (CH-016).
    ///
    /// A field is named by its property, and one inside an object by the path to it: `outer.inner`.
    pub fn options(&self, field: &str) -> Option<&OptionsSource> {
        self.options.get(field)
    }
}

/// An event with its schema.
#[derive(Debug)]
pub struct CompiledEvent {
    /// As it was declared.
    pub declared: EventDeclaration,
    payload: OnceLock<Option<Schema>>,
}

impl CompiledEvent {
    /// Checks a payload: [`Refusal::InvalidPayload`] where it does not fit the `payloadSchema` (CH-023), is nested too
    /// deep (CH-066), is no JSON text, or is too large or too costly to be validated.
    pub fn check_payload(&self, payload: &[u8]) -> Result<(), Refusal> {
        if fits(&self.payload, &self.declared.payload_schema, payload) {
            Ok(())
        } else {
            Err(Refusal::InvalidPayload)
        }
    }
}

/// Whether a text fits a schema, which is compiled where it was not yet. One that does not compile, although it was
/// accepted with its manifest, takes nothing.
fn fits(compiled: &OnceLock<Option<Schema>>, schema: &RawValue, text: &[u8]) -> bool {
    let schema = compiled.get_or_init(|| match Schema::compile(schema.get()) {
        Ok(schema) => Some(schema),
        Err(fault) => {
            tracing::error!("a schema that was accepted does not compile: {fault}");
            None
        }
    });
    schema.as_ref().is_some_and(|schema| schema.accepts(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::id::Slug;
    use crate::capability::manifest;
    use crate::limits::CAPABILITY_JSON_DEPTH_MAX;

    const DICE: &str = r#"{
        "commands": [
            {"id":"dice.roll","title":"Roll","inputSchema":{"type":"object","properties":{
                "sides":{"type":"integer","x-chaster-options":{"query":"dice.sides","params":{"n":1.0}}}}},
             "outputSchema":{"type":"object","required":["n"]},"invocableBy":["wearer","extension"]},
            {"id":"dice.free","title":"Free","inputSchema":true,"invocableBy":[]}],
        "queries": [{"id":"dice.sides","title":"Sides","inputSchema":{},"invocableBy":["extension"]}],
        "events": [{"type":"dice.rolled","payloadSchema":{"type":"object","required":["n"]},"hidden":true}]
    }"#;

    fn manifest(text: &str) -> Manifest {
        let slug = Slug::parse("dice").unwrap();
        manifest::read(&slug, text.as_bytes()).unwrap().apply(&Manifest::default()).unwrap()
    }

    fn dice() -> Compiled {
        Compiled::new(&manifest(DICE))
    }

    fn id(text: &str) -> Qualified {
        Qualified::parse(text).unwrap()
    }

    #[test]
    fn a_capability_is_found_by_its_id_and_kind() {
        // CH-013, CH-014, CH-015
        let dice = dice();
        let check = |name: &str, is_command: bool, is_query: bool, is_event: bool| {
            let id = id(name);
            assert_eq!(dice.command(&id).is_some(), is_command, "{name}");
            assert_eq!(dice.query(&id).is_some(), is_query, "{name}");
            assert_eq!(dice.capability(&id).is_some(), is_command || is_query, "{name}");
            assert_eq!(dice.event(&id).is_some(), is_event, "{name}");
        };
        check("dice.roll", true, false, false);
        check("dice.sides", false, true, false);
        check("dice.rolled", false, false, true);
        check("dice.other", false, false, false);
        check("card.roll", false, false, false);
        assert!(dice.event(&id("dice.rolled")).is_some_and(|event| event.declared.hidden));
    }

    #[test]
    fn an_input_that_does_not_fit_is_an_invalid_input() {
        // CH-022, CH-065
        let dice = dice();
        let check = |name: &str, input: &str, expected: Result<(), Refusal>| {
            let capability = dice.capability(&id(name)).unwrap();
            assert_eq!(capability.check_input(input.as_bytes()), expected, "{name} {input}");
        };
        check("dice.roll", r#"{"sides":6}"#, Ok(()));
        check("dice.roll", r#"{"sides":"6"}"#, Err(Refusal::InvalidInput));
        check("dice.roll", "[]", Err(Refusal::InvalidInput));
        check("dice.roll", "", Err(Refusal::InvalidInput));
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        check("dice.free", &nested(CAPABILITY_JSON_DEPTH_MAX), Ok(()));
        check("dice.free", &nested(CAPABILITY_JSON_DEPTH_MAX + 1), Err(Refusal::InvalidInput));
        check("dice.sides", "{}", Ok(()));
    }

    #[test]
    fn a_payload_that_does_not_fit_is_an_invalid_payload() {
        // CH-023, CH-066
        let dice = dice();
        let check = |payload: &str, expected: Result<(), Refusal>| {
            let event = dice.event(&id("dice.rolled")).unwrap();
            assert_eq!(event.check_payload(payload.as_bytes()), expected, "{payload}");
        };
        let nested = |levels: usize| {
            format!(r#"{{"n":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
        };
        check(r#"{"n":1}"#, Ok(()));
        check("{}", Err(Refusal::InvalidPayload));
        check(&nested(CAPABILITY_JSON_DEPTH_MAX), Ok(()));
        check(&nested(CAPABILITY_JSON_DEPTH_MAX + 1), Err(Refusal::InvalidPayload));
    }

    #[test]
    fn an_output_fits_its_schema_where_there_is_one() {
        let dice = dice();
        let check = |name: &str, output: &str, fits: bool| {
            let capability = dice.capability(&id(name)).unwrap();
            assert_eq!(capability.check_output(output.as_bytes()), fits, "{name} {output}");
        };
        check("dice.roll", r#"{"n":1}"#, true);
        check("dice.roll", "{}", false);
        check("dice.free", "7", true);
        check("dice.free", "seven", false);
    }

    #[test]
    fn a_field_with_choices_names_its_query() {
        // CH-016
        let dice = dice();
        let check = |name: &str, field: &str, expected: Option<(&str, &str)>| {
            let source = dice.capability(&id(name)).unwrap().options(field);
            let found = source.map(|source| (source.query.as_str(), source.params.get()));
            assert_eq!(found, expected, "{name} {field}");
        };
        check("dice.roll", "sides", Some(("dice.sides", r#"{"n":1.0}"#)));
        check("dice.roll", "other", None);
        check("dice.free", "sides", None);
    }

    #[test]
    fn a_schema_that_does_not_compile_any_more_takes_nothing() {
        let mut manifest = manifest(DICE);
        let broken = RawValue::from_string(r#"{"type":7}"#.to_owned());
        manifest.commands[1].input_schema = broken.unwrap();
        let compiled = Compiled::new(&manifest);
        let free = compiled.command(&id("dice.free")).unwrap();
        assert_eq!(free.check_input(b"7"), Err(Refusal::InvalidInput));
    }

    #[test]
    fn the_weight_of_a_version_grows_with_its_schemas_and_patterns() {
        let with = |schema: &str| {
            let text = format!(r#"{{"events":[{{"type":"dice.e","payloadSchema":{schema}}}]}}"#);
            Compiled::new(&manifest(&text)).bytes()
        };
        assert!(with(r#"{"title":"aa"}"#) > with("{}"));
        let patterns = with(r#"{"patternProperties":{"a":{},"b":{}}}"#);
        assert!(patterns > 2 * PATTERN_BYTES_MAX);
        assert!(patterns < 2 * COMPILED_PATTERNS_BYTES);
    }
}
