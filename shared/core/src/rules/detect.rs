//! The detection of a rule: operators over paths of an event.

use regex::{Regex, RegexBuilder};

use super::document::{Kind, Node};
use super::path::{Path, Work};
use super::reader::Reader;
use crate::limits::JSON_DEPTH_MAX;

/// Operators of one rule.
pub const OPERATORS_MAX: usize = 200;

/// Longest regular expression, in bytes.
pub const REGEX_BYTES_MAX: usize = 1_024;

/// Regular expressions of one rule.
pub const REGEXES_MAX: usize = 10;

/// Largest compiled regular expression, in bytes.
pub const REGEX_SIZE_MAX: usize = 128 << 10;

/// An operator, with the modifiers that every one has.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The event types it holds for; empty: all.
    events: Vec<String>,
    /// Turns the result round, for the event types it holds for.
    not: bool,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    And(Vec<Operator>),
    Or(Vec<Operator>),
    Not(Box<Operator>),
    Exists { path: Path, truthy: bool },
    Is { path: Path, value: Literal, fold: bool },
    Contains { path: Path, value: String, count: usize, fold: bool },
    StartsWith { path: Path, value: String, fold: bool },
    EndsWith { path: Path, value: String, fold: bool },
    Matches { path: Path, re: Regex },
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Text(String),
    Number(String),
    Bool(bool),
    Null,
}

/// How an operator is read: how deep it stands, and how many there were.
pub struct Parse {
    operators: usize,
    regexes: usize,
}

impl Default for Parse {
    fn default() -> Self {
        Self::new()
    }
}

impl Parse {
    /// Regular expressions read so far.
    pub fn regexes(&self) -> usize {
        self.regexes
    }

    /// At the start of a rule.
    pub fn new() -> Self {
        Self { operators: 0, regexes: 0 }
    }

    /// Reads an operator that stands at `at`, `level` operators deep.
    pub fn operator(
        &mut self,
        node: &Node<'_>,
        at: &str,
        level: usize,
    ) -> Result<Operator, String> {
        if level > JSON_DEPTH_MAX {
            return Err(format!("{at}: operators are nested more than {JSON_DEPTH_MAX} deep"));
        }
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            return Err(format!("{at}: a rule has at most {OPERATORS_MAX} operators"));
        }
        let mut reader = Reader::object(node, at)?;
        let mut events = Vec::new();
        if let Some(event) = reader.text("event")? {
            events.push(event.to_owned());
        }
        events.extend(reader.texts("events")?);
        let not = reader.flag("not")?.unwrap_or(false);
        let name = reader.required_text("op")?;
        let test = self.test(name, &mut reader, level)?;
        reader.end()?;
        Ok(Operator { events, not, test })
    }

    fn test(
        &mut self,
        name: &str,
        reader: &mut Reader<'_, '_>,
        level: usize,
    ) -> Result<Test, String> {
        Ok(match name {
            "and" => Test::And(self.rules(reader, level)?),
            "or" => Test::Or(self.rules(reader, level)?),
            "not" => {
                let node = reader.required("rule")?;
                let at = reader.place("rule");
                Test::Not(Box::new(self.operator(node, &at, level + 1)?))
            }
            "exists" => Test::Exists {
                path: path(reader)?,
                truthy: reader.flag("truthy")?.unwrap_or(false),
            },
            "is" => {
                let path = path(reader)?;
                let fold = fold(reader)?;
                let value = literal(reader.required("value")?, fold).ok_or_else(|| {
                    reader.error("value", "is not a string, number, boolean or null")
                })?;
                Test::Is { path, value, fold }
            }
            "contains" => {
                let (path, value, fold) = text_test(reader)?;
                let count = reader.count("count")?.unwrap_or(1);
                Test::Contains { path, value, count, fold }
            }
            "starts with" => {
                let (path, value, fold) = text_test(reader)?;
                Test::StartsWith { path, value, fold }
            }
            "ends with" => {
                let (path, value, fold) = text_test(reader)?;
                Test::EndsWith { path, value, fold }
            }
            "matches" => {
                let path = path(reader)?;
                let fold = fold(reader)?;
                let text = reader.required_text("re")?;
                let re = self.regex(text, fold).map_err(|error| reader.error("re", &error))?;
                Test::Matches { path, re }
            }
            unknown => return Err(reader.error("op", &format!("unknown operator {unknown}"))),
        })
    }

    fn rules(
        &mut self,
        reader: &mut Reader<'_, '_>,
        level: usize,
    ) -> Result<Vec<Operator>, String> {
        let node = reader.required("rules")?;
        let at = reader.place("rules");
        let Kind::List(rules) = &node.kind else {
            return Err(format!("{at}: is not a list, {}", node.type_name()));
        };
        if rules.is_empty() {
            return Err(format!("{at}: is empty"));
        }
        rules
            .iter()
            .enumerate()
            .map(|(index, rule)| self.operator(rule, &format!("{at}[{index}]"), level + 1))
            .collect()
    }

    fn regex(&mut self, text: &str, fold: bool) -> Result<Regex, String> {
        if text.len() > REGEX_BYTES_MAX {
            return Err(format!("a regular expression has at most {REGEX_BYTES_MAX} bytes"));
        }
        self.regexes += 1;
        if self.regexes > REGEXES_MAX {
            return Err(format!("a rule has at most {REGEXES_MAX} regular expressions"));
        }
        RegexBuilder::new(text)
            .case_insensitive(fold)
            .size_limit(REGEX_SIZE_MAX)
            .dfa_size_limit(REGEX_SIZE_MAX)
            .nest_limit(50)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "the regular expression is too big".to_owned(),
                // The first line of the parser's drawing says nothing; its last does.
                other => {
                    let text = other.to_string();
                    let last = text.lines().last().unwrap_or_default().trim();
                    let reason = last.strip_prefix("error: ").unwrap_or(last);
                    format!("bad regular expression: {reason}")
                }
            })
    }
}

fn path(reader: &mut Reader<'_, '_>) -> Result<Path, String> {
    let text = reader.required_text("path")?;
    Path::parse(text).map_err(|error| reader.error("path", &error))
}

fn fold(reader: &mut Reader<'_, '_>) -> Result<bool, String> {
    Ok(!reader.flag("case sensitive")?.unwrap_or(true))
}

fn text_test(reader: &mut Reader<'_, '_>) -> Result<(Path, String, bool), String> {
    let path = path(reader)?;
    let fold = fold(reader)?;
    let value = reader.required_text("value")?;
    if value.is_empty() {
        return Err(reader.error("value", "is empty"));
    }
    Ok((path, folded(value, fold), fold))
}

fn folded(text: &str, fold: bool) -> String {
    if fold { text.to_lowercase() } else { text.to_owned() }
}

fn literal(node: &Node<'_>, fold: bool) -> Option<Literal> {
    Some(match &node.kind {
        Kind::Null => Literal::Null,
        Kind::Bool(value) => Literal::Bool(*value),
        Kind::Number => Literal::Number(node.raw.to_owned()),
        Kind::Text(text) => Literal::Text(folded(text, fold)),
        Kind::List(_) | Kind::Object(_) => return None,
    })
}

impl Operator {
    /// Whether it holds for the event of this type.
    pub fn holds(&self, event: &Node<'_>, event_type: &str, work: &mut Work) -> bool {
        if !self.events.is_empty() && !self.events.iter().any(|name| name == event_type) {
            return false;
        }
        work.take(1) && self.test.holds(event, event_type, work) != self.not
    }
}

impl Test {
    fn holds(&self, event: &Node<'_>, event_type: &str, work: &mut Work) -> bool {
        match self {
            Self::And(rules) => rules.iter().all(|rule| rule.holds(event, event_type, work)),
            Self::Or(rules) => rules.iter().any(|rule| rule.holds(event, event_type, work)),
            Self::Not(rule) => !rule.holds(event, event_type, work),
            Self::Exists { path, truthy } => path.any(event, work, &mut |node, _| {
                !truthy || !(node.kind == Kind::Null || node.text() == Some(""))
            }),
            Self::Is { path, value, fold } => {
                path.any(event, work, &mut |node, work| is(node, value, *fold, work))
            }
            Self::Contains { path, value, count, fold } => {
                in_text(path, event, *fold, work, |text| {
                    text.matches(value.as_str()).take(*count).count() >= *count
                })
            }
            Self::StartsWith { path, value, fold } => {
                in_text(path, event, *fold, work, |text| text.starts_with(value.as_str()))
            }
            Self::EndsWith { path, value, fold } => {
                in_text(path, event, *fold, work, |text| text.ends_with(value.as_str()))
            }
            Self::Matches { path, re } => {
                in_text(path, event, false, work, |text| re.is_match(text))
            }
        }
    }
}

/// Whether a text at the path satisfies `test`. A number counts as its spelling.
fn in_text(
    path: &Path,
    event: &Node<'_>,
    fold: bool,
    work: &mut Work,
    test: impl Fn(&str) -> bool,
) -> bool {
    path.any(event, work, &mut |node, work| {
        let text = match &node.kind {
            Kind::Text(text) => text.as_ref(),
            Kind::Number => node.raw,
            _ => return false,
        };
        if !work.take(1 + text.len() / 64) {
            return false;
        }
        if fold { test(&text.to_lowercase()) } else { test(text) }
    })
}

fn is(node: &Node<'_>, value: &Literal, fold: bool, work: &mut Work) -> bool {
    match (&node.kind, value) {
        (Kind::Null, Literal::Null) => true,
        (Kind::Bool(found), Literal::Bool(value)) => found == value,
        (Kind::Number, Literal::Number(value)) => same_number(node.raw, value),
        (Kind::Text(found), Literal::Text(value)) if fold => {
            work.take(1 + found.len() / 64) && found.to_lowercase() == *value
        }
        (Kind::Text(found), Literal::Text(value)) => found == value,
        _ => false,
    }
}

/// Whether two numbers are equal: whole ones up to 128 bits exactly, others as 64-bit floats.
fn same_number(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (a.parse::<i128>(), b.parse::<i128>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => match (a.parse::<f64>(), b.parse::<f64>()) {
            // What is beyond a float's range is equal by its spelling only.
            (Ok(a), Ok(b)) => a.is_finite() && a == b,
            _ => false,
        },
    }
}
