//! The body of a call.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::capability::model::Invoker;
use crate::capability::refusal::Refusal;
use crate::fault::{Code, Fault};
use crate::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// The body of a call, its input as it was spelled. The input's own shape, its nesting included, is checked against the
/// schema, later.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) input: &'a str,
    pub(super) actor: Option<Invoker>,
    pub(super) idempotency_key: Option<String>,
    pub(super) causation_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow, default = "nothing")]
    input: &'a RawValue,
    #[serde(default)]
    actor: Option<String>,
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default)]
    causation_id: Option<String>,
}

impl<'a> Body<'a> {
    /// Reads a body; none at all is an empty object.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Refusal> {
        let members: Members<'_> = members(body)?;
        let key = members.idempotency_key;
        if key.as_ref().is_some_and(|key| key.is_empty() || IDEMPOTENCY_KEY_BYTES_MAX < key.len()) {
            let most = IDEMPOTENCY_KEY_BYTES_MAX;
            return Err(bad(format!("idempotencyKey has 1 to {most} bytes")));
        }
        Ok(Self {
            input: members.input.get(),
            actor: members.actor.as_deref().map(actor).transpose()?,
            idempotency_key: key,
            causation_id: members.causation_id,
        })
    }
}

/// What stands for an input or a payload that is not given: null is one that is.
pub(in crate::capability) fn nothing() -> &'static RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

/// Reads the members of a body that is an object. Values that stay text are not looked into, however deep they are.
pub(in crate::capability) fn members<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    // By itself the derived reader would take a list of values for the object.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(bad("the body is no JSON object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| bad(format!("the body cannot be read: {error}")))
}

/// Reads an actor.
pub(in crate::capability) fn actor(text: &str) -> Result<Invoker, Refusal> {
    Invoker::parse(text)
        .ok_or_else(|| bad("actor is none of wearer, keyholder, extension".to_owned()))
}

fn bad(text: String) -> Refusal {
    Fault::new(Code::BadRequest, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, refused: Option<&str>) {
        let found = Body::read(body.as_bytes()).err();
        assert_eq!(found.map(|found| found.message().to_owned()).as_deref(), refused, "{body}");
    }

    #[test]
    fn a_body_is_an_object_of_known_members() {
        check("", None);
        check(" {}", None);
        check(r#"{"input":[1],"actor":"user","idempotencyKey":"k","causationId":"c"}"#, None);
        check("[]", Some("the body is no JSON object"));
        check("null", Some("the body is no JSON object"));
        check(
            r#"{"inputs":1}"#,
            Some(
                "the body cannot be read: unknown field `inputs`, expected one of `input`, `actor`, `idempotencyKey`, \
                 `causationId` at line 1 column 9",
            ),
        );
        check(r#"{"actor":"me"}"#, Some("actor is none of wearer, keyholder, extension"));
        check(
            r#"{"input":1,"input":2}"#,
            Some("the body cannot be read: duplicate field `input` at line 1 column 18"),
        );
        check("{", Some("the body cannot be read: EOF while parsing an object at line 1 column 1"));
    }

    #[test]
    fn a_key_has_1_to_256_bytes() {
        let keyed = |bytes: usize| format!(r#"{{"idempotencyKey":"{}"}}"#, "k".repeat(bytes));
        let refusal = Some("idempotencyKey has 1 to 256 bytes");
        check(&keyed(0), refusal);
        check(&keyed(1), None);
        check(&keyed(IDEMPOTENCY_KEY_BYTES_MAX), None);
        check(&keyed(IDEMPOTENCY_KEY_BYTES_MAX + 1), refusal);
    }

    #[test]
    fn an_input_of_any_depth_is_taken_out_as_it_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"input": {deep} }}"#);
        assert_eq!(Body::read(text.as_bytes()).unwrap().input, deep);
        assert_eq!(Body::read(b"{}").unwrap().input, "{}");
    }
}
