//! Reading the events of a lock.

use serde_json::json;

use crate::capability::calls::{Asker, Origin};
use crate::capability::link::{EVENT_ID, is_id};
use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::fault::{Code, Fault};
use crate::keys;
use crate::limits::{LOCK_EVENTS_LISTED_MAX, LOCK_EVENTS_SCANNED_MAX, SCOPE_PAGE_BYTES_MAX};
use crate::ports::Query;
use crate::stored;

use super::EventRecord;

impl Capabilities {
    /// The events of a lock that an extension may read, from after `after` on, oldest first:
    /// `{"results": [...], "hasMore": bool, "lastId"?: id}`. Where there are more, `lastId` is the `after` of the next
    /// page, which may be empty: no more than [`LOCK_EVENTS_SCANNED_MAX`] events are looked at, and a page ends once it has
    /// [`SCOPE_PAGE_BYTES_MAX`].
    pub async fn events(
        &self,
        origin: &Origin,
        after: Option<&str>,
        limit: usize,
    ) -> Result<String, Refusal> {
        let Asker::Extension(known) = &origin.asker else {
            return Err(Refusal::ForeignNamespace);
        };
        let mut query = Query::prefix(keys::lock_events(origin.oid, &origin.lock), EVENT_ID);
        if let Some(after) = after {
            if !is_id(after) || !after.starts_with(EVENT_ID) {
                let text = "after is no id of an event";
                return Err(Fault::new(Code::BadRequest, text).into());
            }
            query.from = format!("{after}!");
        }
        let limit = limit.clamp(1, LOCK_EVENTS_LISTED_MAX);
        // One more than asked for: that a page is full does not say whether anything follows.
        query.limit = limit + 1;
        let (mut found, mut bytes, mut scanned) = (Vec::<EventRecord>::new(), 0, 0);
        let mut last = None;
        let has_more = 'pages: loop {
            let page = self.ports().store.query(query.clone()).await?;
            for (sort, item) in page.items {
                let full = limit <= found.len() || SCOPE_PAGE_BYTES_MAX <= bytes;
                if full || LOCK_EVENTS_SCANNED_MAX <= scanned {
                    break 'pages true;
                }
                let record: EventRecord = stored::read(&item, &sort)?;
                (last, scanned) = (Some(sort), scanned + 1);
                if record.is_known_to(&known.extension) {
                    bytes += item.data.len();
                    found.push(record);
                }
            }
            match page.next {
                None => break false,
                Some(next) => query.from = next,
            }
        };
        let results: Vec<_> = found.iter().map(|record| record.view(&origin.lock)).collect();
        let mut answer = json!({ "results": results, "hasMore": has_more });
        if let Some(last) = last.filter(|_| has_more) {
            answer["lastId"] = last.into();
        }
        Ok(answer.to_string())
    }
}
