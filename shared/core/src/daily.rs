//! The daily update: one event for every install, spread over the day by organization (LC-106 to LC-109).

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::call::Calls;
use crate::fault::Fault;
use crate::ids::ExtensionName;
use crate::keys::{self, INSTALL_SHARDS, SLOTS};
use crate::limits;
use crate::ports::{Commit, Outage, Query, When, Write};
use crate::stored;
use crate::time::Timestamp;

/// How far the fan-out has come: every minute before it was looked at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cursor {
    /// Minutes since the epoch.
    next_minute: i64,
}

/// What an extension was last seen to advertise.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Advertised {
    update: bool,
    checked_at: Timestamp,
}

/// Sends the update events that have come due since the last run; for at most the last day.
///
/// An organization's event is due at the same minute every day ([`keys::slot`]). Each is named by extension,
/// organization and day, so that a second run of the same minute, two runs at once, or a clock that was set back, send
/// nothing twice. Run it every minute or less often: what came due in between goes out then. Answers how many were sent.
pub async fn run(calls: &Calls) -> Result<usize, Outage> {
    let ports = calls.ports();
    let now_minute = ports.clock.now().millis().div_euclid(60_000);
    let found = ports.store.get(&keys::daily_cursor()).await?;
    let next_minute = match &found {
        Some(item) => read::<Cursor>(&item.data)?.next_minute,
        None => now_minute,
    };
    let first = next_minute.max(now_minute - i64::from(SLOTS) + 1);
    if now_minute < first {
        return Ok(0);
    }
    let mut sent = 0;
    for extension in extensions(calls).await? {
        if wants_update(calls, &extension).await? {
            for (day, from, to) in windows(first, now_minute) {
                sent += fan_out(calls, &extension, day, from, to).await?;
            }
        }
    }
    let cursor = Cursor { next_minute: now_minute + 1 };
    let write = Write::Put {
        key: keys::daily_cursor(),
        data: serde_json::to_vec(&cursor).expect("a cursor can be written as JSON"),
        expires_at: None,
        when: found.map_or(When::Absent, |item| When::Revision(item.revision)),
    };
    // Lost to another run: it has moved the cursor, and what both sent is claimed once.
    ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await?;
    Ok(sent)
}

/// Sends every update of a day on its way, for a schedule that runs once a day: few messages carry the installs through
/// the delay queue, and let go of each in its minute. Nothing is stored: a second run of the same day sends what the
/// first did, and each update is delivered once. Answers how many updates that are.
///
/// `at` is the time for which the run was planned, however late it comes: its day in UTC is meant.
pub async fn run_day(calls: &Calls, at: Timestamp) -> Result<usize, Outage> {
    let day = at.day();
    let mut count = 0;
    for extension in extensions(calls).await? {
        // Out of reach at the moment: what it wants is looked at again when each update is delivered.
        let wanted = match calls.advertised_events(&extension).await {
            Ok(events) => events.iter().any(|event| event == "update"),
            Err(fault) => {
                could_not_ask(&extension, &fault);
                true
            }
        };
        if !wanted {
            continue;
        }
        let mut installs = Vec::new();
        for shard in 0..INSTALL_SHARDS {
            let mut query = Query::prefix(keys::installs(&extension, shard), "");
            loop {
                let page = calls.ports().store.query(query.clone()).await?;
                installs.extend(page.items.iter().filter_map(|(sort, _)| keys::read_install(sort)));
                match page.next {
                    Some(next) => query.from = next,
                    None => break,
                }
            }
        }
        installs.sort_unstable();
        count += installs.len();
        let sends = calls.update_messages(&extension, day, &installs);
        if !sends.is_empty() {
            calls.ports().store.commit(Commit { sends, ..Commit::default() }).await?;
        }
    }
    Ok(count)
}

/// Slots of each day in the minutes `first..=last`: (day, first slot, slot after the last).
fn windows(first: i64, last: i64) -> Vec<(i64, u32, u32)> {
    let slots = i64::from(SLOTS);
    let mut windows = Vec::new();
    let mut minute = first;
    while minute <= last {
        let day = minute.div_euclid(slots);
        let end = (last + 1).min((day + 1) * slots);
        let slot = |minute: i64| u32::try_from(minute - day * slots).unwrap_or(SLOTS);
        windows.push((day, slot(minute), slot(end)));
        minute = end;
    }
    windows
}

async fn extensions(calls: &Calls) -> Result<Vec<ExtensionName>, Outage> {
    let mut query = Query::prefix(keys::EXTENSIONS, "");
    let mut names = Vec::new();
    loop {
        let page = calls.ports().store.query(query.clone()).await?;
        names.extend(page.items.iter().filter_map(|(name, _)| ExtensionName::parse(name).ok()));
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(names),
        }
    }
}

/// Whether an extension advertises `update`; the answer is trusted for an hour (LC-108, LC-109).
async fn wants_update(calls: &Calls, extension: &ExtensionName) -> Result<bool, Outage> {
    let ports = calls.ports();
    let now = ports.clock.now();
    let key = keys::advertised(extension);
    let known = match ports.store.get(&key).await? {
        Some(item) => Some(read::<Advertised>(&item.data)?),
        None => None,
    };
    if let Some(known) = &known
        && known.checked_at <= now
        && now.since(known.checked_at) < limits::ADVERTISED_TTL
    {
        return Ok(known.update);
    }
    let update = match calls.advertised_events(extension).await {
        Ok(events) => events.iter().any(|event| event == "update"),
        // Out of reach at the moment: what was known still stands, and is asked again next time.
        Err(fault) => {
            could_not_ask(extension, &fault);
            return Ok(known.is_some_and(|known| known.update));
        }
    };
    let write = Write::Put {
        key,
        data: serde_json::to_vec(&Advertised { update, checked_at: now })
            .expect("this can be written as JSON"),
        expires_at: Some(now.plus(Duration::from_secs(7 * 86_400))),
        when: When::Always,
    };
    ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await?;
    Ok(update)
}

/// Says which extension could not be asked what it wants. Not the fault's text: those are words of the extension.
fn could_not_ask(extension: &ExtensionName, fault: &Fault) {
    let code = fault.code.word();
    tracing::warn!(%extension, code, "events could not be asked for");
}

/// Sends the events of one extension's installs whose slot is in `from..to`.
async fn fan_out(
    calls: &Calls,
    extension: &ExtensionName,
    day: i64,
    from: u32,
    to: u32,
) -> Result<usize, Outage> {
    let ports = calls.ports();
    let mut sent = 0;
    for shard in 0..INSTALL_SHARDS {
        let mut query = Query {
            partition: keys::installs(extension, shard),
            from: keys::slot_start(from),
            to: keys::slot_start(to),
            limit: 100,
            backward: false,
        };
        loop {
            let page = ports.store.query(query.clone()).await?;
            let sends: Vec<_> = page
                .items
                .iter()
                .filter_map(|(sort, _)| keys::read_install(sort))
                .map(|(_, oid)| {
                    calls.event_message(oid, extension, "update", "annex", &day.to_string())
                })
                .collect();
            sent += sends.len();
            if !sends.is_empty() {
                ports.store.commit(Commit { sends, ..Commit::default() }).await?;
            }
            match page.next {
                Some(next) => query.from = next,
                None => break,
            }
        }
    }
    Ok(sent)
}

fn read<T: for<'a> Deserialize<'a>>(data: &[u8]) -> Result<T, Outage> {
    serde_json::from_slice(data)
        .map_err(|error| stored::unreadable("the state of the daily update", &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Oid;

    #[test]
    fn minutes_fall_into_the_slots_of_their_days() {
        let day = i64::from(SLOTS);
        assert_eq!(windows(5, 5), [(0, 5, 6)]);
        assert_eq!(windows(0, day - 1), [(0, 0, SLOTS)]);
        assert_eq!(windows(day - 2, day + 1), [(0, SLOTS - 2, SLOTS), (1, 0, 2)]);
        assert_eq!(windows(3 * day + 7, 3 * day + 9), [(3, 7, 10)]);
        assert!(windows(6, 5).is_empty());
    }

    #[test]
    fn organizations_spread_over_the_day() {
        let mut hours = [0_u32; 24];
        for n in 0..24_000_u128 {
            let slot = keys::slot(Oid::new(uuid::Uuid::from_u128(n << 64 | n)));
            assert!(slot < SLOTS);
            hours[(slot / 60) as usize] += 1;
        }
        assert!(hours.iter().all(|&count| (800..1200).contains(&count)), "{hours:?}");
    }
}
