//! Values of a rule's request, made from the event that matched.
//!
//! A string with `{{ }}` is a template and yields a string: `{{ .event.NAME }}` and `{{ "text" }}` or a text in
//! backquotes, with text around them; what does not resolve yields nothing, a value that is not a string its JSON text.
//! Any other string is a gjson path ([`Lookup`]) and yields what stands there, of whatever type; where nothing does,
//! the key or the list element is dropped. The one exception is the lone `*`, which the contract's own example passes
//! as a value. Objects and lists stay, and so does everything that is not a string.

use super::document::{Kind, Node};
use super::path::Lookup;

/// A value, read once and filled for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// JSON text as it is.
    Fixed(String),
    /// What stands at a path.
    At(Lookup),
    /// Text with holes.
    Text(Vec<Piece>),
    /// Members: their keys as JSON text.
    Object(Vec<(String, Template)>),
    /// Elements.
    List(Vec<Template>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Itself.
    Literal(String),
    /// What stands at a path, as text.
    Field(Lookup),
}

impl Template {
    /// Reads a value; `at` is where it stands, for errors.
    pub fn parse(node: &Node<'_>, at: &str) -> Result<Self, String> {
        match &node.kind {
            Kind::Text(text) if text.contains("{{") => {
                pieces(text).map(Self::Text).map_err(|error| format!("{at}: {error}"))
            }
            Kind::Text(text) if text == "*" => Ok(Self::Fixed(node.raw.to_owned())),
            Kind::Text(text) => {
                Lookup::parse(text).map(Self::At).map_err(|error| format!("{at}: {error}"))
            }
            Kind::Object(members) => {
                let mut out = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let json = serde_json::Value::from(key.as_ref()).to_string();
                    out.push((json, Self::parse(value, &format!("{at}.{key}"))?));
                }
                Ok(Self::Object(out))
            }
            Kind::List(elements) => elements
                .iter()
                .enumerate()
                .map(|(index, element)| Self::parse(element, &format!("{at}[{index}]")))
                .collect::<Result<_, _>>()
                .map(Self::List),
            Kind::Null | Kind::Bool(_) | Kind::Number => Ok(Self::Fixed(node.raw.to_owned())),
        }
    }

    /// The JSON text for this event; `None` where a path does not resolve.
    pub fn fill(&self, event: &Node<'_>) -> Option<String> {
        match self {
            Self::Fixed(text) => Some(text.clone()),
            Self::At(path) => path.find(event),
            Self::Text(pieces) => Some(serde_json::Value::from(render(pieces, event)).to_string()),
            Self::Object(members) => {
                let filled: Vec<String> = members
                    .iter()
                    .filter_map(|(key, value)| Some(format!("{key}:{}", value.fill(event)?)))
                    .collect();
                Some(format!("{{{}}}", filled.join(",")))
            }
            Self::List(elements) => {
                let filled: Vec<String> =
                    elements.iter().filter_map(|element| element.fill(event)).collect();
                Some(format!("[{}]", filled.join(",")))
            }
        }
    }
}

/// Fills the holes of a text.
pub fn render(pieces: &[Piece], event: &Node<'_>) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => out.push_str(text),
            Piece::Field(path) => match path.node(event) {
                Some(Node { kind: Kind::Text(text), .. }) => out.push_str(text),
                Some(Node { kind: Kind::Null, .. }) | None => {}
                Some(node) => out.push_str(node.raw),
            },
        }
    }
    out
}

/// Reads a text with `{{ }}`.
pub fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    // Whether the hole before asked to drop the space that follows it (`-}}`).
    let mut trim = false;
    loop {
        let (before, hole) = match rest.split_once("{{") {
            Some((before, hole)) => (before, Some(hole)),
            None => (rest, None),
        };
        let mut literal = if trim { before.trim_start() } else { before };
        let Some(hole) = hole else {
            push(&mut out, literal);
            return Ok(out);
        };
        let hole = match hole.strip_prefix("- ") {
            Some(inner) => {
                literal = literal.trim_end();
                inner
            }
            None => hole,
        };
        push(&mut out, literal);
        let (piece, after) = expression(hole.trim_start())?;
        out.push(piece);
        let after = after.trim_start();
        trim = after.starts_with("-}}");
        let after = if trim { &after[1..] } else { after };
        rest = after.strip_prefix("}}").ok_or(
            "a template holds one field path (.event.NAME) or one text in quotes, and ends with }}",
        )?;
    }
}

fn push(out: &mut Vec<Piece>, literal: &str) {
    if !literal.is_empty() {
        out.push(Piece::Literal(literal.to_owned()));
    }
}

/// The one expression of a hole, and what follows it.
fn expression(text: &str) -> Result<(Piece, &str), String> {
    match text.bytes().next() {
        Some(b'"') => {
            let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
            match stream.next() {
                Some(Ok(literal)) => Ok((Piece::Literal(literal), &text[stream.byte_offset()..])),
                _ => Err("a text in a template is not a valid string".to_owned()),
            }
        }
        Some(b'`') => match text[1..].split_once('`') {
            Some((literal, after)) => Ok((Piece::Literal(literal.to_owned()), after)),
            None => Err("a text in a template has no end".to_owned()),
        },
        Some(b'.') => {
            let end = text
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
                .unwrap_or(text.len());
            let (path, after) = text.split_at(end);
            let names: Vec<String> = path[1..].split('.').map(str::to_owned).collect();
            if names.len() > 1 && names.iter().any(String::is_empty) {
                return Err(format!("{path} is not a field path"));
            }
            let names = if path == "." { Vec::new() } else { names };
            Ok((Piece::Field(Lookup::of(names)), after))
        }
        _ => Err("a template holds a field path (.event.NAME) or a text in quotes; \
                  functions and control structures are not supported"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"event":{"PATH":"c:\\a \"b\"","PID":123456789012345678901234567890,"F":1.0E+5,"OK":true,"NO":null,"L":[1,{"x":2}],"HOST.NAME":"h"},"routing":{"sid":"s1","tags":["a","b"]}}"#;

    #[track_caller]
    fn check(template: &str, expected: &str) {
        let event = Node::parse(EVENT).expect("valid");
        let node = Node::parse(template).expect("valid");
        let template = Template::parse(&node, "r").expect("a template");
        assert_eq!(template.fill(&event).as_deref(), Some(expected));
    }

    #[track_caller]
    fn refused(template: &str, expected: &str) {
        let node = Node::parse(template).expect("valid");
        assert_eq!(Template::parse(&node, "r"), Err(expected.to_owned()));
    }

    // LC-128 as limacharlie-wire 4.6 has it.
    #[test]
    fn templates_yield_strings() {
        check(r#"{"k":"{{ .event.PATH }}"}"#, r#"{"k":"c:\\a \"b\""}"#);
        check(r#"{"k":"{{.event.PID}}"}"#, r#"{"k":"123456789012345678901234567890"}"#);
        check(r#"{"k":"{{ .event.OK }}"}"#, r#"{"k":"true"}"#);
        check(r#"{"k":"{{ .event.L }}"}"#, r#"{"k":"[1,{\"x\":2}]"}"#);
        check(r#"{"k":"{{ .event.NO }}|{{ .event.MISSING }}"}"#, r#"{"k":"|"}"#);
        check(r#"{"k":"on {{ .routing.sid }}: {{ .event.F }}!"}"#, r#"{"k":"on s1: 1.0E+5!"}"#);
        check(r#"{"k":"{{ \"x {{ y }}\" }}"}"#, r#"{"k":"x {{ y }}"}"#);
        check(r#"{"k":"{{ `raw` }}"}"#, r#"{"k":"raw"}"#);
        check(r#"{"k":"a  {{- \"b\" -}}  c"}"#, r#"{"k":"abc"}"#);
    }

    #[test]
    fn bare_strings_are_paths_that_keep_the_type() {
        check(r#"{"p":"event.PID"}"#, r#"{"p":123456789012345678901234567890}"#);
        check(r#"{"p":"event/F"}"#, r#"{"p":1.0E+5}"#);
        check(r#"{"p":"event.L"}"#, r#"{"p":[1,{"x":2}]}"#);
        check(r#"{"p":"event.NO"}"#, r#"{"p":null}"#);
        check(r#"{"p":"routing.tags.0"}"#, r#"{"p":"a"}"#);
        check(r#"{"p":"event.HOST\\.NAME"}"#, r#"{"p":"h"}"#);
    }

    #[test]
    fn unresolved_paths_drop_their_key_silently() {
        check(r#"{"a":"event.MISSING","b":1}"#, r#"{"b":1}"#);
        check(r#"{"a":"plain text","o":{"x":"nope"}}"#, r#"{"o":{}}"#);
        check(r#"{"l":["nope","routing.sid",["nope"]]}"#, r#"{"l":["s1",[]]}"#);
    }

    #[test]
    fn everything_else_stays() {
        check(
            r#"{"n":1.50,"big":1e400,"t":true,"z":null,"o":{"l":[1,[]]},"é\n":0}"#,
            r#"{"n":1.50,"big":1e400,"t":true,"z":null,"o":{"l":[1,[]]},"é\n":0}"#,
        );
        // The contract's own example (LC-127).
        check(r#"{"selector":"*"}"#, r#"{"selector":"*"}"#);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_its_place() {
        let function = "a template holds a field path (.event.NAME) or a text in quotes; \
                        functions and control structures are not supported";
        refused(r#"{"k":"{{ len .event }}"}"#, &format!("r.k: {function}"));
        refused(r#"{"l":[{"k":"{{ }}"}]}"#, &format!("r.l[0].k: {function}"));
        let end =
            "a template holds one field path (.event.NAME) or one text in quotes, and ends with }}";
        refused(r#"["{{ .a"]"#, &format!("r[0]: {end}"));
        refused(r#"["{{ .a .b }}"]"#, &format!("r[0]: {end}"));
        refused(r#"["{{ .a | upper }}"]"#, &format!("r[0]: {end}"));
        refused(r#"["{{ .a..b }}"]"#, "r[0]: .a..b is not a field path");
        refused(r#"["{{ `x }}"]"#, "r[0]: a text in a template has no end");
        refused(r#"["{{ \"x }}"]"#, "r[0]: a text in a template is not a valid string");
        refused(r#"["event.@this"]"#, "r[0]: modifiers are not supported");
    }
}
