//! What an extension says of its own capabilities on one lock: it narrows its manifest, and never widens it.

use std::collections::BTreeMap;

use crate::fault::{Code, Fault, Outcome};
use crate::json;
use crate::limits::{AVAILABILITIES_MAX, AVAILABILITY_BYTES_MAX, REASON_CHARS_MAX};
use crate::ports::{Committed, Ports};
use crate::stored;

use super::id::Qualified;
use super::locks::NOT_ACTIVE;
use super::members::Members;
use super::model::{Availability, Capability, Extension, Invoker, Lock, LockStatus, Manifest};
use super::refusal::Refusal;
use super::sessions;

/// Reads `{commands: {<id>: {available, reason?, invocableBy?}}}` against what the extension declares. A caller that
/// the manifest does not list is [`Refusal::InvocableByWidened`] (CH-031), a capability that it does not declare is
/// [`Refusal::UnknownCommand`].
pub fn read(
    manifest: &Manifest,
    body: &Members,
) -> Result<BTreeMap<Qualified, Availability>, Refusal> {
    // What is not understood would leave open what it was to close.
    body.only(&["commands"])?;
    let commands = body.members("commands")?.ok_or_else(|| bad("commands is missing".into()))?;
    if AVAILABILITIES_MAX < commands.iter().len() {
        return Err(bad(format!("commands has more than {AVAILABILITIES_MAX} members")).into());
    }
    let mut found = BTreeMap::new();
    for (text, _) in commands.iter() {
        let id = Qualified::parse(text).ok_or(Refusal::InvalidCommandId)?;
        let mut declared = manifest.commands.iter().chain(&manifest.queries);
        let declared =
            declared.find(|capability| capability.id == id).ok_or(Refusal::UnknownCommand)?;
        let one = commands.members(text)?.unwrap_or_default();
        found.insert(id, one_of(declared, &one)?);
    }
    // As it is kept, beside the session's objects.
    if AVAILABILITY_BYTES_MAX < stored::bytes(&found).len() {
        let text = format!("commands takes more than {AVAILABILITY_BYTES_MAX} bytes");
        return Err(Fault::new(Code::TooLarge, text).into());
    }
    Ok(found)
}

/// Why a capability cannot be called on its lock right now; `None`: it can be (CH-020, CH-021).
pub(super) fn why_not<'a>(lock: &Lock, said: Option<&'a Availability>) -> Option<&'a str> {
    if lock.status != LockStatus::Locked {
        return Some(NOT_ACTIVE);
    }
    let off = said.filter(|said| !said.available)?;
    Some(off.reason.as_deref().unwrap_or("unavailable"))
}

fn one_of(declared: &Capability, said: &Members) -> Result<Availability, Refusal> {
    said.only(&["available", "reason", "invocableBy"])
        .map_err(|fault| bad(format!("{}: {}", declared.id, fault.message)))?;
    let available = said.flag("available")?;
    let available =
        available.ok_or_else(|| bad(format!("{}: available is missing", declared.id)))?;
    let invocable_by = invokers(declared, said)?;
    let narrows = |by: &Vec<Invoker>| by.iter().all(|by| declared.invocable_by.contains(by));
    if !invocable_by.as_ref().is_none_or(narrows) {
        return Err(Refusal::InvocableByWidened);
    }
    Ok(Availability { available, reason: said.text("reason", REASON_CHARS_MAX)?, invocable_by })
}

fn invokers(declared: &Capability, said: &Members) -> Outcome<Option<Vec<Invoker>>> {
    let Some(raw) = said.raw("invocableBy").filter(|raw| *raw != "null") else { return Ok(None) };
    let refused = || bad(format!("{}: invocableBy is no list of callers", declared.id));
    if !raw.starts_with('[') {
        return Err(refused());
    }
    let mut found = Vec::new();
    for word in json::elements(raw) {
        let invoker = serde_json::from_str(word).map_err(|_| refused())?;
        if !found.contains(&invoker) {
            found.push(invoker);
        }
    }
    Ok(Some(found))
}

fn bad(text: String) -> Fault {
    Fault::new(Code::BadRequest, text)
}

/// Replaces what an extension said of its capabilities on the lock of a session; what it does not name is as the
/// manifest says.
pub async fn push(
    ports: &Ports,
    extension: &Extension,
    session: &str,
    body: &Members,
) -> Result<(), Refusal> {
    let said = read(&extension.manifest, body)?;
    loop {
        let (mut session, item) = sessions::find(ports, &extension.slug, session).await?;
        session.availability.clone_from(&said);
        session.updated_at = ports.clock.now();
        if sessions::replace(ports, &session, &item).await? == Committed::Done {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        serde_json::from_str(
            r#"{"commands":[{"id":"dice.roll","title":"t","inputSchema":{},"invocableBy":["wearer","extension"]},
                {"id":"dice.stop","title":"t","inputSchema":{},"invocableBy":["wearer"]}],
               "queries":[{"id":"dice.sides","title":"t","inputSchema":{},"invocableBy":["extension"]}]}"#,
        )
        .unwrap()
    }

    #[track_caller]
    fn check(commands: &str, expected: Result<usize, &str>) {
        let body = Members::read(format!(r#"{{"commands":{commands}}}"#).as_bytes()).unwrap();
        let found = read(&manifest(), &body).map(|found| found.len());
        assert_eq!(found.map_err(|refusal| refusal.code()), expected, "{commands}");
    }

    #[test]
    fn a_push_may_narrow_who_calls_and_never_widen_it() {
        // CH-031, CH-032
        check(r#"{"dice.roll":{"available":true,"invocableBy":["wearer"]}}"#, Ok(1));
        check(r#"{"dice.roll":{"available":true,"invocableBy":[]}}"#, Ok(1));
        check(r#"{"dice.roll":{"available":true,"invocableBy":["extension","wearer"]}}"#, Ok(1));
        check(
            r#"{"dice.stop":{"available":true,"invocableBy":["wearer","extension"]}}"#,
            Err("invocable-by-widened"),
        );
        check(
            r#"{"dice.sides":{"available":true,"invocableBy":["keyholder"]}}"#,
            Err("invocable-by-widened"),
        );
    }

    #[test]
    fn a_push_says_for_each_declared_capability_whether_it_is_available() {
        check("{}", Ok(0));
        check(
            r#"{"dice.roll":{"available":false,"reason":"empty"},"dice.sides":{"available":true}}"#,
            Ok(2),
        );
        check(r#"{"dice.roll":{}}"#, Err("bad-request"));
        check(r#"{"dice.roll":{"available":true,"invocable_by":["wearer"]}}"#, Err("bad-request"));
        check(r#"{"dice.roll":{"available":1}}"#, Err("bad-request"));
        check(r#"{"dice.roll":null}"#, Err("bad-request"));
        check(r#"{"dice.roll":{"available":true,"invocableBy":"wearer"}}"#, Err("bad-request"));
        check(r#"{"dice.roll":{"available":true,"invocableBy":["owner"]}}"#, Err("bad-request"));
        check(r#"{"dice.none":{"available":true}}"#, Err("unknown-command"));
        check(r#"{"cards.draw":{"available":true}}"#, Err("unknown-command"));
        check(r#"{"not an id":{"available":true}}"#, Err("invalid-command-id"));
        check("[]", Err("bad-request"));
        let body = Members::read(br#"{"commands":{},"queries":{}}"#).unwrap();
        assert_eq!(read(&manifest(), &body).unwrap_err().message(), "unknown member queries");
        let reason =
            |n| format!(r#"{{"dice.roll":{{"available":false,"reason":"{}"}}}}"#, "r".repeat(n));
        check(&reason(REASON_CHARS_MAX), Ok(1));
        check(&reason(REASON_CHARS_MAX + 1), Err("bad-request"));
    }
}
