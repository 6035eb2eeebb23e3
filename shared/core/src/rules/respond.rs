//! The responses of a rule: what is asked of which extension.

use super::document::{Kind, Node};
use super::reader::Reader;
use super::template::{self, Piece, Template};
use crate::ids::{ExtensionName, is_name};

/// Responses of one rule.
pub const RESPONSES_MAX: usize = 20;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A detection. It is not kept; a request after it may be based on it.
    Report {
        /// The name of the detection, a template over it.
        name: Vec<Piece>,
        /// The JSON text of `metadata`, if any.
        metadata: Option<String>,
        /// The JSON text of `detect_data`, if any.
        detect_data: Option<String>,
    },
    /// A request to an extension (LC-127).
    Request {
        /// Which.
        extension: ExtensionName,
        /// Which action of it.
        action: String,
        /// What it is made from.
        data: Template,
        /// Whether it is made from the report before it, not from the event.
        based_on_report: bool,
    },
}

/// Reads the responses of a rule.
pub fn parse(node: &Node<'_>) -> Result<Vec<Response>, String> {
    let Kind::List(elements) = &node.kind else {
        return Err(format!("respond: is not a list, {}", node.type_name()));
    };
    if elements.len() > RESPONSES_MAX {
        return Err(format!("respond: a rule has at most {RESPONSES_MAX} responses"));
    }
    let mut out = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let at = format!("respond[{index}]");
        let response = one(element, &at)?;
        let reported = out.iter().any(|before| matches!(before, Response::Report { .. }));
        if matches!(response, Response::Request { based_on_report: true, .. }) && !reported {
            return Err(format!("{at}.based on report: there is no report action before it"));
        }
        out.push(response);
    }
    Ok(out)
}

fn one(node: &Node<'_>, at: &str) -> Result<Response, String> {
    let mut reader = Reader::object(node, at)?;
    match reader.required_text("action")? {
        "extension request" => request(reader),
        "report" => report(reader),
        other => Err(reader.error("action", &format!("{other} is not supported"))),
    }
}

fn report(mut reader: Reader<'_, '_>) -> Result<Response, String> {
    let name = template::pieces(reader.required_text("name")?)
        .map_err(|error| reader.error("name", &error))?;
    reader.flag("publish")?;
    // Shown nowhere, so any value will do.
    reader.optional("priority");
    let metadata = reader.optional("metadata").map(|node| node.raw.to_owned());
    let detect_data = reader.optional("detect_data").map(|node| node.raw.to_owned());
    reader.end()?;
    Ok(Response::Report { name, metadata, detect_data })
}

fn request(mut reader: Reader<'_, '_>) -> Result<Response, String> {
    let extension = ExtensionName::parse(reader.required_text("extension name")?)
        .map_err(|fault| reader.error("extension name", &fault.message))?;
    let action = reader.required_text("extension action")?.to_owned();
    if !is_name(&action) {
        return Err(reader.error("extension action", "is not a name of an action"));
    }
    let data = match reader.optional("extension request") {
        None => Template::Fixed("{}".to_owned()),
        Some(node) => {
            let at = reader.place("extension request");
            if !matches!(node.kind, Kind::Object(_)) {
                return Err(format!("{at}: is not an object, {}", node.type_name()));
            }
            Template::parse(node, &at)?
        }
    };
    let based_on_report = reader.flag("based on report")?.unwrap_or(false);
    reader.end()?;
    Ok(Response::Request { extension, action, data, based_on_report })
}
