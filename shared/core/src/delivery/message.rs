//! The JSON of the protocol's messages (`limacharlie-wire` 1.3), member by member in the order that was seen on the wire.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::ids::Oid;
use crate::limits::PROTOCOL_VERSION;

/// On whose behalf, and with whose authority.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OrgPart<'a> {
    /// The organization.
    pub oid: Oid,
    /// The token the extension may use: its own, or the caller's where the action is impersonated (LC-133, LC-135).
    pub jwt: &'a str,
    /// Who asked.
    pub ident: &'a str,
}

/// Exactly one member of a message.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part<'a> {
    /// Asks for the schema.
    SchemaRequest(Empty),
    /// A call of an action.
    Request {
        /// Organization and authority.
        org: OrgPart<'a>,
        /// The action.
        action: &'a str,
        /// Its data, an object.
        data: &'a RawValue,
        /// The organization's configuration of the extension, an object.
        config: &'a RawValue,
        /// Always empty here: the platform keeps no resources for extensions.
        resource_state: Empty,
        /// Id of an investigation; may be empty.
        inv_id: &'a str,
    },
    /// A platform event.
    Event {
        /// Organization and authority.
        org: OrgPart<'a>,
        /// Which event.
        event_name: &'a str,
        /// Always an object.
        data: &'a RawValue,
        /// The organization's configuration of the extension, an object.
        config: &'a RawValue,
    },
    /// Asks whether a configuration is acceptable.
    ConfValidation {
        /// Organization and authority.
        org: OrgPart<'a>,
        /// The configuration, an object. This member is called `conf`, not `config`.
        conf: &'a RawValue,
    },
    /// Tells of an error the platform met on the extension's behalf (LC-065).
    ErrorReport {
        /// What happened.
        error: &'a str,
        /// In which organization.
        oid: Oid,
    },
}

/// `{}`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Empty {}

/// The message's JSON: these exact bytes are signed and then compressed.
pub fn render(idempotency_key: &str, part: Part<'_>) -> Vec<u8> {
    // Flattening an enum would buffer raw values, so the two members before it are written by hand.
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"version\":");
    out.extend_from_slice(PROTOCOL_VERSION.to_string().as_bytes());
    out.extend_from_slice(b",\"idempotency_key\":");
    serde_json::to_writer(&mut out, idempotency_key).expect("text can be written as JSON");
    let part = serde_json::to_vec(&part).expect("a message can be written as JSON");
    out.push(b',');
    // `{"request":{…}}`: the braces of the enum's own object are the message's.
    out.extend_from_slice(&part[1..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "5f0c7a3e-1111-4222-8333-9c1d2e3f4a5b";

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[track_caller]
    fn check(part: Part<'_>, tail: &str) {
        let expected = format!(r#"{{"version":20221218,"idempotency_key":"{KEY}",{tail}}}"#);
        assert_eq!(String::from_utf8(render(KEY, part)).unwrap(), expected);
    }

    #[test]
    fn messages_are_what_was_seen_on_the_wire() {
        let oid = Oid::parse("8cbe27f4-0000-4000-8000-138cd51389cd").unwrap();
        let org = OrgPart { oid, jwt: "j", ident: "user@example.com" };
        let org_text = r#""org":{"oid":"8cbe27f4-0000-4000-8000-138cd51389cd","jwt":"j","ident":"user@example.com"}"#;
        let (data, config, empty) =
            (raw(r#"{"msg":"hi", "n":1e400}"#), raw(r#"{"api_key":"k"}"#), raw("{}"));
        check(Part::SchemaRequest(Empty {}), r#""schema_request":{}"#);
        check(
            Part::Request {
                org,
                action: "echo",
                data: &data,
                config: &config,
                resource_state: Empty {},
                inv_id: "",
            },
            &format!(
                r#""request":{{{org_text},"action":"echo","data":{{"msg":"hi", "n":1e400}},"config":{{"api_key":"k"}},"resource_state":{{}},"inv_id":""}}"#
            ),
        );
        check(
            Part::Event { org, event_name: "subscribe", data: &empty, config: &empty },
            &format!(
                r#""event":{{{org_text},"event_name":"subscribe","data":{{}},"config":{{}}}}"#
            ),
        );
        check(
            Part::ConfValidation { org, conf: &config },
            &format!(r#""conf_validation":{{{org_text},"conf":{{"api_key":"k"}}}}"#),
        );
        check(
            Part::ErrorReport { error: "continuation count 101 exceeds max 100", oid },
            r#""error_report":{"error":"continuation count 101 exceeds max 100","oid":"8cbe27f4-0000-4000-8000-138cd51389cd"}"#,
        );
    }

    #[test]
    fn a_key_with_quotes_stays_valid_json() {
        let bytes = render("a\"b", Part::SchemaRequest(Empty {}));
        assert_eq!(bytes, br#"{"version":20221218,"idempotency_key":"a\"b","schema_request":{}}"#);
    }
}
