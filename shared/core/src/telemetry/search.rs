//! Lists and searches an organization's events by time and type.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use super::Telemetry;
use super::envelope::Stored;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{
    EVENT_PAGE_BYTES_MAX, EVENTS_PER_PAGE, EVENTS_PER_PAGE_MAX, EVENTS_SCANNED_MAX,
};
use crate::ports::Query;
use crate::time::Timestamp;

/// Events the store is asked for at a time: they can be large.
const STORE_PAGE: usize = 64;

/// Bytes of events that one page of a search looks at, before the one that goes over it.
const SCANNED_BYTES_MAX: usize = 64 << 20;

/// Days one page of a search looks at; each is a partition.
const DAYS_SCANNED_MAX: usize = 400;

/// Which events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Those that came at this time or later; `None`: as old as they are kept.
    pub from: Option<Timestamp>,
    /// Those that came before this time; `None`: up to now.
    pub to: Option<Timestamp>,
    /// Those of this type.
    pub event_type: Option<String>,
    /// How many at most, 1 to [`EVENTS_PER_PAGE_MAX`]; `None`: [`EVENTS_PER_PAGE`].
    pub limit: Option<usize>,
    /// Where the page before ended: its [`EventPage::next`].
    pub cursor: Option<String>,
    /// The oldest first, not the newest.
    pub oldest_first: bool,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventPage {
    /// The envelopes, each a JSON text.
    pub events: Vec<String>,
    /// The cursor of the next page; `None`: that was all. A page may be short, or empty, and have a next one.
    pub next: Option<String>,
}

impl EventPage {
    /// `{"events": […], "next_cursor": text or null}`, the events byte for byte.
    pub fn json(&self) -> String {
        let next = serde_json::Value::from(self.next.clone());
        format!("{{\"events\":[{}],\"next_cursor\":{next}}}", self.events.join(","))
    }
}

/// The range that is left to look through: times, and the sort key behind which the page begins.
struct Range {
    from: Timestamp,
    to: Timestamp,
    after: Option<String>,
}

impl Telemetry {
    /// A page of the organization's events, ordered by when they came.
    pub async fn events(&self, oid: Oid, query: &EventQuery) -> Outcome<EventPage> {
        let limit = query.limit.unwrap_or(EVENTS_PER_PAGE);
        if limit == 0 || limit > EVENTS_PER_PAGE_MAX {
            return Err(Fault::new(
                Code::BadRequest,
                format!("limit is not a number from 1 to {EVENTS_PER_PAGE_MAX}"),
            ));
        }
        let range = self.range(query)?;
        if range.from >= range.to {
            return Ok(EventPage::default());
        }
        let mut page = Filling { limit, ..Filling::default() };
        for (count, day) in days(&range, query.oldest_first).enumerate() {
            if count == DAYS_SCANNED_MAX {
                let edge = if query.oldest_first { day } else { day.saturating_add(1) };
                let sort = keys::event_start(Timestamp::from_secs(edge.saturating_mul(86_400)));
                return Ok(EventPage { events: page.events, next: Some(BASE64.encode(sort)) });
            }
            if self.scan(oid, day, &range, query, &mut page).await? {
                let next = page.last.map(|sort| BASE64.encode(sort));
                return Ok(EventPage { events: page.events, next });
            }
        }
        Ok(EventPage { events: page.events, next: None })
    }

    fn range(&self, query: &EventQuery) -> Outcome<Range> {
        let now = self.ports.clock.now();
        // What is older is gone; a clock that was set back may have left some ahead of now.
        let oldest = now.minus(self.retention).minus(DAY);
        let newest = now.plus(DAY);
        let mut range = Range {
            from: query.from.unwrap_or(oldest).max(oldest),
            to: query.to.unwrap_or(newest).min(newest),
            after: None,
        };
        if let Some(cursor) = &query.cursor {
            let (at, sort) = read_cursor(cursor)
                .ok_or_else(|| Fault::new(Code::BadRequest, "cursor is not one of a search"))?;
            if query.oldest_first {
                range.from = range.from.max(at);
            } else {
                range.to = range.to.min(Timestamp::from_millis(at.millis().saturating_add(1)));
            }
            range.after = Some(sort);
        }
        Ok(range)
    }

    /// Looks through a day; whether the page is full.
    async fn scan(
        &self,
        oid: Oid,
        day: i64,
        range: &Range,
        query: &EventQuery,
        page: &mut Filling,
    ) -> Outcome<bool> {
        let mut wanted = Query {
            partition: keys::telemetry(oid, day),
            from: keys::event_start(range.from),
            to: keys::event_start(range.to),
            limit: STORE_PAGE,
            backward: !query.oldest_first,
        };
        if let Some(after) = &range.after {
            if query.oldest_first {
                // The first key behind it.
                wanted.from = wanted.from.max(format!("{after}\0"));
            } else {
                wanted.to = wanted.to.min(after.clone());
            }
        }
        loop {
            if wanted.to <= wanted.from {
                return Ok(false);
            }
            let found = self.ports.store.query(wanted.clone()).await?;
            for (sort, item) in found.items {
                let Ok(text) = String::from_utf8(item.data) else { continue };
                if page.take(sort, text, query.event_type.as_deref()) {
                    return Ok(true);
                }
            }
            match found.next {
                None => return Ok(false),
                Some(next) if query.oldest_first => wanted.from = next,
                Some(next) => wanted.to = next,
            }
        }
    }
}

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

fn days(range: &Range, oldest_first: bool) -> impl Iterator<Item = i64> + use<> {
    let first = range.from.day();
    let last = Timestamp::from_millis(range.to.millis().saturating_sub(1)).day();
    (first..=last).map(move |day| if oldest_first { day } else { last - (day - first) })
}

/// A page that is being filled.
#[derive(Default)]
struct Filling {
    limit: usize,
    bytes: usize,
    scanned: usize,
    scanned_bytes: usize,
    last: Option<String>,
    events: Vec<String>,
}

impl Filling {
    /// Looks at an event; whether the page ends before it.
    fn take(&mut self, sort: String, text: String, event_type: Option<&str>) -> bool {
        if self.scanned >= EVENTS_SCANNED_MAX || self.scanned_bytes >= SCANNED_BYTES_MAX {
            return true;
        }
        let size = text.len();
        let wanted = event_type.is_none_or(|wanted| {
            serde_json::from_str::<Stored<'_>>(&text)
                .is_ok_and(|stored| stored.routing.event_type == wanted)
        });
        if wanted {
            let full = self.events.len() >= self.limit
                || self.bytes + size > EVENT_PAGE_BYTES_MAX && !self.events.is_empty();
            if full {
                return true;
            }
            self.bytes += size;
            self.events.push(text);
        }
        self.scanned += 1;
        self.scanned_bytes += size;
        self.last = Some(sort);
        false
    }
}

/// A cursor is the sort key of the last event that was looked at.
fn read_cursor(cursor: &str) -> Option<(Timestamp, String)> {
    let sort = String::from_utf8(BASE64.decode(cursor).ok()?).ok()?;
    let (millis, id) = sort.split_once('#')?;
    let known = |c: char| c.is_ascii_hexdigit() || c == '-';
    if millis.len() != 15 || id.len() > 64 || !id.chars().all(known) {
        return None;
    }
    let at = millis.bytes().all(|b| b.is_ascii_digit()).then(|| millis.parse().ok()).flatten()?;
    Some((Timestamp::from_millis(at), sort))
}
