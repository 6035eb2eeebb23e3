//! Takes in what is posted to an adapter.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::adapter::{self, Adapter};
use super::envelope::{self, Routing};
use super::{Telemetry, body, installation_keys};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys::{self, digest_hex, uuid_of};
use crate::limits::{
    EVENT_COMMIT_BYTES_MAX, EVENT_POST_DEDUPE, EVENTS_PER_COMMIT_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    MESSAGE_BYTES_MAX, RULE_CALLS_PER_EVENT_MAX, RULE_DATA_BYTES_MAX,
};
use crate::org_errors;
use crate::orgs::{self, Standing};
use crate::ports::{Commit, Committed, Item, Outgoing, When, Write};
use crate::rules::{self, RuleCall};
use crate::stored;
use crate::time::Timestamp;

/// A delivery to an adapter, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The organization, unchecked.
    pub oid: &'a str,
    /// The adapter, unchecked.
    pub adapter: &'a str,
    /// The secret from the URL or the header `lc-secret`; empty where there is none.
    pub secret: &'a str,
    /// The header `content-encoding`.
    pub encoding: Option<&'a str>,
    /// The body, at most [`crate::limits::API_BODY_BYTES_MAX`] bytes.
    pub body: &'a [u8],
    /// The header `idempotency-key`: a repeat of the same delivery within a day stores nothing twice.
    pub idempotency_key: Option<&'a str>,
}

/// What came of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Events in the delivery; all of them are stored.
    pub events: usize,
}

/// Remembers a part of a delivery that has an idempotency key.
#[derive(Serialize, Deserialize)]
struct Marker {
    at: Timestamp,
    body: String,
}

/// What a delivery's events have in common.
struct Batch<'a> {
    oid: Oid,
    adapter: &'a Adapter,
    routing: Routing,
    at: Timestamp,
    idempotency_key: Option<&'a str>,
    body: String,
}

impl Telemetry {
    /// Stores the events of a delivery, and sends what the organization's rules ask for with them.
    ///
    /// An adapter that is absent, disabled, expired or of another kind, and a wrong secret, are one and the same
    /// refusal. A refused delivery stores nothing; one that an outage breaks off may have stored its first events.
    pub async fn receive(&self, delivery: Delivery<'_>) -> Outcome<Received> {
        let (oid, adapter) = self.admit(delivery).await?;
        self.take_in(oid, adapter, delivery).await
    }

    /// As [`Self::receive`], but reads the body only once the secret was found to be right: a stranger cannot make the
    /// platform hold one. The `body` of the delivery is not looked at.
    pub async fn receive_from(
        &self,
        delivery: Delivery<'_>,
        body: impl Future<Output = Outcome<Bytes>>,
    ) -> Outcome<Received> {
        let (oid, adapter) = self.admit(delivery).await?;
        let body = body.await?;
        self.take_in(oid, adapter, Delivery { body: &body, ..delivery }).await
    }

    async fn take_in(
        &self,
        oid: Oid,
        mut adapter: Adapter,
        delivery: Delivery<'_>,
    ) -> Outcome<Received> {
        if delivery
            .idempotency_key
            .is_some_and(|key| key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX)
        {
            return Err(Fault::new(
                Code::BadRequest,
                format!("an idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes"),
            ));
        }
        let body = body::decode(delivery.body, delivery.encoding)?;
        let events = body::events(&body)?;
        if let Some(key) = installation_keys::find(&self.ports, oid, &adapter.iid).await? {
            let held: BTreeSet<String> = adapter.tags.iter().cloned().collect();
            adapter.tags.extend(key.tags.into_iter().filter(|tag| !held.contains(tag)));
        }
        let at = self.ports.clock.now();
        let routing = Routing {
            oid,
            iid: adapter.iid.clone(),
            sid: envelope::sensor(oid, &adapter),
            hostname: adapter.hostname.clone(),
            event_type: String::new(),
            event_time: 0,
            event_id: Uuid::nil(),
            tags: adapter.tags.clone(),
        };
        let mut batch = Batch {
            oid,
            adapter: &adapter,
            routing,
            at,
            idempotency_key: delivery.idempotency_key,
            body: delivery.idempotency_key.map_or_else(String::new, |_| digest_hex(&[&body])),
        };
        let rules = self.rules.of(&self.ports, oid).await?;
        let mut first = 0;
        for (part, events) in parts(&events).enumerate() {
            if !self.repeated(&mut batch, part).await? {
                let (commit, after) = self.commit(&batch, part, first, events, &rules).await;
                self.store(commit, &batch, part).await?;
                debug_assert_eq!(after, first + events.len());
            }
            first += events.len();
        }
        Ok(Received { events: events.len() })
    }

    /// The adapter that the delivery is for, if it knows its secret.
    async fn admit(&self, delivery: Delivery<'_>) -> Outcome<(Oid, Adapter)> {
        let refused = || Fault::new(Code::NotFound, "there is no such adapter");
        let oid = Oid::parse(delivery.oid).map_err(|_| refused())?;
        let found = adapter::load(&self.ports, oid, delivery.adapter).await?;
        let Some(found) = found else {
            // As much work as for one that exists.
            let _ = adapter::same_text("", delivery.secret);
            return Err(refused());
        };
        let is_live = orgs::standing(&*self.ports.store, oid).await? == Standing::Live;
        if !found.knows(delivery.secret) || !is_live {
            return Err(refused());
        }
        Ok((oid, found))
    }

    /// Whether a part was stored by an earlier delivery of the same key. Takes over when that came.
    async fn repeated(&self, batch: &mut Batch<'_>, part: usize) -> Outcome<bool> {
        let Some(key) = batch.idempotency_key else { return Ok(false) };
        let key = keys::event_post(batch.oid, &batch.adapter.name, key, part);
        let Some((marker, _)) = stored::load::<Marker>(&self.ports, &key).await? else {
            return Ok(false);
        };
        check_marker(&marker, batch)?;
        batch.at = marker.at;
        Ok(true)
    }

    /// Stores a part. Somebody who stored the same part meanwhile did what we would have done.
    async fn store(&self, commit: Commit, batch: &Batch<'_>, part: usize) -> Outcome<()> {
        let sort = format!("part {part} of a delivery");
        match self.ports.store.send_and_commit(commit).await? {
            Committed::Done => Ok(()),
            Committed::Lost { found: Some(item), .. } => lost(&item, &sort, batch),
            Committed::Lost { found: None, .. } => {
                Err(Fault::new(Code::Busy, "the same delivery is under way; try again"))
            }
        }
    }

    /// The commit of a part, and the index of the event after it.
    async fn commit(
        &self,
        batch: &Batch<'_>,
        part: usize,
        first: usize,
        events: &[&str],
        rules: &[(String, std::sync::Arc<rules::Rule>)],
    ) -> (Commit, usize) {
        let mut commit = Commit::default();
        let mut problems = BTreeSet::new();
        for (offset, event) in events.iter().enumerate() {
            let index = first + offset;
            let id = self.event_id(batch, index);
            let mut routing = batch.routing.clone();
            routing.event_id = id;
            routing.event_time = batch.at.millis();
            let envelope = envelope::wrap(event, batch.adapter, routing, batch.at);
            if !rules.is_empty() {
                let each = rules.iter().map(|(name, rule)| (name.as_str(), rule.as_ref()));
                let (calls, complete) = rules::actions(each, &envelope);
                if !complete {
                    problems.insert("the rules cost too much for an event; some were not tried");
                }
                let sends = self.sends(batch.oid, id, &calls, &mut problems);
                commit.sends.extend(sends);
                // Rules are work without a pause: let others run in between.
                yield_now().await;
            }
            commit.writes.push(Write::Put {
                // Events of one time stay in the order in which they came.
                key: keys::event(batch.oid, batch.at, &format!("{index:04}-{id}")),
                data: envelope.into_bytes(),
                expires_at: Some(batch.at.plus(self.retention)),
                when: When::Always,
            });
        }
        let now = self.ports.clock.now();
        commit.writes.extend(
            problems.iter().map(|text| org_errors::write(batch.oid, "dr-general", text, now)),
        );
        if let Some(key) = batch.idempotency_key {
            let marker = Marker { at: batch.at, body: batch.body.clone() };
            commit.writes.push(Write::Put {
                key: keys::event_post(batch.oid, &batch.adapter.name, key, part),
                data: stored::bytes(&marker),
                expires_at: Some(now.plus(EVENT_POST_DEDUPE)),
                when: When::Absent,
            });
        }
        (commit, first + events.len())
    }

    /// The id of an event: the same for the same event of a repeated delivery.
    fn event_id(&self, batch: &Batch<'_>, index: usize) -> Uuid {
        let Some(key) = batch.idempotency_key else { return self.ports.ids.uuid() };
        let oid = batch.oid.to_string();
        uuid_of(&[
            b"event",
            oid.as_bytes(),
            batch.adapter.name.as_bytes(),
            key.as_bytes(),
            &batch.at.millis().to_be_bytes(),
            &index.to_be_bytes(),
        ])
    }

    /// The messages that make the calls of an event's rules (LC-129 to LC-131: the same path as any other call).
    fn sends(
        &self,
        oid: Oid,
        event: Uuid,
        calls: &[RuleCall],
        problems: &mut BTreeSet<&'static str>,
    ) -> Vec<Outgoing> {
        if calls.len() > RULE_CALLS_PER_EVENT_MAX {
            problems.insert("the rules make too many requests for an event; some were not made");
        }
        let mut sends = Vec::new();
        for call in calls.iter().take(RULE_CALLS_PER_EVENT_MAX) {
            if call.data.len() > RULE_DATA_BYTES_MAX {
                problems.insert("a request that a rule makes is too large; it was not made");
                continue;
            }
            // There is no user behind it: an action that acts as one is refused (LC-140).
            let ident = format!("DR:dr-general.{}", call.rule);
            let once = format!("dr:{event}:{}:{}", call.rule, call.index);
            let message = self.calls.request_message(
                oid,
                &call.extension,
                &call.action,
                &call.data,
                &ident,
                "",
                &once,
            );
            if message.body.len() > MESSAGE_BYTES_MAX {
                problems.insert("a request that a rule makes is too large; it was not made");
                continue;
            }
            sends.push(message);
        }
        sends
    }
}

fn check_marker(marker: &Marker, batch: &Batch<'_>) -> Outcome<()> {
    if marker.body == batch.body {
        return Ok(());
    }
    Err(Fault::new(
        Code::IdempotencyKeyConflict,
        "the idempotency key was used for another delivery",
    ))
}

fn lost(item: &Item, sort: &str, batch: &Batch<'_>) -> Outcome<()> {
    check_marker(&stored::read(item, sort)?, batch)
}

/// Cuts events into parts of one commit each. It depends on nothing but the events, so that a repeat cuts the same.
fn parts<'e, 'a>(events: &'e [&'a str]) -> impl Iterator<Item = &'e [&'a str]> {
    let mut rest = events;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take(EVENTS_PER_COMMIT_MAX).take_while(|event| {
            bytes += event.len() + ENVELOPE_BYTES;
            bytes <= EVENT_COMMIT_BYTES_MAX
        });
        let count = fitting.count().max(1).min(rest.len());
        let (part, after) = rest.split_at(count);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// What an envelope adds to an event, at most: tags and names are bounded.
const ENVELOPE_BYTES: usize = 20 << 10;

async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
