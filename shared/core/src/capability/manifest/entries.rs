//! The entries of a manifest's lists.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::fields::{Fields, raw};
use super::options;
use crate::capability::id::{Qualified, Slug};
use crate::capability::model::{
    Capability, CommandKind, EventDeclaration, EventSubscription, Invoker,
};
use crate::capability::schema::Schema;
use crate::json;
use crate::limits::{
    MANIFEST_DESCRIPTION_CHARS_MAX, MANIFEST_PATTERN_BYTES_MAX, MANIFEST_SCHEMA_PARTS_MAX,
    MANIFEST_TITLE_CHARS_MAX,
};

/// Reads entries of one manifest, and adds up what its schemas are.
pub(super) struct Entries<'a> {
    slug: &'a Slug,
    parts: usize,
    pattern_bytes: usize,
}

impl<'a> Entries<'a> {
    pub(super) const fn new(slug: &'a Slug) -> Self {
        Self { slug, parts: 0, pattern_bytes: 0 }
    }

    /// An entry of `commands`.
    pub(super) fn command(&mut self, place: &str, text: &str) -> Result<Capability, String> {
        let known =
            ["id", "title", "description", "inputSchema", "outputSchema", "invocableBy", "kind"];
        let fields = Fields::open(place, text, &known)?;
        let kind = match fields.text("kind")?.as_deref() {
            None | Some("call") => CommandKind::Call,
            Some("start") => CommandKind::Start,
            Some(_) => return Err(fields.fault("kind", "is neither \"call\" nor \"start\"")),
        };
        Ok(Capability { kind, ..self.capability(&fields)? })
    }

    /// An entry of `queries`.
    pub(super) fn query(&mut self, place: &str, text: &str) -> Result<Capability, String> {
        let known = ["id", "title", "description", "inputSchema", "outputSchema", "invocableBy"];
        self.capability(&Fields::open(place, text, &known)?)
    }

    fn capability(&mut self, fields: &Fields) -> Result<Capability, String> {
        let id = self.own(fields, "id")?.ok_or_else(|| fields.fault("id", "is missing"))?;
        let input_schema = self.schema(fields, "inputSchema")?;
        let input_schema = input_schema.ok_or_else(|| fields.fault("inputSchema", "is missing"))?;
        options::of_schema(input_schema.get())
            .map_err(|what| below(&fields.place("inputSchema"), &what))?;
        Ok(Capability {
            title: title(fields)?.unwrap_or_else(|| id.as_str().to_owned()),
            description: fields.short_text("description", 0, MANIFEST_DESCRIPTION_CHARS_MAX)?,
            input_schema,
            output_schema: self.schema(fields, "outputSchema")?,
            invocable_by: invokers(fields)?,
            kind: CommandKind::Call,
            id,
        })
    }

    /// An entry of `events`.
    pub(super) fn event(&mut self, place: &str, text: &str) -> Result<EventDeclaration, String> {
        let fields = Fields::open(place, text, &["type", "title", "payloadSchema", "hidden"])?;
        let event = self.own(&fields, "type")?.ok_or_else(|| fields.fault("type", "is missing"))?;
        let payload_schema = self.schema(&fields, "payloadSchema")?;
        Ok(EventDeclaration {
            event,
            title: title(&fields)?,
            payload_schema: payload_schema
                .ok_or_else(|| fields.fault("payloadSchema", "is missing"))?,
            hidden: fields.flag("hidden")?,
        })
    }

    /// An entry of `subscriptions`: to an event of anybody, the platform included.
    pub(super) fn subscription(
        &mut self,
        place: &str,
        text: &str,
    ) -> Result<EventSubscription, String> {
        let fields = Fields::open(place, text, &["type", "command"])?;
        let event =
            qualified(&fields, "type")?.ok_or_else(|| fields.fault("type", "is missing"))?;
        Ok(EventSubscription { event, command: self.own(&fields, "command")? })
    }

    /// An id in the extension's own namespace.
    fn own(&self, fields: &Fields, name: &str) -> Result<Option<Qualified>, String> {
        match qualified(fields, name)? {
            Some(id) if !id.is_of(self.slug) => {
                Err(fields.fault(name, &format!("is not in the namespace \"{}\"", self.slug)))
            }
            id => Ok(id),
        }
    }

    fn schema(&mut self, fields: &Fields, name: &str) -> Result<Option<Box<RawValue>>, String> {
        let Some(text) = fields.optional(name) else { return Ok(None) };
        let schema = Schema::compile(text).map_err(|what| below(&fields.place(name), &what))?;
        self.parts += schema.size().parts;
        self.pattern_bytes += schema.size().pattern_bytes;
        if self.parts > MANIFEST_SCHEMA_PARTS_MAX {
            let what = format!("brings the manifest over {MANIFEST_SCHEMA_PARTS_MAX} schemas");
            return Err(fields.fault(name, &what));
        }
        if self.pattern_bytes > MANIFEST_PATTERN_BYTES_MAX {
            let what = "brings the manifest over what its patterns may take";
            return Err(fields.fault(name, what));
        }
        Ok(Some(raw(text)))
    }
}

/// What is wrong inside of what stands at `place`.
fn below(place: &str, what: &str) -> String {
    if what.starts_with('/') { format!("{place}{what}") } else { format!("{place}: {what}") }
}

fn title(fields: &Fields) -> Result<Option<String>, String> {
    fields.short_text("title", 1, MANIFEST_TITLE_CHARS_MAX)
}

fn qualified(fields: &Fields, name: &str) -> Result<Option<Qualified>, String> {
    let Some(text) = fields.text(name)? else { return Ok(None) };
    let id = Qualified::parse(&text);
    id.map(Some).ok_or_else(|| fields.fault(name, "is not of the form <namespace>.<name>"))
}

fn invokers(fields: &Fields) -> Result<Vec<Invoker>, String> {
    fields.required("invocableBy")?;
    let mut invokers = Vec::new();
    for (place, text) in fields.list("invocableBy")?.unwrap_or_default() {
        let invoker = match json::text(text).as_deref() {
            Some("wearer") => Invoker::Wearer,
            Some("keyholder") => Invoker::Keyholder,
            Some("extension") => Invoker::Extension,
            _ => {
                let words = "is none of \"wearer\", \"keyholder\", \"extension\"";
                return Err(format!("{place}: {words}"));
            }
        };
        if invokers.contains(&invoker) {
            return Err(format!("{place}: stands there twice"));
        }
        invokers.push(invoker);
    }
    Ok(invokers)
}

/// Refuses a name that stands twice. The names come with their places.
pub(super) fn unique<T: std::hash::Hash + Eq>(
    names: impl Iterator<Item = (String, T)>,
) -> Result<(), String> {
    let mut seen = HashSet::new();
    for (place, name) in names {
        if !seen.insert(name) {
            return Err(format!("{place}: stands there twice"));
        }
    }
    Ok(())
}
