//! The daily updates on their way: a day's installs travel in few messages through the delay queue, which let go of those
//! that come due (LC-106).
//!
//! A message that waits costs as much as one that works, and none waits longer than a quarter of an hour. So the installs
//! of a day are not a message each: they are carried together, and every quarter of an hour those of the next one
//! become messages of [`limits::UPDATES_PER_MESSAGE_MAX`], each delayed to its minute.

use std::time::Duration;

use futures_util::future::join_all;
use tracing::Instrument as _;

use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits;
use crate::ports::{Commit, Key, Outage, Outgoing, QueueName};
use crate::time::Timestamp;

use super::Calls;
use super::job::{Job, Start, Updates};
use super::run::send;
use super::start::Worked;

const MINUTE_MILLIS: i64 = 60_000;
const DAY_MILLIS: i64 = 1_440 * MINUTE_MILLIS;

impl Updates {
    /// When the updates of a minute of the day are due.
    fn due(&self, minute: u32) -> Timestamp {
        let day = self.day.saturating_mul(DAY_MILLIS);
        Timestamp::from_millis(day.saturating_add(i64::from(minute) * MINUTE_MILLIS))
    }

    fn of(&self, installs: &[(u32, Oid)]) -> Self {
        let (extension, day) = (self.extension.clone(), self.day);
        Self { extension, day, installs: installs.to_vec() }
    }

    /// The messages that follow: those due before the next look, each for its time, and last the one that carries the rest.
    fn messages(&self, now: Timestamp) -> Vec<Outgoing> {
        let horizon = now.plus(limits::QUEUE_DELAY_MAX);
        let split = self.installs.partition_point(|(minute, _)| self.due(*minute) < horizon);
        let (due, rest) = self.installs.split_at(split);
        let mut messages = Vec::new();
        for group in due.chunks(limits::UPDATES_PER_MESSAGE_MAX) {
            let delay =
                group.first().map_or(Duration::ZERO, |(minute, _)| self.due(*minute).since(now));
            messages.push(send(QueueName::Resume, &Job::Now(self.of(group)), delay));
        }
        if !rest.is_empty() {
            let job = Job::Later(self.of(rest));
            messages.push(send(QueueName::Resume, &job, limits::QUEUE_DELAY_MAX));
        }
        messages
    }
}

/// What the delivery of updates reads: it is read for all of them together.
fn needed(updates: &Updates) -> Vec<Key> {
    let extension = &updates.extension;
    let of = |(_, oid): &(u32, Oid)| {
        let config = keys::hive(*oid, "extension_config", extension.as_str());
        [keys::org(*oid), keys::subscription(*oid, extension), config]
    };
    std::iter::once(keys::definition(extension))
        .chain(updates.installs.iter().flat_map(of))
        .collect()
}

impl Calls {
    /// The messages that carry the updates of a day; `installs` are in the order of their minutes.
    pub(crate) fn update_messages(
        &self,
        extension: &ExtensionName,
        day: i64,
        installs: &[(u32, Oid)],
    ) -> Vec<Outgoing> {
        let carried = installs.chunks(limits::UPDATES_CARRIED_MAX).map(|installs| {
            let (extension, installs) = (extension.clone(), installs.to_vec());
            Job::Later(Updates { extension, day, installs })
        });
        carried.map(|job| send(QueueName::Resume, &job, Duration::ZERO)).collect()
    }

    /// Lets go of the updates that come due before the next look.
    pub(super) async fn carry(&self, updates: &Updates) -> Result<Worked, Outage> {
        let sends = updates.messages(self.ports().clock.now());
        self.ports().store.commit(Commit { sends, ..Commit::default() }).await?;
        Ok(Worked::Done)
    }

    /// Delivers updates side by side. Those that are not done come back as messages of their own.
    pub(super) async fn update(&self, updates: &Updates) -> Result<Worked, Outage> {
        let once = updates.day.to_string();
        let start = |oid| self.event(oid, &updates.extension, "update", "annex", &once);
        self.ports().store.read_ahead(&needed(updates)).await?;
        let starts: Vec<Start> = updates.installs.iter().map(|(_, oid)| start(*oid)).collect();
        let each = |start: &Start| {
            let span = Job::Start(Box::new(start.clone())).span();
            self.start(start.clone()).instrument(span)
        };
        let worked = join_all(starts.iter().map(each)).await;
        let mut sends = Vec::new();
        for (start, worked) in starts.into_iter().zip(worked) {
            let delay = match worked {
                Ok(Worked::Done) => continue,
                Ok(Worked::Later(after)) => after,
                Err(error) => {
                    tracing::error!(source = ?error.source, "an update was not delivered: {error}");
                    Duration::from_secs(1)
                }
            };
            let job = Job::Start(Box::new(start));
            sends.push(send(QueueName::Resume, &job, delay.min(limits::QUEUE_DELAY_MAX)));
        }
        if !sends.is_empty() {
            self.ports().store.commit(Commit { sends, ..Commit::default() }).await?;
        }
        Ok(Worked::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(n: u32) -> Oid {
        Oid::new(uuid::Uuid::from_u128(u128::from(n)))
    }

    fn updates(minutes: &[u32]) -> Updates {
        let extension = ExtensionName::parse("demo").unwrap();
        let installs = minutes.iter().map(|&minute| (minute, oid(minute))).collect();
        Updates { extension, day: 1, installs }
    }

    /// What follows at a time of the day: (minutes now, delay in seconds) of each message, and (minutes later, delay).
    #[track_caller]
    fn check(minutes: &[u32], at_secs: i64, now: &[(&[u32], u64)], later: Option<&[u32]>) {
        let at = Timestamp::from_secs(86_400 + at_secs);
        let found: Vec<(Job, u64)> = updates(minutes)
            .messages(at)
            .into_iter()
            .map(|message| {
                assert_eq!(message.queue, QueueName::Resume);
                (serde_json::from_str(&message.body).unwrap(), message.delay.as_secs())
            })
            .collect();
        let mut expected: Vec<(Job, u64)> =
            now.iter().map(|(minutes, delay)| (Job::Now(updates(minutes)), *delay)).collect();
        expected.extend(later.map(|minutes| (Job::Later(updates(minutes)), 900)));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn what_is_due_before_the_next_look_goes_out_for_its_minute_and_the_rest_is_carried_on() {
        // LC-106
        check(&[0, 3, 14, 15, 700], 0, &[(&[0, 3, 14], 0)], Some(&[15, 700]));
        check(&[14], 30, &[(&[14], 810)], None);
        check(&[15], 0, &[], Some(&[15]));
        check(&[15], 1, &[(&[15], 899)], None);
    }

    #[test]
    fn what_is_late_goes_out_at_once() {
        check(&[0, 1, 2], 50_000, &[(&[0, 1, 2], 0)], None);
        check(&[1_439], 86_400 * 3, &[(&[1_439], 0)], None);
    }

    #[test]
    fn a_message_has_25_updates_and_one_more_is_in_the_next() {
        let minutes: Vec<u32> = (0..26).map(|n| n / 2).collect();
        check(&minutes[..25], 0, &[(&minutes[..25], 0)], None);
        check(&minutes, 0, &[(&minutes[..25], 0), (&minutes[25..], 720)], None);
    }

    #[test]
    fn what_a_message_carries_fits_it() {
        let installs = vec![(1_439, oid(u32::MAX)); limits::UPDATES_CARRIED_MAX];
        let extension = ExtensionName::parse(&"x".repeat(64)).unwrap();
        let job = Job::Later(Updates { extension, day: i64::MAX, installs });
        let message = send(QueueName::Resume, &job, Duration::ZERO);
        assert!(message.body.len() <= limits::MESSAGE_BYTES_MAX / 2, "{}", message.body.len());
    }
}
