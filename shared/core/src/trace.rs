//! Which trace a call belongs to: the `traceparent` header of W3C Trace Context (version 00).
//!
//! A call is in the trace of its caller, or in one whose id is that of the invocation, so that nothing has to be kept
//! for it. `tracestate` is not passed on: it would have to be kept with every call (512 characters), and the standard
//! lets it be dropped.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

/// The header, in requests to the API and in webhooks.
pub const TRACEPARENT_HEADER: &str = "traceparent";

/// Length of a header of version 00, and the least of any later one: `00-<32 hex>-<16 hex>-<2 hex>`.
const HEADER_BYTES: usize = 55;

/// Bit of the flags: whoever called may have recorded the trace.
const SAMPLED: u8 = 1;

/// A trace. Its id is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    id: u128,
    sampled: bool,
}

impl Trace {
    /// The trace in a `traceparent` header. What is not valid is nothing, as the standard says; of a version after 00
    /// what version 00 has is read.
    pub fn parse(header: &str) -> Option<Self> {
        let bytes = header.as_bytes();
        let (known, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        if [known[2], known[35], known[52]] != [b'-'; 3] {
            return None;
        }
        let version = hex(&known[..2])?;
        let (id, parent) = (hex(&known[3..35])?, hex(&known[36..52])?);
        let flags = hex(&known[53..])?;
        let ends = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => matches!(rest.first(), None | Some(b'-')),
        };
        let sampled = flags & u128::from(SAMPLED) != 0;
        (ends && id != 0 && parent != 0).then_some(Self { id, sampled })
    }

    /// The trace that begins with an invocation. It counts as recorded: every run of a call leaves its log line.
    pub fn of(invocation: Uuid) -> Self {
        Self { id: invocation.as_u128().max(1), sampled: true }
    }

    /// The header of a request whose own id in the trace is `parent`.
    pub fn header(self, parent: u64) -> String {
        let flags = u8::from(self.sampled);
        // Zero is no id.
        format!("00-{}-{:016x}-{flags:02x}", self.id_hex(), parent.max(1))
    }

    /// Its id, as 32 hexadecimal digits.
    pub fn id_hex(self) -> String {
        format!("{:032x}", self.id)
    }
}

/// The number in lower-case hexadecimal digits, of which there are at most 32. Upper case is not valid.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

impl Serialize for Trace {
    /// `<32 hex>-<flags>`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}-{:02x}", self.id, u8::from(self.sampled)))
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = || {
            let (id, flags) = text.split_once('-')?;
            let id = (id.len() == 32).then(|| hex(id.as_bytes())).flatten()?;
            Some(Self { id, sampled: flags == "01" })
        };
        read().ok_or_else(|| de::Error::custom("a trace is not one of ours"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[track_caller]
    fn check(header: &str, expected: Option<&str>) {
        let trace = Trace::parse(header);
        assert_eq!(trace.map(|trace| trace.header(7)).as_deref(), expected, "{header}");
    }

    #[test]
    fn a_trace_goes_on_under_a_parent_of_its_own() {
        let recorded = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01";
        let not_recorded = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-00";
        check(&format!("00-{ID}-{PARENT}-01"), Some(recorded));
        check(&format!("00-{ID}-{PARENT}-00"), Some(not_recorded));
        // Only the first bit of the flags has a meaning here.
        check(&format!("00-{ID}-{PARENT}-ff"), Some(recorded));
        check(&format!("00-{ID}-{PARENT}-02"), Some(not_recorded));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let passed = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
        check(&format!("01-{ID}-{PARENT}-01"), passed);
        check(&format!("fe-{ID}-{PARENT}-01-what-comes"), passed);
        check(&format!("cc-{ID}-{PARENT}-01-"), passed);
        check(&format!("cc-{ID}-{PARENT}-01.what"), None);
        check(&format!("cc-{ID}-{PARENT}-011"), None);
    }

    #[test]
    fn what_is_not_valid_is_ignored() {
        for header in [
            String::new(),
            "00".to_owned(),
            // Version ff is forbidden, and version 00 ends with its flags.
            format!("ff-{ID}-{PARENT}-01"),
            format!("00-{ID}-{PARENT}-01-more"),
            format!("00-{ID}-{PARENT}-01-"),
            format!("00-{ID}-{PARENT}-0"),
            format!("0-{ID}-{PARENT}-01x"),
            // Ids of zeros alone are no ids.
            format!("00-{}-{PARENT}-01", "0".repeat(32)),
            format!("00-{ID}-{}-01", "0".repeat(16)),
            // Upper case is refused everywhere.
            format!("00-{}-{PARENT}-01", ID.to_uppercase()),
            format!("00-{ID}-{}-01", PARENT.to_uppercase()),
            format!("00-{ID}-{PARENT}-0A"),
            format!("0A-{ID}-{PARENT}-01"),
            // Other signs in the place of digits and dashes.
            format!("00-{}-{PARENT}-01", ID.replace('4', "g")),
            format!("00-{}-{PARENT}-01", ID.replacen('4', "+", 1)),
            format!("00_{ID}-{PARENT}-01"),
            format!("00-{ID}_{PARENT}-01"),
            format!("00-{ID}-{PARENT}_01"),
            format!(" 00-{ID}-{PARENT}-01"),
            format!("00-{ID}-{PARENT}-01 "),
            format!("00-{ID}-{}\u{e9}-01", &PARENT[..14]),
        ] {
            check(&header, None);
        }
    }

    #[test]
    fn a_trace_without_a_caller_is_named_as_its_invocation() {
        let id = Uuid::parse_str("4bf92f35-77b3-4da6-a3ce-929d0e0e4736").unwrap();
        let trace = Trace::of(id);
        assert_eq!(trace.id_hex(), ID);
        assert_eq!(trace.header(0x00f0_67aa_0ba9_02b7), format!("00-{ID}-{PARENT}-01"));
        // Zeros are not valid on the wire.
        assert_eq!(Trace::of(Uuid::nil()).header(0), format!("00-{:032x}-{:016x}-01", 1, 1),);
    }

    #[test]
    fn a_record_keeps_the_id_and_whether_it_is_recorded() {
        for flags in ["00", "01"] {
            let trace = Trace::parse(&format!("00-{ID}-{PARENT}-{flags}")).unwrap();
            let text = serde_json::to_string(&trace).unwrap();
            assert_eq!(text, format!("\"{ID}-{flags}\""));
            assert_eq!(serde_json::from_str::<Trace>(&text).unwrap(), trace);
        }
        for bad in ["\"\"", "\"x\"", "\"4bf9-01\"", "1"] {
            assert!(serde_json::from_str::<Trace>(bad).is_err(), "{bad}");
        }
    }
}
