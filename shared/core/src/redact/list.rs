//! What one call must not let out, gathered while it runs (AL-111 to AL-137).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Redactor, forms, is_searched, marker};

/// What stands for a call's secret tag.
const TAG: &str = "[tag]";

/// Values that [`RedactionList::add`] should be given in one call, those it has left out of account: some for each of a
/// call's requests.
const ADDED_MAX: usize = 400;

/// Bytes of them. A list takes some forty times as much memory.
const ADDED_BYTES_MAX: usize = 2 << 20;

/// The values that one call hides, each with the marker that stands for it. Its `Debug` shows the markers only.
///
/// It begins with the call's secrets and its tag. What is derived from them is added before it is sent (AL-112), and
/// every text that leaves the call goes through [`Self::hide`], an answer through [`Self::hide_parsed`].
pub struct RedactionList {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    values: Vec<Value>,
    known: HashSet<Arc<str>>,
    /// Values that were added later, and their bytes.
    added: (usize, usize),
    /// Built when it is needed, out of date when a value was added.
    redactor: Option<Arc<Redactor>>,
}

struct Value {
    marker: Box<str>,
    value: Arc<str>,
    /// Worked out when a redactor is first built with the value.
    forms: Option<Vec<Arc<str>>>,
}

impl RedactionList {
    /// The list of a call with these secrets, given as name and value, and this tag (AL-111, AL-131).
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>, tag: &str) -> Self {
        let list = Self { state: Mutex::default() };
        for (name, value) in secrets {
            list.state().add(marker(&name), &value);
        }
        list.state().add(TAG.into(), tag);
        list.state().added = (0, 0);
        list
    }

    /// Hides `value` too, as `marker` (`[auth:basic]`, `[cache:token]`: AL-132, AL-133). A value that is hidden already
    /// keeps its marker (AL-134), and one of fewer than four characters is not searched for (AL-136).
    pub fn add(&self, marker: &str, value: &str) {
        // A marker may come to stand inside a JSON string.
        let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        let marker: String = marker.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        self.state().add(marker.into(), value);
    }

    /// Whether `value` can be added without the list growing beyond what a call needs. Whoever adds what untrusted code
    /// gave asks first, and refuses what the value is for.
    pub fn has_room(&self, value: &str) -> bool {
        let state = self.state();
        let (count, bytes) = state.added;
        let fits = count < ADDED_MAX && bytes.saturating_add(value.len()) <= ADDED_BYTES_MAX;
        fits || state.known.contains(value)
    }

    /// The text with a marker in place of each value, in whatever form, the longest at each place (AL-119 to AL-124).
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor().redact(text)
    }

    /// The JSON text with its values hidden, string by string and as a text (AL-127, AL-128). It stays valid JSON: a
    /// number that held a value becomes a string, and so does a container where a value goes from one of its members to
    /// the next. A text that is not valid JSON is hidden as a text.
    pub fn hide_parsed(&self, json: &str) -> String {
        self.redactor().redact_parsed(json).into_owned()
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.state().redactor()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RedactionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let markers: Vec<&str> = state.values.iter().map(|value| &*value.marker).collect();
        f.debug_tuple("RedactionList").field(&markers).finish()
    }
}

impl State {
    fn add(&mut self, marker: Box<str>, value: &str) {
        if !is_searched(value) || self.known.contains(value) {
            return;
        }
        self.added = (self.added.0 + 1, self.added.1 + value.len());
        let value: Arc<str> = value.into();
        self.known.insert(Arc::clone(&value));
        self.values.push(Value { marker, value, forms: None });
        self.redactor = None;
    }

    fn redactor(&mut self) -> Arc<Redactor> {
        if let Some(redactor) = &self.redactor {
            return Arc::clone(redactor);
        }
        let values = self.values.iter_mut().map(|value| {
            let forms = value.forms.get_or_insert_with(|| forms(&value.value));
            (value.marker.clone(), forms.clone())
        });
        let redactor = Arc::new(Redactor::of(values));
        self.redactor = Some(Arc::clone(&redactor));
        redactor
    }
}

#[cfg(test)]
mod tests;
