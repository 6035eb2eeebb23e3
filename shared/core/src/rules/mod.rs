//! Rules that call extensions: a detection over telemetry events, and requests made from the event that matched.
//!
//! A rule is the record of hive `dr-general`: `{"detect": {…}, "respond": [{…}]}`. The operators are `is`, `exists`,
//! `contains`, `starts with`, `ends with`, `matches`, and `and`, `or`, `not` over others; each takes `event` or
//! `events` (the types it holds for) and `not: true`. The responses are `extension request` (LC-127) and `report`.
//! Everything else is refused when the record is written, by its name and place. This is not a full rule language.
//!
//! Everything here is pure, and bounded: see [`detect::OPERATORS_MAX`], [`respond::RESPONSES_MAX`], [`EVENT_WORK_MAX`].

pub mod detect;
pub mod document;
pub mod path;
mod reader;
pub mod respond;
pub mod template;

use crate::ids::ExtensionName;
use detect::{Operator, Parse};
use document::Node;
use path::Work;
use reader::Reader;
use respond::Response;

/// Work that the rules of an organization may cost for one event; see [`Work`]. What is left over does not match.
pub const EVENT_WORK_MAX: u64 = 1_000_000;

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    detect: Operator,
    respond: Vec<Response>,
    regexes: usize,
}

/// A request that a rule makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCall {
    /// The rule's name.
    pub rule: String,
    /// Which of its responses.
    pub index: usize,
    /// The extension.
    pub extension: ExtensionName,
    /// Its action.
    pub action: String,
    /// The request data: the JSON text of an object.
    pub data: String,
}

impl Rule {
    /// Reads a rule; the error says by its path what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let node = Node::parse(text)?;
        let mut reader = Reader::object(&node, "")?;
        let mut parse = Parse::new();
        let detect = parse.operator(reader.required("detect")?, "detect", 1)?;
        let respond = respond::parse(reader.required("respond")?)?;
        // Unit tests of the vendor's engine travel with a rule; they are kept and not run.
        reader.optional("tests");
        reader.end()?;
        Ok(Self { detect, respond, regexes: parse.regexes() })
    }

    /// About how much memory it takes at most, in bytes.
    pub fn weight(&self) -> usize {
        4_096 + self.regexes * detect::REGEX_SIZE_MAX
    }

    /// Whether it matches an event: the envelope with `event` and `routing`.
    pub fn matches(&self, event: &Node<'_>) -> bool {
        self.detect.holds(event, event_type(event), &mut Work(EVENT_WORK_MAX))
    }
}

/// The requests that these rules make for an event, and whether all of them could be evaluated within
/// [`EVENT_WORK_MAX`]. What is not the JSON text of an event makes none.
pub fn actions<'r, R>(rules: R, event_text: &str) -> (Vec<RuleCall>, bool)
where
    R: IntoIterator<Item = (&'r str, &'r Rule)>,
{
    let Ok(event) = Node::inside(event_text, 1) else { return (Vec::new(), true) };
    let mut work = Work(EVENT_WORK_MAX);
    let mut calls = Vec::new();
    for (name, rule) in rules {
        let holds = rule.detect.holds(&event, event_type(&event), &mut work);
        if work == Work(0) {
            return (calls, false);
        }
        if holds {
            respond(name, rule, &event, &mut calls);
        }
    }
    (calls, true)
}

fn event_type<'n>(event: &'n Node<'_>) -> &'n str {
    event
        .member("routing")
        .and_then(|routing| routing.member("event_type"))
        .and_then(Node::text)
        .unwrap_or_default()
}

fn respond(name: &str, rule: &Rule, event: &Node<'_>, calls: &mut Vec<RuleCall>) {
    let mut last_report = String::new();
    for (index, response) in rule.respond.iter().enumerate() {
        match response {
            Response::Report { name, metadata, detect_data } => {
                last_report = report(name, metadata.as_deref(), detect_data.as_deref(), event);
            }
            Response::Request { extension, action, data, based_on_report } => {
                let filled = if *based_on_report {
                    Node::inside(&last_report, 2).ok().and_then(|report| data.fill(&report))
                } else {
                    data.fill(event)
                };
                calls.push(RuleCall {
                    rule: name.to_owned(),
                    index,
                    extension: extension.clone(),
                    action: action.clone(),
                    data: filled.unwrap_or_else(|| "{}".to_owned()),
                });
            }
        }
    }
}

/// The detection of a `report`: its name as `cat`, the event as `detect`, and what the rule adds.
fn report(
    name: &[template::Piece],
    metadata: Option<&str>,
    detect_data: Option<&str>,
    event: &Node<'_>,
) -> String {
    let mut members = format!("\"detect\":{}", event.raw);
    if let Some(routing) = event.member("routing") {
        members.push_str(",\"routing\":");
        members.push_str(routing.raw);
    }
    for (key, value) in [("detect_mtd", metadata), ("detect_data", detect_data)] {
        if let Some(value) = value {
            members.push_str(&format!(",\"{key}\":{value}"));
        }
    }
    let unnamed = format!("{{{members}}}");
    let cat = Node::inside(&unnamed, 2)
        .map(|detection| template::render(name, &detection))
        .unwrap_or_default();
    format!("{{\"cat\":{},{members}}}", serde_json::Value::from(cat))
}

#[cfg(test)]
mod tests;
