//! What a message is about, without what it carries: for an operator who looks at dead letters.

use serde::Serialize;
use uuid::Uuid;

use crate::ids::{ExtensionName, Oid};
use crate::meter::Usage;
use crate::ports::QueueName;

use super::job::Job;
use super::record::{Kind, id_of};

/// What a message is about. It holds no data of the tenant: no payload, no secret, no key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// `request`, `event`, `error_report`, `run` (of an invocation that has its record), `updates` (of many
    /// organizations), `erase` (of an organization), `deliver` (what waits for a capability extension), `usage`; `unknown` for what is no message of ours.
    pub kind: &'static str,
    /// The action or the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oid: Option<Oid>,
    /// The extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionName>,
    /// The invocation that it runs, or makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Uuid>,
}

/// What the text of a message of `queue` is about.
pub fn summary(queue: QueueName, body: &str) -> Summary {
    let found = match queue {
        QueueName::Dispatch | QueueName::Resume => serde_json::from_str(body).ok().map(of_job),
        QueueName::Meter => serde_json::from_str(body).ok().map(|usage: Usage| Summary {
            kind: "usage",
            oid: Some(usage.oid),
            extension: Some(usage.extension),
            ..Summary::default()
        }),
    };
    found.unwrap_or(Summary { kind: "unknown", ..Summary::default() })
}

fn of_job(job: Job) -> Summary {
    match job {
        Job::Start(start) => {
            let (kind, name) = match start.kind {
                Kind::Request { action, .. } => ("request", Some(action)),
                Kind::Event { event } => ("event", Some(event)),
                Kind::ErrorReport => ("error_report", None),
            };
            let invocation = id_of(start.oid, &[&start.claim, start.extension.as_str()]);
            Summary {
                kind,
                name,
                oid: Some(start.oid),
                extension: Some(start.extension),
                invocation: Some(invocation),
            }
        }
        Job::Run { oid, id, .. } => {
            Summary { kind: "run", oid: Some(oid), invocation: Some(id), ..Summary::default() }
        }
        Job::Later(updates) | Job::Now(updates) => {
            Summary { kind: "updates", extension: Some(updates.extension), ..Summary::default() }
        }
        Job::Erase { oid } => Summary { kind: "erase", oid: Some(oid), ..Summary::default() },
        Job::Deliver { place, .. } => Summary {
            kind: "deliver",
            oid: Some(place.oid),
            extension: ExtensionName::parse(place.extension.as_str()).ok(),
            ..Summary::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "8cbe27f4-0000-4000-8000-138cd51389cd";

    #[track_caller]
    fn check(queue: QueueName, body: &str, expected: &str) {
        let found = summary(queue, &body.replace("OID", OID));
        assert_eq!(serde_json::to_string(&found).unwrap(), expected.replace("OID", OID));
    }

    #[test]
    fn a_summary_names_what_a_message_is_about_and_nothing_that_it_carries() {
        check(
            QueueName::Dispatch,
            r#"{"start":{"oid":"OID","extension":"demo","kind":{"request":{"action":"scan"}},"origin":"rule",
                "claim":"c","key":null,"data":{"json":{"password":"hunter2"}},"ident":"i","level":0,"depth":1,
                "published_at":0}}"#,
            r#"{"kind":"request","name":"scan","oid":"OID","extension":"demo","invocation":"INV"}"#
                .replace("INV", &id_of(Oid::parse(OID).unwrap(), &["c", "demo"]).to_string())
                .as_str(),
        );
        check(
            QueueName::Resume,
            r#"{"run":{"oid":"OID","id":"00000000-0000-8000-8000-000000000001"}}"#,
            r#"{"kind":"run","oid":"OID","invocation":"00000000-0000-8000-8000-000000000001"}"#,
        );
        check(QueueName::Resume, r#"{"erase":{"oid":"OID"}}"#, r#"{"kind":"erase","oid":"OID"}"#);
        check(
            QueueName::Meter,
            r#"{"oid":"OID","extension":"demo","key":"k","at":0,"skus":[["s",1]]}"#,
            r#"{"kind":"usage","oid":"OID","extension":"demo"}"#,
        );
    }

    #[test]
    fn what_is_no_message_is_unknown() {
        for (queue, body) in [
            (QueueName::Dispatch, ""),
            (QueueName::Dispatch, r#"{"run":{"oid":1}}"#),
            (QueueName::Meter, r#"{"erase":{"oid":"OID"}}"#),
        ] {
            check(queue, body, r#"{"kind":"unknown"}"#);
        }
    }
}
