//! A function behind a schedule: each event says which moment it stands for.

use std::borrow::Cow;
use std::sync::Arc;

use annex_core::ports::{Clock, Outage};
use annex_core::stored;
use annex_core::time::Timestamp;
use lambda_runtime::{LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;
use super::fresh::Fresh;

/// What the template's schedule sends: `{"time": "<aws.scheduler.scheduled-time>"}`, filled in by the scheduler.
#[derive(Deserialize)]
struct Tick<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
}

/// The moment that an event stands for. A placeholder that nobody filled in stands for now: emulators leave it.
pub(crate) fn time(event: &RawValue, clock: &dyn Clock) -> Result<Timestamp, Error> {
    let tick: Tick<'_> = serde_json::from_str(event.get())
        .map_err(|error| format!("the event is none of the schedule: {}", stored::fault(&error)))?;
    if tick.time == "<aws.scheduler.scheduled-time>" {
        return Ok(clock.now());
    }
    Timestamp::parse(&tick.time).ok_or_else(|| "the time of the event is none".into())
}

/// Serves events until the process is ended.
pub(crate) async fn run<F>(clock: Arc<dyn Clock>, fresh: Fresh, tick: F) -> Result<(), Error>
where
    F: AsyncFn(Timestamp) -> Result<usize, Outage>,
{
    let tick = &tick;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (clock, fresh) = (Arc::clone(&clock), fresh.clone());
        async move {
            fresh.look().await;
            let time = time(&event.payload, &*clock)?;
            let sent = tick(time).await.map_err(|outage| {
                tracing::error!(source = ?outage.source, "the schedule's work failed: {outage}");
                "the schedule's work failed"
            })?;
            tracing::info!(sent, "the schedule's work is done");
            Ok::<_, Error>(serde_json::json!({ "sent": sent }))
        }
    }))
    .await
}

#[cfg(test)]
mod tests {
    use annex_core::testkit::ManualClock;

    use super::*;

    const NOW: &str = "2026-03-04T05:06:07Z";

    fn check(event: &str, expected: Option<&str>) {
        let raw = RawValue::from_string(event.into()).unwrap();
        let clock = ManualClock::new(Timestamp::parse(NOW).unwrap());
        let expected = expected.map(|text| Timestamp::parse(text).unwrap());
        assert_eq!(time(&raw, &clock).ok(), expected, "{event}");
    }

    #[test]
    fn an_event_stands_for_the_moment_it_names() {
        check(r#"{"time":"2026-01-02T03:04:00Z"}"#, Some("2026-01-02T03:04:00Z"));
        check(r#"{"time":"<aws.scheduler.scheduled-time>"}"#, Some(NOW));
        check(r#"{"time":""}"#, None);
        check(r#"{"time":7}"#, None);
        check("{}", None);
    }
}
