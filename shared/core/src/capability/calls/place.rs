//! Places among the calls of a target that are under way (CH-035).
//!
//! In a process they are counted. Where several work on one store, each place is an item that stands there while its call
//! runs, so that no two calls have the same one. To keep what is quick cheap, a process takes none in the store for a
//! target whose last call through it took less than [`QUICK_CALL`].

use std::collections::HashSet;

use crate::capability::id::Slug;
use crate::capability::refusal::Refusal;
use crate::capability::service::{Capabilities, Known};
use crate::keys;
use crate::limits::{CAPABILITY_LEASE, QUICK_CALL};
use crate::ports::{Commit, Committed, Key, Outage, Query, When, Write};
use crate::slots::Slot;
use crate::time::Timestamp;

/// A place. What stands in the store for it goes with [`Capabilities::leave`], or else by itself once its call cannot
/// run any more.
pub(super) struct Place {
    /// Among those of this process.
    _slot: Slot<Slug>,
    /// Among those of all.
    item: Option<Key>,
    target: Slug,
    since: Timestamp,
}

impl Capabilities {
    /// A place among the calls of a target.
    pub(super) async fn place(&self, target: &Known) -> Result<Place, Refusal> {
        let (inner, slug) = (&self.inner, &target.extension.slug);
        let slot = inner.running.take(slug, inner.partner_calls).ok_or(Refusal::PartnerBusy)?;
        let since = self.ports().clock.steady();
        let item = match self.is_told_to_others(slug).await {
            true => Some(self.free_place(slug).await?.ok_or(Refusal::PartnerBusy)?),
            false => None,
        };
        Ok(Place { _slot: slot, item, target: slug.clone(), since })
    }

    async fn is_told_to_others(&self, slug: &Slug) -> bool {
        // A store whose messages are a step of their own is one that many processes work on.
        let shared = !self.ports().store.atomic();
        shared && self.inner.quick.get(slug).await.is_none_or(|is_quick| !*is_quick)
    }

    /// Takes a place in the store; `None`: all are taken.
    async fn free_place(&self, slug: &Slug) -> Result<Option<Key>, Outage> {
        let ports = self.ports();
        // Who loses a place to another sees it taken the next time, so that only coming and going can use up the tries.
        for _ in 0..self.inner.partner_calls {
            let free = self.free_places(slug).await?;
            // Any of them, so that who looks at the same time seldom wants the same one.
            let Some(any) = ports.ids.uuid().as_u128().checked_rem(free.len() as u128) else {
                return Ok(None);
            };
            let key = free[usize::try_from(any).expect("it is less than a length")].clone();
            let expires_at = Some(ports.clock.now().plus(CAPABILITY_LEASE));
            let (data, when) = (Vec::new(), When::Absent);
            let writes = vec![Write::Put { key: key.clone(), data, expires_at, when }];
            let commit = Commit { writes, ..Commit::default() };
            if ports.store.commit(commit).await? == Committed::Done {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    async fn free_places(&self, slug: &Slug) -> Result<Vec<Key>, Outage> {
        let all = (0..self.inner.partner_calls).map(|place| keys::running_call(slug, place));
        let mut free: Vec<Key> = all.collect();
        let mut query = Query::prefix(keys::running_calls(slug), "");
        loop {
            let page = self.ports().store.query(query.clone()).await?;
            let taken: HashSet<String> = page.items.into_iter().map(|(sort, _)| sort).collect();
            free.retain(|key| !taken.contains(&key.sort));
            match page.next {
                Some(next) => query.from = next,
                None => return Ok(free),
            }
        }
    }

    /// Gives a place back after a call, and remembers whether its target was quick.
    pub(super) async fn leave(&self, place: Place) {
        let took = self.ports().clock.steady().since(place.since);
        self.inner.quick.insert(place.target.clone(), took < QUICK_CALL).await;
        self.clear(place).await;
    }

    /// Gives back a place whose target was not called.
    pub(super) async fn clear(&self, place: Place) {
        let Some(key) = place.item else { return };
        if CAPABILITY_LEASE <= self.ports().clock.steady().since(place.since) {
            return; // It may be another's by now.
        }
        let writes = vec![Write::Delete { key, when: When::Always }];
        let cleared = self.ports().store.commit(Commit { writes, ..Commit::default() }).await;
        if let Err(outage) = cleared {
            tracing::warn!(source = ?outage.source, "a place stays taken until it expires: {outage}");
        }
    }
}
