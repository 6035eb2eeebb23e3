//! The schemas that extensions advertise, each kept for a minute (LC-147).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use crate::fault::Outcome;
use crate::ids::ExtensionName;
use crate::limits;
use crate::schema::ExtensionSchema;
use crate::time::Timestamp;

use super::install::Extension;

/// A schema being fetched, or fetched: whoever comes meanwhile waits for the same answer.
type Fetch = Shared<BoxFuture<'static, Outcome<Arc<ExtensionSchema>>>>;

struct Entry {
    /// The extension it was asked of.
    of: Arc<Extension>,
    /// On the steady clock.
    since: Timestamp,
    fetch: Fetch,
}

/// Schemas by extension; at most [`limits::SCHEMAS_CACHED_MAX`].
#[derive(Default)]
pub(super) struct Schemas {
    entries: Mutex<HashMap<ExtensionName, Entry>>,
}

impl Schemas {
    /// The schema, from the cache or from `fetch`. Failures are told to all who wait, and not kept.
    pub(super) async fn get(
        &self,
        extension: &Arc<Extension>,
        now: Timestamp,
        fetch: impl FnOnce() -> BoxFuture<'static, Outcome<Arc<ExtensionSchema>>>,
    ) -> Outcome<Arc<ExtensionSchema>> {
        let shared = {
            let mut entries = self.entries.lock().expect("no holder of the lock panics");
            let fresh = entries.get(&extension.definition.name).filter(|entry| {
                entry.of.stored == extension.stored
                    && now.since(entry.since) < limits::SCHEMA_TTL
                    && !matches!(entry.fetch.peek(), Some(Err(_)))
            });
            match fresh {
                Some(entry) => entry.fetch.clone(),
                None => {
                    make_room(&mut entries);
                    let fetch = fetch().shared();
                    let entry =
                        Entry { of: Arc::clone(extension), since: now, fetch: fetch.clone() };
                    entries.insert(extension.definition.name.clone(), entry);
                    fetch
                }
            }
        };
        shared.await
    }
}

/// Drops the oldest entry of a full cache.
fn make_room(entries: &mut HashMap<ExtensionName, Entry>) {
    if (entries.len() as u64) < limits::SCHEMAS_CACHED_MAX {
        return;
    }
    if let Some(oldest) =
        entries.iter().min_by_key(|(_, entry)| entry.since).map(|(name, _)| name.clone())
    {
        entries.remove(&oldest);
    }
}
