//! The envelope of an event: `{"event": <as it came>, "routing": {…}, "ts": <when it came>}`.
//!
//! `routing` holds what rules and searches go by: `oid`, `iid`, `sid`, `hostname`, `event_type`, `event_time` (in
//! milliseconds), `event_id` and `tags`. The type is what the adapter's mapping points to, else the event's own member
//! `event_type`, else `json`; the time is what the mapping points to, else when the event came. Types are cut at
//! [`TYPE_BYTES_MAX`] bytes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::adapter::Adapter;
use crate::ids::Oid;
use crate::keys::uuid_of;
use crate::rules::document::{Kind, Node};
use crate::rules::path::Lookup;
use crate::time::Timestamp;

/// The type of an event that does not say what it is.
pub const TYPE_UNKNOWN: &str = "json";

/// Longest type of an event and name of a host, in bytes; the rest is cut.
pub const TYPE_BYTES_MAX: usize = 256;

/// What the platform knows about an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// The organization.
    pub oid: Oid,
    /// The installation key.
    pub iid: String,
    /// The sensor: one for each adapter.
    pub sid: Uuid,
    /// The host it comes from.
    pub hostname: String,
    /// Its type.
    pub event_type: String,
    /// When it happened, in milliseconds since the epoch.
    pub event_time: i64,
    /// Its id.
    pub event_id: Uuid,
    /// Tags of its adapter and installation key.
    pub tags: Vec<String>,
}

/// The sensor of an adapter: the same for the same organization, installation key and seed.
pub fn sensor(oid: Oid, adapter: &Adapter) -> Uuid {
    let seed = if adapter.seed.is_empty() { &adapter.name } else { &adapter.seed };
    let oid = oid.to_string();
    let parts = [b"sensor".as_slice(), oid.as_bytes(), adapter.iid.as_bytes(), seed.as_bytes()];
    uuid_of(&parts)
}

/// The envelope of an event that came at `at`. `routing` is filled but for what the event itself says.
pub fn wrap(event: &str, adapter: &Adapter, mut routing: Routing, at: Timestamp) -> String {
    // It was checked before; what cannot be read says nothing of itself.
    if let Ok(node) = Node::parse(event) {
        let mapping = &adapter.mapping;
        let own = node.member("event_type");
        let named = mapping.event_type.as_ref().and_then(|path| text(path, &node));
        routing.event_type = named
            .or_else(|| own.and_then(Node::text))
            .filter(|name| !name.is_empty())
            .map_or(TYPE_UNKNOWN, |name| cut(name))
            .to_owned();
        if let Some(time) = mapping.event_time.as_ref().and_then(|path| time(path, &node)) {
            routing.event_time = time;
        }
        if let Some(name) = mapping.hostname.as_ref().and_then(|path| text(path, &node)) {
            cut(name).clone_into(&mut routing.hostname);
        }
    }
    let routing = serde_json::to_string(&routing).expect("routing has text keys");
    format!("{{\"event\":{event},\"routing\":{routing},\"ts\":\"{at}\"}}")
}

fn text<'n>(path: &Lookup, node: &'n Node<'_>) -> Option<&'n str> {
    path.node(node).and_then(Node::text).filter(|text| !text.is_empty())
}

/// A time of an event: seconds or milliseconds since the epoch, or RFC 3339 text.
fn time(path: &Lookup, node: &Node<'_>) -> Option<i64> {
    /// Numbers from here on are milliseconds: as seconds they would be after the year 5000.
    const MILLIS_FROM: f64 = 1e11;
    let found = path.node(node)?;
    match &found.kind {
        Kind::Number => {
            let number: f64 = found.raw.parse().ok().filter(|n: &f64| *n >= 0.0 && *n < 1e15)?;
            let millis = if number < MILLIS_FROM { number * 1000.0 } else { number };
            // Within the bounds above, so nothing is lost but a fraction of a millisecond.
            Some(millis as i64)
        }
        Kind::Text(text) => Timestamp::parse(text).map(Timestamp::millis),
        _ => None,
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TYPE_BYTES_MAX)]
}

/// What a search needs to know of a stored envelope.
#[derive(Deserialize)]
pub(super) struct Stored<'a> {
    #[serde(borrow)]
    pub(super) routing: StoredRouting<'a>,
}

/// The part of the routing that a search goes by.
#[derive(Deserialize)]
pub(super) struct StoredRouting<'a> {
    #[serde(borrow)]
    pub(super) event_type: std::borrow::Cow<'a, str>,
}
