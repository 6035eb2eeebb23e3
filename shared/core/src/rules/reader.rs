//! Reads an object member by member, and says by its path what is wrong or left over.

use super::document::{Kind, Node};

/// An object that is being read.
pub(super) struct Reader<'n, 'a> {
    node: &'n Node<'a>,
    at: String,
    read: Vec<&'static str>,
}

impl<'n, 'a> Reader<'n, 'a> {
    /// Starts on `node`, which stands at `at` and has to be an object without doubled keys.
    pub(super) fn object(node: &'n Node<'a>, at: &str) -> Result<Self, String> {
        let Kind::Object(members) = &node.kind else {
            return Err(format!("{}: is not an object, {}", place(at), node.type_name()));
        };
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{}: stands there twice", join(at, pair[0])));
        }
        Ok(Self { node, at: at.to_owned(), read: Vec::new() })
    }

    /// Where a member stands.
    pub(super) fn place(&self, name: &str) -> String {
        join(&self.at, name)
    }

    /// What is wrong with a member.
    pub(super) fn error(&self, name: &str, what: &str) -> String {
        format!("{}: {what}", self.place(name))
    }

    /// A member.
    pub(super) fn optional(&mut self, name: &'static str) -> Option<&'n Node<'a>> {
        self.read.push(name);
        self.node.member(name)
    }

    /// A member that has to be there.
    pub(super) fn required(&mut self, name: &'static str) -> Result<&'n Node<'a>, String> {
        self.optional(name).ok_or_else(|| self.error(name, "is missing"))
    }

    /// A member that is a string.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<&'n str>, String> {
        match self.optional(name) {
            None => Ok(None),
            Some(node) => self.as_text(name, node).map(Some),
        }
    }

    /// A member that has to be there and is a string.
    pub(super) fn required_text(&mut self, name: &'static str) -> Result<&'n str, String> {
        let node = self.required(name)?;
        self.as_text(name, node)
    }

    fn as_text(&self, name: &str, node: &'n Node<'a>) -> Result<&'n str, String> {
        node.text()
            .ok_or_else(|| self.error(name, &format!("is not a string, {}", node.type_name())))
    }

    /// A member that is a list of strings; empty where it is absent.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        let Some(node) = self.optional(name) else { return Ok(Vec::new()) };
        let Kind::List(elements) = &node.kind else {
            return Err(self.error(name, &format!("is not a list, {}", node.type_name())));
        };
        if elements.is_empty() {
            return Err(self.error(name, "is empty"));
        }
        elements.iter().map(|element| self.as_text(name, element).map(str::to_owned)).collect()
    }

    /// A member that is `true` or `false`.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        match self.optional(name).map(|node| (&node.kind, node)) {
            None => Ok(None),
            Some((Kind::Bool(value), _)) => Ok(Some(*value)),
            Some((_, node)) => {
                Err(self.error(name, &format!("is not a boolean, {}", node.type_name())))
            }
        }
    }

    /// A member that is a whole number from 1 to 1,000,000.
    pub(super) fn count(&mut self, name: &'static str) -> Result<Option<usize>, String> {
        let Some(node) = self.optional(name) else { return Ok(None) };
        match node.raw.parse::<usize>() {
            Ok(count @ 1..=1_000_000) if node.kind == Kind::Number => Ok(Some(count)),
            _ => Err(self.error(name, "is not a whole number from 1 to 1000000")),
        }
    }

    /// Every member was read.
    pub(super) fn end(&self) -> Result<(), String> {
        let Kind::Object(members) = &self.node.kind else { return Ok(()) };
        match members.iter().find(|(name, _)| !self.read.contains(&name.as_ref())) {
            None => Ok(()),
            Some((name, _)) => Err(self.error(name, "is not supported")),
        }
    }
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the rule" } else { at }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}
