//! What happens to organizations that use the extension.

use serde_json::json;

use crate::answer::Answer;
use crate::message::Event;

/// Handles an event. Each may come more than once, so handling it again must change nothing.
pub fn handle(event: &Event<'_>) -> Answer {
    let done = match event.event_name.as_ref() {
        // The place to set up what an organization needs.
        "subscribe" => "ready",
        // The place to remove it again.
        "unsubscribe" => "removed",
        // Once a day for each organization: the place for upkeep.
        "update" => "up to date",
        unknown => return Answer::bad_request(format!("unknown event: {unknown}")),
    };
    Answer::data(json!({ "oid": event.org.oid, "status": done }))
}
