//! One version of an extension with its schemas compiled.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::value::RawValue;

use crate::limits::{COMPILED_ENTRY_BYTES, COMPILED_PATTERN_FACTOR, COMPILED_SCHEMA_FACTOR};

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
        let mut bytes = COMPILED_ENTRY_BYTES;
        let mut capabilities = HashMap::new();
        let commands = manifest.commands.iter().map(|declared| (declared, false));
        let queries = manifest.queries.iter().map(|declared| (declared, true));
        for (declared, is_query) in commands.chain(queries) {
            let capability = CompiledCapability::new(declared.clone(), is_query);
            bytes += COMPILED_ENTRY_BYTES + weight(&declared.input_schema);
            bytes += declared.output_schema.as_deref().map_or(0, weight);
            capabilities.insert(declared.id.clone(), capability);
        }
        let mut events = HashMap::new();
        for declared in &manifest.events {
            bytes += COMPILED_ENTRY_BYTES + weight(&declared.payload_schema);
            let event = CompiledEvent { declared: declared.clone(), payload: OnceLock::new() };
            events.insert(declared.event.clone(), event);
        }
        Self { capabilities, events, bytes }
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

/// About what a compiled schema takes in memory, in bytes. Its patterns are counted by what they may take at most.
fn weight(schema: &RawValue) -> usize {
    let text = schema.get();
    let patterns = text.matches("attern").count();
    COMPILED_SCHEMA_FACTOR * text.len() + COMPILED_PATTERN_FACTOR * patterns
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
