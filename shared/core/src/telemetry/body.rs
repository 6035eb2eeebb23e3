//! Reads the body of a webhook delivery into events, each byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::fault::{Code, Fault, Outcome};
use crate::gzip::{self, GzipFault};
use crate::json;
use crate::limits::{EVENT_BYTES_MAX, EVENT_POST_BYTES_MAX, EVENTS_PER_POST_MAX};

/// Decompresses a body that is declared to be gzip, or starts like one: JSON never does. At most
/// [`EVENT_POST_BYTES_MAX`] bytes.
pub fn decode<'b>(body: &'b [u8], encoding: Option<&str>) -> Outcome<Cow<'b, [u8]>> {
    let gzip = match encoding.map(str::trim) {
        None | Some("" | "identity") => body.starts_with(&[0x1f, 0x8b]),
        Some(encoding) if encoding.eq_ignore_ascii_case("gzip") => true,
        Some(_) => {
            return Err(Fault::new(Code::BadRequest, "the only content encoding is gzip"));
        }
    };
    if !gzip {
        return if body.len() > EVENT_POST_BYTES_MAX { Err(too_large()) } else { Ok(body.into()) };
    }
    unpack(body).map(Cow::Owned)
}

fn unpack(body: &[u8]) -> Outcome<Vec<u8>> {
    gzip::unpack(body, EVENT_POST_BYTES_MAX).map_err(|fault| match fault {
        GzipFault::TooLarge => too_large(),
        fault => Fault::new(Code::BadRequest, format!("the body {fault}")),
    })
}

fn too_large() -> Fault {
    Fault::new(Code::TooLarge, format!("the body is larger than {EVENT_POST_BYTES_MAX} bytes"))
}

/// The events of a body: one object, a list of objects, or objects one after the other, usually one a line. Each is at
/// most [`EVENT_BYTES_MAX`] bytes, and there are at most [`EVENTS_PER_POST_MAX`].
pub fn events(body: &[u8]) -> Outcome<Vec<&str>> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Fault::new(Code::InvalidJson, "the body is not UTF-8"))?;
    let texts = match text.trim_start().bytes().next() {
        None => return Err(Fault::new(Code::InvalidJson, "the body is empty")),
        Some(b'[') => list(text)?,
        Some(_) => sequence(text)?,
    };
    for (index, event) in texts.iter().enumerate() {
        check(event)
            .map_err(|fault| Fault::new(fault.code, format!("event {index}: {}", fault.message)))?;
    }
    Ok(texts)
}

fn check(event: &str) -> Outcome<()> {
    if event.len() > EVENT_BYTES_MAX {
        return Err(Fault::new(
            Code::TooLarge,
            format!("it is larger than {EVENT_BYTES_MAX} bytes"),
        ));
    }
    json::check(event.as_bytes())
        .map_err(|error| Fault::new(Code::InvalidJson, error.to_string()))?;
    if !event.starts_with('{') {
        return Err(Fault::new(Code::BadRequest, "it is not an object"));
    }
    Ok(())
}

fn too_many() -> Fault {
    Fault::new(Code::TooLarge, format!("a delivery has at most {EVENTS_PER_POST_MAX} events"))
}

fn sequence(text: &str) -> Outcome<Vec<&str>> {
    let mut out = Vec::new();
    for event in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        if out.len() == EVENTS_PER_POST_MAX {
            return Err(too_many());
        }
        out.push(event.map_err(|error| invalid(&error))?.get());
    }
    Ok(out)
}

fn list(text: &str) -> Outcome<Vec<&str>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let listed = reader.deserialize_seq(Elements).map_err(|error| match error.is_data() {
        true => too_many(),
        false => invalid(&error),
    })?;
    reader.end().map_err(|error| invalid(&error))?;
    Ok(listed)
}

fn invalid(error: &serde_json::Error) -> Fault {
    Fault::new(Code::InvalidJson, format!("the body is not valid JSON: {error}"))
}

/// Reads a list that ends in time: a list of millions of zeros is small on the wire.
struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut out = Vec::new();
        while let Some(element) = seq.next_element::<&RawValue>()? {
            if out.len() == EVENTS_PER_POST_MAX {
                return Err(A::Error::custom("too many"));
            }
            out.push(element.get());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).expect("memory");
        out.finish().expect("memory")
    }

    #[track_caller]
    fn check(body: &str, expected: &[&str]) {
        assert_eq!(events(body.as_bytes()), Ok(expected.to_vec()), "{body}");
    }

    #[track_caller]
    fn refused(body: &[u8], code: Code, message: &str) {
        assert_eq!(events(body), Err(Fault::new(code, message)));
    }

    #[test]
    fn every_form_yields_events_byte_for_byte() {
        check(r#"{"a" : 1.0E+5}"#, &[r#"{"a" : 1.0E+5}"#]);
        check("\n[ {\"a\":1} , {\"b\":2} ]\n", &[r#"{"a":1}"#, r#"{"b":2}"#]);
        check("{\"a\":1}\n{\"b\":2}\r\n\n{}", &[r#"{"a":1}"#, r#"{"b":2}"#, "{}"]);
        check("[]", &[]);
        check(r#"{"k":1,"k":1e999}"#, &[r#"{"k":1,"k":1e999}"#]);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        refused(b"", Code::InvalidJson, "the body is empty");
        refused(b"\xff", Code::InvalidJson, "the body is not UTF-8");
        refused(b"7", Code::BadRequest, "event 0: it is not an object");
        refused(b"[{},[]]", Code::BadRequest, "event 1: it is not an object");
        refused(
            br#"{"k":"\ud800"}"#,
            Code::InvalidJson,
            "event 0: a lone surrogate escape at byte 6",
        );
        refused(
            b"[{}]x",
            Code::InvalidJson,
            "the body is not valid JSON: trailing characters at line 1 column 5",
        );
        refused(
            b"{\"a\"}",
            Code::InvalidJson,
            "the body is not valid JSON: expected `:` at line 1 column 5",
        );
    }

    #[test]
    fn limits_hold_at_their_last_and_first_value() {
        let many = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert_eq!(events(many(1000).as_bytes()).map(|e| e.len()), Ok(1000));
        let text = "a delivery has at most 1000 events";
        refused(many(1001).as_bytes(), Code::TooLarge, text);
        refused("{}\n".repeat(1001).as_bytes(), Code::TooLarge, text);
        let wide = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        assert!(events(wide(EVENT_BYTES_MAX).as_bytes()).is_ok());
        refused(
            wide(EVENT_BYTES_MAX + 1).as_bytes(),
            Code::TooLarge,
            "event 0: it is larger than 262144 bytes",
        );
        let deep = |levels: usize| r#"{"a":"#.repeat(levels - 1) + "{}" + &"}".repeat(levels - 1);
        assert!(events(deep(64).as_bytes()).is_ok());
        refused(
            deep(65).as_bytes(),
            Code::InvalidJson,
            "event 0: nested deeper than 64 levels at byte 320",
        );
    }

    #[test]
    fn gzip_is_read_in_many_members_and_bounded() {
        let plain = |body: &[u8], encoding| decode(body, encoding).map(Cow::into_owned);
        assert_eq!(plain(b"{}", None), Ok(b"{}".to_vec()));
        assert_eq!(plain(&packed(b"{}"), Some("GZip")), Ok(b"{}".to_vec()));
        assert_eq!(plain(&packed(b"{}"), None), Ok(b"{}".to_vec()));
        assert_eq!(plain(&[packed(b"{"), packed(b"}")].concat(), Some("gzip")), Ok(b"{}".to_vec()));
        let text = "the body is not gzip, is cut off, or has bytes after its end";
        let refusal = Err(Fault::new(Code::BadRequest, text));
        assert_eq!(plain(b"{}", Some("gzip")), refusal);
        let whole = packed(b"{\"a\":1}");
        assert_eq!(plain(&whole[..whole.len() - 4], Some("gzip")), refusal);
        assert_eq!(plain(b"{}", Some("br")).map_err(|f| f.code), Err(Code::BadRequest));
        let full = vec![b' '; EVENT_POST_BYTES_MAX];
        assert_eq!(plain(&packed(&full), Some("gzip")).map(|b| b.len()), Ok(full.len()));
        assert_eq!(plain(&full, None).map(|b| b.len()), Ok(full.len()));
        let bomb = vec![b' '; EVENT_POST_BYTES_MAX + 1];
        assert_eq!(plain(&packed(&bomb), Some("gzip")), Err(too_large()));
        assert_eq!(plain(&bomb, None), Err(too_large()));
    }
}
