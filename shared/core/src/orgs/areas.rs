//! The places where an organization has data, a page at a time.

use crate::ids::Oid;
use crate::keys;
use crate::model::Area;
use crate::ports::{Item, Key, Outage, Query, Scan, Store};

/// Where the items of an area lie.
enum Place {
    Partition(String),
    Prefix(String),
}

fn place(oid: Oid, area: Area) -> Place {
    match area {
        Area::Invocations => Place::Prefix(keys::invocations(oid)),
        Area::Telemetry => Place::Prefix(keys::telemetry_days(oid)),
        Area::EventPosts => Place::Prefix(keys::event_posts(oid)),
        Area::Scopes => Place::Prefix(keys::scopes(oid)),
        Area::Errors => Place::Partition(keys::errors(oid)),
        Area::Usage => Place::Partition(keys::usage(oid)),
        Area::Metered => Place::Partition(keys::metered_reports(oid)),
        Area::Settings => Place::Partition(keys::settings(oid)),
    }
}

/// Some items of an area, at most `limit`, and where to go on; without that, these were the last.
pub(crate) async fn page(
    store: &dyn Store,
    oid: Oid,
    area: Area,
    cursor: Option<String>,
    limit: usize,
) -> Result<(Vec<(Key, Item)>, Option<String>), Outage> {
    match place(oid, area) {
        Place::Prefix(prefix) => {
            let page = store.scan(Scan { prefix, cursor, limit }).await?;
            Ok((page.items, page.next))
        }
        Place::Partition(partition) => {
            let mut query = Query { limit, ..Query::prefix(&*partition, "") };
            query.from = cursor.unwrap_or_default();
            let page = store.query(query).await?;
            let key = |(sort, item)| (Key::new(&*partition, sort), item);
            Ok((page.items.into_iter().map(key).collect(), page.next))
        }
    }
}
