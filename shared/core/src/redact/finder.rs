//! Finds the forms of values in a text: the first place, and there the longest form.
//!
//! Two searches share the work, since few secrets are short: forms of eight bytes and more are found by [`Grams`],
//! which looks at a part of the text only; shorter ones by a small automaton, which mostly runs on vector instructions.
//! A text that keeps either busy for nothing, which only happens on purpose, is searched by one automaton for all
//! forms: that one looks at each byte once, whatever the text.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, packed};

use super::grams::Grams;

/// Bytes of a form by which it is found.
pub(super) const ANCHOR_BYTES: usize = 128;

/// Bytes of the shortest anchor that [`Grams`] finds.
pub(super) const LONG_BYTES_MIN: usize = 8;

/// What all the searches of one text may spend on places where no form is, before they go the slow and steady way.
pub(super) struct Effort {
    /// Bytes whose worth of comparisons is left.
    left: usize,
    is_steady: bool,
}

impl Effort {
    /// Bytes that are worth one comparison.
    const COMPARISON: usize = 16;

    /// What a text has to begin with.
    const START: usize = 4_096 * Self::COMPARISON;

    pub(super) fn new() -> Self {
        Self { left: Self::START, is_steady: false }
    }

    /// For so many bytes that were passed.
    pub(super) fn earn(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }

    /// For a comparison; whether it was affordable.
    pub(super) fn spend(&mut self) -> bool {
        self.is_steady |= self.left < Self::COMPARISON;
        self.left = self.left.saturating_sub(Self::COMPARISON);
        !self.is_steady
    }
}

/// The beginning of some forms.
#[derive(Clone)]
pub(super) struct Anchor {
    pub(super) text: Box<str>,
    forms: Vec<Form>,
}

#[derive(Clone)]
struct Form {
    text: Arc<str>,
    marker: usize,
}

/// An anchor at a place.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) anchor: usize,
}

/// A form at a place.
pub(super) struct Hit<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) marker: &'a str,
}

#[derive(Clone)]
pub(super) struct Finder {
    anchors: Vec<Anchor>,
    markers: Vec<Box<str>>,
    long: Option<Grams>,
    short: Option<Short>,
    all: OnceLock<AhoCorasick>,
}

/// The anchors that are too short for [`Grams`].
#[derive(Clone)]
struct Short {
    searcher: Searcher,
    anchors: Vec<usize>,
}

#[derive(Clone)]
enum Searcher {
    /// On vector instructions, where the processor has them, for some dozens of anchors.
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Finder {
    /// Finds these forms, each with the marker that stands for it; `None` without any.
    pub(super) fn new(values: impl IntoIterator<Item = (Box<str>, Vec<Arc<str>>)>) -> Option<Self> {
        let mut markers = Vec::new();
        let mut anchors = Anchors::default();
        for (marker, forms) in values {
            for text in forms {
                anchors.push(Form { text, marker: markers.len() });
            }
            markers.push(marker);
        }
        if anchors.list.is_empty() {
            return None;
        }
        let mut finder = Self::build(anchors.list.clone(), markers);
        // A text that was redacted before can be redacted again, and a marker must not be (AL-124). It is hidden by
        // itself where a value would be found in it.
        let at_risk: Vec<usize> = (0..finder.markers.len())
            .filter(|&index| {
                finder.search(&finder.markers[index], &mut Effort::new()).next(0).is_some()
            })
            .collect();
        if !at_risk.is_empty() {
            for marker in at_risk {
                anchors.push(Form { text: (*finder.markers[marker]).into(), marker });
            }
            finder = Self::build(anchors.list, finder.markers);
        }
        Some(finder)
    }

    fn build(anchors: Vec<Anchor>, markers: Vec<Box<str>>) -> Self {
        let short = Short::new(&anchors);
        let long = Grams::new(&anchors);
        Self { anchors, markers, long, short, all: OnceLock::new() }
    }

    pub(super) fn markers(&self) -> &[Box<str>] {
        &self.markers
    }

    /// A search of this text, from its start to its end.
    pub(super) fn search<'a>(&'a self, text: &'a str, effort: &'a mut Effort) -> Search<'a> {
        Search { finder: self, text, effort, long: Next::Unknown, short: Next::Unknown }
    }

    /// The text with its forms hidden; `None` where there is none.
    pub(super) fn redact(&self, text: &str, effort: &mut Effort) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut search = self.search(text, effort);
        while let Some(hit) = search.next(copied) {
            out.push_str(&text[copied..hit.start]);
            out.push_str(hit.marker);
            copied = hit.end;
        }
        if copied == 0 {
            return None;
        }
        out.push_str(&text[copied..]);
        Some(out)
    }

    /// The first anchor from `from` on, byte by byte.
    fn steady(&self, text: &str, from: usize) -> Option<Found> {
        // Few texts need it, so it is built when one does. Its only errors are of sizes beyond 2^31.
        let all = self.all.get_or_init(|| {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .dense_depth(1)
                .prefilter(false)
                .match_kind(MatchKind::LeftmostLongest)
                .build(self.anchors.iter().map(|anchor| &*anchor.text))
                .expect("the anchors of a call's secrets are far below two gigabytes")
        });
        let found = all.find(Input::new(text).range(from..))?;
        Some(Found { start: found.start(), anchor: found.pattern().as_usize() })
    }

    /// How far the forms reach that begin with an anchor which was found.
    fn reach(&self, text: &str, found: Found) -> Option<Hit<'_>> {
        let rest = &text[found.start..];
        let forms = self.anchors[found.anchor].forms.iter();
        let reach = forms.map(|form| (common(&form.text, rest), form.marker));
        // The first of equals: the value that was given first (AL-134).
        let (length, marker) =
            reach.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        let end = found.start + length;
        Some(Hit { start: found.start, end, marker: &self.markers[marker] })
    }
}

/// Anchors that are being gathered, each once.
#[derive(Default)]
struct Anchors {
    list: Vec<Anchor>,
    known: HashMap<Box<str>, usize>,
}

impl Anchors {
    fn push(&mut self, form: Form) {
        let text = &form.text[..form.text.floor_char_boundary(ANCHOR_BYTES)];
        if let Some(&index) = self.known.get(text) {
            return self.list[index].forms.push(form);
        }
        self.known.insert(text.into(), self.list.len());
        self.list.push(Anchor { text: text.into(), forms: vec![form] });
    }
}

/// A search that moves forward.
pub(super) struct Search<'a> {
    finder: &'a Finder,
    text: &'a str,
    effort: &'a mut Effort,
    long: Next,
    short: Next,
}

/// What a search knows about the rest of the text.
#[derive(Clone, Copy)]
enum Next {
    Unknown,
    At(Found),
    Nothing,
}

impl Next {
    fn of(found: Option<Found>) -> Self {
        found.map_or(Self::Nothing, Self::At)
    }

    /// Whether it says nothing about the text from `from` on.
    fn is_behind(self, from: usize) -> bool {
        match self {
            Self::Unknown => true,
            Self::At(found) => found.start < from,
            Self::Nothing => false,
        }
    }
}

impl<'a> Search<'a> {
    /// The first form from `from` on, which is not before the last form's end.
    pub(super) fn next(&mut self, from: usize) -> Option<Hit<'a>> {
        let quick = if self.effort.is_steady { None } else { self.quick(from) };
        let found = match quick {
            Some(found) => found,
            None => self.finder.steady(self.text, from),
        }?;
        self.finder.reach(self.text, found)
    }

    /// `None` where the effort is spent.
    fn quick(&mut self, from: usize) -> Option<Option<Found>> {
        let (finder, text) = (self.finder, self.text);
        if self.long.is_behind(from) {
            self.long = match &finder.long {
                Some(grams) => {
                    Next::of(grams.find(text.as_bytes(), &finder.anchors, from, self.effort)?)
                }
                None => Next::Nothing,
            };
        }
        if self.short.is_behind(from) {
            self.short = Next::of(finder.short.as_ref().and_then(|short| short.find(text, from)));
        }
        Some(match (self.long, self.short) {
            // A long form at the same place is longer.
            (Next::At(long), Next::At(short)) if long.start <= short.start => Some(long),
            (_, Next::At(found)) | (Next::At(found), _) => Some(found),
            _ => None,
        })
    }
}

impl Short {
    fn new(anchors: &[Anchor]) -> Option<Self> {
        let is_short = |index: &usize| anchors[*index].text.len() < LONG_BYTES_MIN;
        let short: Vec<usize> = (0..anchors.len()).filter(is_short).collect();
        if short.is_empty() {
            return None;
        }
        let texts = || short.iter().map(|&index| &*anchors[index].text);
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .builder()
            .extend(texts())
            .build();
        let automaton = || {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(texts())
                .expect("the short forms of a call's secrets are far below two gigabytes")
        };
        let searcher = packed.map_or_else(|| Searcher::Automaton(automaton()), Searcher::Packed);
        Some(Self { searcher, anchors: short })
    }

    fn find(&self, text: &str, from: usize) -> Option<Found> {
        let found = match &self.searcher {
            Searcher::Packed(packed) => packed.find_in(text, (from..text.len()).into()),
            Searcher::Automaton(automaton) => automaton.find(Input::new(text).range(from..)),
        }?;
        Some(Found { start: found.start(), anchor: self.anchors[found.pattern().as_usize()] })
    }
}

/// Bytes of whole characters that both begin with.
fn common(form: &str, text: &str) -> usize {
    let equal = form.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    form.floor_char_boundary(equal)
}

#[cfg(test)]
mod tests;
