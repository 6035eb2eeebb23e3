//! What an extension declares: how it is read, and how it is merged into what was declared before.

use crate::fault::{Code, Fault, Outcome};
use crate::json;
use crate::limits::{MANIFEST_BYTES_MAX, MANIFEST_FAULT_BYTES_MAX};

use super::id::{Qualified, Slug};
use super::model::{Capability, EventDeclaration, EventSubscription, Manifest};

use self::entries::{Entries, unique};
use self::fields::Fields;

mod entries;
mod fields;
pub mod options;
#[cfg(test)]
mod tests;

/// A manifest as it was sent: what is absent keeps what was declared before, an empty list clears it.
#[derive(Debug, Clone, Default)]
pub struct ManifestChange {
    /// What may be called and may change state.
    pub commands: Option<Vec<Capability>>,
    /// What may be called and changes nothing.
    pub queries: Option<Vec<Capability>>,
    /// What is emitted.
    pub events: Option<Vec<EventDeclaration>>,
    /// What it wants to hear of others on the same lock.
    pub subscriptions: Option<Vec<EventSubscription>>,
}

impl ManifestChange {
    /// The manifest after this change of `before`. A 400 where the two do not go together: an id that is a command and
    /// a query, a subscription to a command that is not declared, or more than [`MANIFEST_BYTES_MAX`] in all.
    pub fn apply(self, before: &Manifest) -> Outcome<Manifest> {
        let after = Manifest {
            commands: self.commands.unwrap_or_else(|| before.commands.clone()),
            queries: self.queries.unwrap_or_else(|| before.queries.clone()),
            events: self.events.unwrap_or_else(|| before.events.clone()),
            subscriptions: self.subscriptions.unwrap_or_else(|| before.subscriptions.clone()),
        };
        unique_ids(&after.commands, &after.queries).map_err(refused)?;
        for (index, wanted) in after.subscriptions.iter().enumerate() {
            let declares = |id: &Qualified| after.commands.iter().any(|command| command.id == *id);
            if let Some(id) = wanted.command.as_ref().filter(|id| !declares(id)) {
                let text = format!("subscriptions[{index}].command: {id} is not declared");
                return Err(refused(text));
            }
        }
        if crate::stored::bytes(&after).len() > MANIFEST_BYTES_MAX {
            return Err(refused(format!(
                "with what was declared before, the manifest takes more than {MANIFEST_BYTES_MAX} bytes"
            )));
        }
        Ok(after)
    }
}

/// Reads what an extension sent as its manifest: `{"slug"?, "commands"?, "queries"?, "events"?, "subscriptions"?}`.
///
/// Everything about it is checked, its schemas too. A fault is a 400 that names the first place that is wrong; a 413
/// for more than [`MANIFEST_BYTES_MAX`]; a 403 where `slug` is that of another extension.
pub fn read(slug: &Slug, body: &[u8]) -> Outcome<ManifestChange> {
    if body.len() > MANIFEST_BYTES_MAX {
        let text = format!("a manifest has at most {MANIFEST_BYTES_MAX} bytes");
        return Err(Fault::new(Code::TooLarge, text));
    }
    let text = json::check(body)
        .map_err(|fault| Fault::new(Code::InvalidJson, format!("the manifest is {fault}")))?;
    let known = ["slug", "commands", "queries", "events", "subscriptions"];
    let fields = Fields::open("", text, &known).map_err(refused)?;
    if fields.text("slug").map_err(refused)?.is_some_and(|named| named != slug.as_str()) {
        return Err(Fault::new(Code::Forbidden, "slug: is not the extension of the token"));
    }
    lists(slug, &fields).map_err(refused)
}

fn lists(slug: &Slug, fields: &Fields) -> Result<ManifestChange, String> {
    let mut entries = Entries::new(slug);
    let change = ManifestChange {
        commands: list(fields, "commands", |place, text| entries.command(place, text))?,
        queries: list(fields, "queries", |place, text| entries.query(place, text))?,
        events: list(fields, "events", |place, text| entries.event(place, text))?,
        subscriptions: list(fields, "subscriptions", |place, text| {
            entries.subscription(place, text)
        })?,
    };
    unique_ids(
        change.commands.as_deref().unwrap_or_default(),
        change.queries.as_deref().unwrap_or_default(),
    )?;
    let events = change.events.iter().flatten().enumerate();
    unique(events.map(|(index, each)| (format!("events[{index}].type"), &each.event)))?;
    // One by a webhook and one by a call: what tells everybody on a lock of an event is one commit.
    let subscriptions = change.subscriptions.iter().flatten().enumerate();
    unique(subscriptions.map(|(index, each)| {
        (format!("subscriptions[{index}]"), (&each.event, each.command.is_some()))
    }))?;
    Ok(change)
}

fn list<T>(
    fields: &Fields,
    name: &str,
    mut entry: impl FnMut(&str, &str) -> Result<T, String>,
) -> Result<Option<Vec<T>>, String> {
    let Some(elements) = fields.list(name)? else { return Ok(None) };
    elements.iter().map(|(place, text)| entry(place, text)).collect::<Result<_, _>>().map(Some)
}

/// Ids are unique over commands and queries together: a call of either kind is refused with one code.
fn unique_ids(commands: &[Capability], queries: &[Capability]) -> Result<(), String> {
    let named = |list: &'static str| {
        move |(index, each): (usize, &Capability)| (format!("{list}[{index}].id"), each.id.clone())
    };
    let commands = commands.iter().enumerate().map(named("commands"));
    unique(commands.chain(queries.iter().enumerate().map(named("queries"))))
}

fn refused(mut what: String) -> Fault {
    what.truncate(what.floor_char_boundary(MANIFEST_FAULT_BYTES_MAX));
    Fault::new(Code::BadRequest, what)
}
