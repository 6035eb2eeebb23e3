//! Paths into events: LimaCharlie's `event/NAME/…` of operators, and gjson's `event.NAME.…` of templated values.

use super::document::{Kind, Node};

/// Components of one path.
const COMPONENTS_MAX: usize = 32;

/// A path of an operator.
///
/// Names are separated by `/`. `?` stands for any one level, `*` for any number of levels, none included; at most one
/// `*`, so that the work stays linear in the event. A list is looked through: a name applies to each of its elements,
/// and a list at the end stands for itself and for its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    AnyOne,
    AnyMany,
}

impl Path {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.strip_suffix('/').unwrap_or(text);
        let trimmed = trimmed.strip_prefix('/').unwrap_or(trimmed);
        let steps: Vec<Step> = trimmed
            .split('/')
            .map(|part| match part {
                "?" => Step::AnyOne,
                "*" => Step::AnyMany,
                name => Step::Name(name.to_owned()),
            })
            .collect();
        if steps.iter().any(|step| *step == Step::Name(String::new())) {
            return Err("a path has no empty components".to_owned());
        }
        if steps.len() > COMPONENTS_MAX {
            return Err(format!("a path has at most {COMPONENTS_MAX} components"));
        }
        if steps.iter().filter(|step| **step == Step::AnyMany).count() > 1 {
            return Err("a path has at most one *".to_owned());
        }
        Ok(Self(steps))
    }

    /// Whether any value at the path satisfies `test`. `work` counts the values looked at, and ends the search with
    /// `false` when it is used up.
    pub fn any(
        &self,
        root: &Node<'_>,
        work: &mut Work,
        test: &mut dyn FnMut(&Node<'_>, &mut Work) -> bool,
    ) -> bool {
        find(&self.0, root, work, test)
    }
}

/// How much may still be done for one event: one unit for a value looked at, or for 64 bytes compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work(pub u64);

impl Work {
    /// Takes units; `false` when there are none left.
    pub fn take(&mut self, units: usize) -> bool {
        let units = units as u64;
        if self.0 < units {
            self.0 = 0;
            return false;
        }
        self.0 -= units;
        true
    }
}

fn find(
    steps: &[Step],
    node: &Node<'_>,
    work: &mut Work,
    test: &mut dyn FnMut(&Node<'_>, &mut Work) -> bool,
) -> bool {
    if !work.take(1) {
        return false;
    }
    let Some((step, rest)) = steps.split_first() else {
        if test(node, work) {
            return true;
        }
        return match &node.kind {
            Kind::List(elements) => elements.iter().any(|element| test(element, work)),
            _ => false,
        };
    };
    match (step, &node.kind) {
        (Step::Name(name), Kind::Object(_)) => {
            node.member(name).is_some_and(|value| find(rest, value, work, test))
        }
        (Step::Name(_), Kind::List(elements)) => {
            elements.iter().any(|element| find(steps, element, work, test))
        }
        (Step::AnyOne, _) => children(node).any(|child| find(rest, child, work, test)),
        (Step::AnyMany, _) => {
            find(rest, node, work, test)
                || children(node).any(|child| find(steps, child, work, test))
        }
        (Step::Name(_), _) => false,
    }
}

fn children<'n, 'a>(node: &'n Node<'a>) -> impl Iterator<Item = &'n Node<'a>> {
    let (list, object): (&[Node<'a>], &[_]) = match &node.kind {
        Kind::List(elements) => (elements, &[]),
        Kind::Object(members) => (&[], members),
        _ => (&[], &[]),
    };
    list.iter().chain(object.iter().map(|(_, value)| value))
}

/// A gjson path, as far as it is supported: names and list indexes separated by `.` (or by `/` where it starts with
/// `event/`, `routing/` or `detect/`), `\` before a character that stands for itself, `#` at the end for the length of
/// a list, and `#` between for the list of what the rest finds in each element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup(Vec<String>);

/// What a lookup finds: text of the event, or a text that it makes of it.
pub type Found = String;

impl Lookup {
    /// Reads a path. Queries and modifiers of gjson (`#(…)`, `@…`, `|`, wildcards) are refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        let slashed = ["event/", "routing/", "detect/"].iter().any(|root| text.starts_with(root));
        let mut parts = vec![String::new()];
        let mut escaped = false;
        for c in text.chars() {
            let last = parts.last_mut().expect("there is always a component");
            match c {
                _ if escaped => {
                    last.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '/' if slashed => parts.push(String::new()),
                '.' if !slashed => parts.push(String::new()),
                '|' | '*' | '?' => {
                    return Err(format!("{c} is not supported in a path; write \\{c} for itself"));
                }
                '@' if last.is_empty() => return Err("modifiers are not supported".to_owned()),
                '(' if last == "#" => return Err("queries are not supported".to_owned()),
                c => last.push(c),
            }
        }
        if parts.len() > COMPONENTS_MAX {
            return Err(format!("a path has at most {COMPONENTS_MAX} components"));
        }
        Ok(Self(parts))
    }

    /// A path of names alone.
    pub fn of(names: Vec<String>) -> Self {
        Self(names)
    }

    /// The JSON text at the path.
    pub fn find(&self, root: &Node<'_>) -> Option<Found> {
        look(&self.0, root)
    }

    /// The value at the path, where no `#` makes one up.
    pub fn node<'n, 'a>(&self, root: &'n Node<'a>) -> Option<&'n Node<'a>> {
        self.0.iter().try_fold(root, |node, name| step(node, name))
    }
}

fn step<'n, 'a>(node: &'n Node<'a>, name: &str) -> Option<&'n Node<'a>> {
    match &node.kind {
        Kind::List(elements) => elements.get(name.parse::<usize>().ok()?),
        _ => node.member(name),
    }
}

fn look(names: &[String], node: &Node<'_>) -> Option<String> {
    let Some((name, rest)) = names.split_first() else { return Some(node.raw.to_owned()) };
    match &node.kind {
        Kind::List(elements) if name == "#" => {
            if rest.is_empty() {
                return Some(elements.len().to_string());
            }
            // A second # would multiply the work; what gjson makes of it is rarely meant.
            let found: Vec<String> = elements
                .iter()
                .filter_map(|element| {
                    Lookup(rest.to_vec()).node(element).map(|node| node.raw.to_owned())
                })
                .collect();
            Some(format!("[{}]", found.join(",")))
        }
        _ => look(rest, step(node, name)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str =
        r#"{"event":{"A":{"B":1},"L":[{"N":1},{"N":2}],"T":["x","y"],"a.b":3},"routing":{"B":9}}"#;

    #[track_caller]
    fn check(path: &str, expected: &[&str]) {
        let root = Node::parse(EVENT).expect("valid");
        let mut found = Vec::new();
        let path = Path::parse(path).expect("a path");
        path.any(&root, &mut Work(10_000), &mut |node, _| {
            found.push(node.raw.to_owned());
            false
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn operator_paths_find_names_through_objects_and_lists() {
        check("event/A/B", &["1"]);
        check("/event/A/B/", &["1"]);
        check("event/L/N", &["1", "2"]);
        check("event/L/?/N", &["1", "2"]);
        check("event/T", &[r#"["x","y"]"#, "\"x\"", "\"y\""]);
        check("event/MISSING", &[]);
        check("event/A/B/C", &[]);
        check("?/B", &["9"]);
        check("*/B", &["1", "9"]);
        check("event/*/N", &["1", "2", "1", "2"]);
    }

    #[test]
    fn operator_paths_are_bounded() {
        assert!(Path::parse(&["a"; 32].join("/")).is_ok());
        let refused = [
            ("", "a path has no empty components"),
            ("a//b", "a path has no empty components"),
            ("*/a/*", "a path has at most one *"),
            (&["a"; 33].join("/"), "a path has at most 32 components"),
        ];
        for (path, expected) in refused {
            assert_eq!(Path::parse(path), Err(expected.to_owned()), "{path}");
        }
    }

    #[test]
    fn a_search_ends_when_its_work_is_used_up() {
        let root = Node::parse(EVENT).expect("valid");
        let path = Path::parse("*/B").expect("a path");
        let mut work = Work(3);
        assert!(!path.any(&root, &mut work, &mut |node, _| node.raw == "9"));
        assert_eq!(work, Work(0));
        assert!(path.any(&root, &mut Work(100), &mut |node, _| node.raw == "9"));
    }

    #[track_caller]
    fn look(path: &str, expected: Option<&str>) {
        let root = Node::parse(EVENT).expect("valid");
        let path = Lookup::parse(path).expect("a path");
        assert_eq!(path.find(&root).as_deref(), expected);
    }

    #[test]
    fn gjson_paths_keep_the_type() {
        look("event.A.B", Some("1"));
        look("event/A/B", Some("1"));
        look("event.A", Some(r#"{"B":1}"#));
        look("event.T.1", Some("\"y\""));
        look("event.T.2", None);
        look("event.T.-1", None);
        look("event.T.#", Some("2"));
        look("event.L.#.N", Some("[1,2]"));
        look("event.L.#.M", Some("[]"));
        look(r"event.a\.b", Some("3"));
        look("event.a.b", None);
        look("", None);
        look("event.A.B.C", None);
        look("no spaces here", None);
    }

    #[test]
    fn gjson_queries_and_modifiers_are_refused() {
        for path in ["event.*", "a|b", "@reverse", "event.@this", "event.L.#(N==1).N", "a?"] {
            assert!(Lookup::parse(path).is_err(), "{path}");
        }
    }
}
