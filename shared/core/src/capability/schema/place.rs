//! Where something stands in a schema.

use std::fmt::Write as _;

/// Characters of a name that a fault shows.
const NAME_CHARS_SHOWN: usize = 40;

/// Names that a fault shows.
const NAMES_SHOWN: usize = 16;

/// A path through a schema. Names are cut, so that many places of a hostile schema take little.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    text: String,
    names: usize,
}

impl Place {
    /// The place of a member of what is here.
    pub(super) fn within(&self, name: &str) -> Self {
        let mut inner = self.clone();
        inner.names += 1;
        if inner.names <= NAMES_SHOWN {
            let _ = write!(inner.text, "/{}", cut(name));
        } else if inner.names == NAMES_SHOWN + 1 {
            inner.text.push_str("/…");
        }
        inner
    }

    /// What is wrong here.
    pub(super) fn fault(&self, what: &str) -> String {
        if self.text.is_empty() { what.to_owned() } else { format!("{}: {what}", self.text) }
    }
}

/// The start of a name.
pub(super) fn cut(name: &str) -> &str {
    name.char_indices().nth(NAME_CHARS_SHOWN).map_or(name, |(end, _)| &name[..end])
}
