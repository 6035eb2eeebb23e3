//! What the parts of this module share: ports, counters, compiled manifests.

use std::sync::Arc;

use futures_util::lock::Mutex;

use crate::fault::{Code, Fault, Outcome};
use crate::limits::{
    COMPILED_CACHED_BYTES_MAX, EXTENSION_BLOCK, KEYED_CALLS_REMEMBERED_MAX,
    OPTIONS_CACHED_BYTES_MAX, RATES_REMEMBERED_MAX,
};
use crate::ports::{Item, Outage, Ports};
use crate::remembered::Remembered;
use crate::slots::Slots;
use crate::stored;

use super::compiled::Compiled;
use super::extensions::DeveloperToken;
use super::id::Slug;
use super::model::Extension;
use super::options::Choices;
use super::rate::Rates;

/// Calls, options and events between extensions. Cheap to clone.
#[derive(Clone)]
pub struct Capabilities {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) ports: Ports,
    pub(super) rates: Rates,
    /// The newest version that was read.
    extensions: Remembered<Slug, Known>,
    pub(super) options: Remembered<String, Choices>,
    /// Calls under way in this process, by target.
    pub(super) running: Slots<Slug>,
    /// Whether a target answered the last call within [`crate::limits::QUICK_CALL`].
    pub(super) quick: Remembered<Slug, bool>,
    /// How many of a target there are at most.
    pub(super) partner_calls: usize,
    /// Whose turn it is to claim a call with a key, by the call's id.
    pub(super) turns: Remembered<String, Mutex<()>>,
}

/// One version of an extension, read and compiled once.
pub struct Known {
    /// What is stored.
    pub extension: Extension,
    /// Its manifest, with compiled schemas.
    pub compiled: Compiled,
    /// What it was read from. A revision would not do: it starts anew with an extension that was withdrawn and registered
    /// again.
    data: Vec<u8>,
    /// About what it takes in memory, in bytes.
    weight: u32,
}

impl Capabilities {
    /// Over these ports, with so many calls of one target under way at a time.
    pub fn new(ports: Ports, partner_calls: usize) -> Self {
        let options =
            Remembered::weighed(OPTIONS_CACHED_BYTES_MAX, |key: &String, choices: &Choices| {
                u32::try_from(key.len() + choices.json.len()).unwrap_or(u32::MAX)
            });
        let extensions =
            Remembered::weighed(COMPILED_CACHED_BYTES_MAX, |_, known: &Known| known.weight);
        Self {
            inner: Arc::new(Inner {
                rates: Rates::new(ports.clone()),
                ports,
                extensions,
                options,
                running: Slots::default(),
                quick: Remembered::idle(RATES_REMEMBERED_MAX, EXTENSION_BLOCK),
                partner_calls,
                turns: Remembered::new(KEYED_CALLS_REMEMBERED_MAX),
            }),
        }
    }

    /// The counters.
    pub fn rates(&self) -> &Rates {
        &self.inner.rates
    }

    /// The ports it works over.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// An extension, as it was at most [`crate::limits::RECENT_MAX`] ago, with its manifest compiled. `None`: there is
    /// none of that name.
    pub async fn known(&self, slug: &Slug) -> Result<Option<Arc<Known>>, Outage> {
        self.known_where(slug, |_| true).await
    }

    /// The extension that a developer token stands for. A token that what is remembered does not know is looked up
    /// afresh: it may be newer.
    pub async fn authenticate(&self, token: &str) -> Outcome<Arc<Known>> {
        let refused = || Fault::new(Code::Unauthenticated, "the token is not valid");
        let token = DeveloperToken::read(token).ok_or_else(refused)?;
        let known = self.known_where(token.slug(), |extension| token.is_of(extension)).await?;
        known.filter(|known| token.is_of(&known.extension)).ok_or_else(refused)
    }

    /// As [`Self::known`]; but what is remembered only where it is `usable`, else as it is now.
    async fn known_where(
        &self,
        slug: &Slug,
        usable: impl Fn(&Extension) -> bool + Send + Sync,
    ) -> Result<Option<Arc<Known>>, Outage> {
        let key = crate::keys::capability_extension(slug);
        let compiled = self.inner.extensions.get(slug).await;
        let same = |item: &Item| compiled.clone().filter(|known| known.data == item.data);
        let fits = |item: &Item| match same(item) {
            Some(known) => usable(&known.extension),
            None => stored::read(item, slug.as_str()).is_ok_and(|extension| usable(&extension)),
        };
        let Some(item) = stored::recent(self.ports(), &key, fits).await? else { return Ok(None) };
        if let Some(known) = same(&item) {
            return Ok(Some(known));
        }
        let extension: Extension = stored::read(&item, slug.as_str())?;
        let compiled = Compiled::new(&extension.manifest);
        let weight = u32::try_from(compiled.bytes() + 2 * item.data.len()).unwrap_or(u32::MAX);
        let known = Arc::new(Known { extension, compiled, data: item.data, weight });
        self.inner.extensions.insert(slug.clone(), known.clone()).await;
        Ok(Some(known))
    }
}
