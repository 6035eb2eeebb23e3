//! Calls that events make: of a command that its extension named in a subscription.

use async_trait::async_trait;
use serde_json::value::RawValue;

use crate::capability::events::EventRecord;
use crate::capability::id::Qualified;
use crate::capability::locks::NOT_ACTIVE;
use crate::capability::outbox::{EventCalls, Place};
use crate::capability::refusal::Refusal;
use crate::capability::service::Capabilities;
use crate::keys;
use crate::limits::EXTENSION_WEBHOOK_ATTEMPTS_MAX;
use crate::ports::Outage;
use crate::stored;

use super::body::Body;
use super::record::CallRecord;
use super::{Asker, Origin, call_id};

#[async_trait]
impl EventCalls for Capabilities {
    async fn call(
        &self,
        place: &Place,
        entry: &str,
        command: &Qualified,
        data: &RawValue,
    ) -> Result<Result<(), String>, Outage> {
        let event: EventRecord = serde_json::from_str(data.get())
            .map_err(|error| stored::unreadable("an event to deliver", &error))?;
        let Some(emitter) = self.known(&event.source).await? else {
            return Ok(Err("the extension that emitted the event is gone".to_owned()));
        };
        let origin = Origin {
            oid: place.oid,
            lock: place.lock.clone(),
            session: Some(event.session.clone()),
            asker: Asker::Extension(emitter),
        };
        match self.call_of_event(&origin, &event, entry, command).await {
            Ok(None) => Ok(Ok(())),
            Ok(Some(why)) => Ok(Err(why)),
            Err(Refusal::Other(fault)) => Err(Outage::new(fault.message)),
            Err(refusal) => Ok(Err(refusal.code().to_owned())),
        }
    }
}

impl Capabilities {
    /// Calls a command with an event, unless an earlier attempt has succeeded. The text says why it failed. A chain that
    /// is too deep ends here, and so does an event of a lock that has ended.
    async fn call_of_event(
        &self,
        origin: &Origin,
        event: &EventRecord,
        entry: &str,
        command: &Qualified,
    ) -> Result<Option<String>, Refusal> {
        for attempt in 0..=EXTENSION_WEBHOOK_ATTEMPTS_MAX {
            let oid = origin.oid.to_string();
            let parts = [oid.as_bytes(), entry.as_bytes(), &attempt.to_be_bytes()];
            let id = call_id(keys::uuid_of(&parts));
            if let Some(item) = self.standing(origin, &id).await? {
                let record = CallRecord::read(&item)?;
                let record = self.current(origin, record, item.revision).await?;
                match &record.ending {
                    Some(ending) if ending.error.is_none() => return Ok(None),
                    // The next attempt has an id of its own.
                    Some(_) => continue,
                    None => return Ok(Some("an attempt is under way".to_owned())),
                }
            }
            let body = Body {
                input: event.payload.get(),
                actor: Some(event.actor),
                idempotency_key: None,
                causation_id: Some(event.id.clone()),
            };
            let admitted = match self.admit(origin, command, false, &body, id).await {
                Ok(admitted) => admitted,
                Err(not) => {
                    return match self.refuse(origin, None, not).await? {
                        Refusal::DepthExceeded => Ok(None),
                        // It will not be locked again for an event's sake.
                        Refusal::CommandUnavailable { reason } if reason == NOT_ACTIVE => Ok(None),
                        refusal => Err(refusal),
                    };
                }
            };
            let record = self.claim_and_run(origin, admitted, None).await?;
            let error = record.ending.and_then(|ending| ending.error);
            return Ok(error.map(|error| format!("{}: {}", error.code, error.message)));
        }
        Ok(Some("its attempts are used up".to_owned()))
    }
}
