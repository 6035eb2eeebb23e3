//! Continuations: what becomes of those that an answer asks for.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, First};
use crate::keys::digest_hex;
use crate::limits::{CONTINUATIONS_PER_RESPONSE_MAX, NAME_BYTES_MAX, REQUEST_BYTES_MAX};
use crate::profile::Profile;

/// A continuation as an extension asks for it.
#[derive(Debug, Clone, Deserialize)]
pub struct Ask {
    /// Seconds until it is due; anything but a number is 0.
    #[serde(default)]
    pub in_delay_sec: Option<Box<RawValue>>,
    /// The action to call; may be absent, which is refused when it is planned.
    #[serde(default)]
    pub action: Option<String>,
    /// The state that comes back as the request's data; absent and null are `{}`.
    #[serde(default)]
    pub state: Option<Box<RawValue>>,
}

/// The continuations of an answer, as far as any of them can go out.
pub type Asks = First<Ask, CONTINUATIONS_PER_RESPONSE_MAX>;

/// Characters of a delay that a notice shows: a number can have millions.
const NUMBER_CHARS_SHOWN: usize = 64;

/// A continuation that goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its idempotency key as the extension sees it: the parent's, `:`, its level (LC-072). Siblings share it.
    pub key: String,
    /// What it is told apart by: the key, a hash of action and state, and which of equal siblings it is (LC-085).
    pub identity: String,
    /// Its level in the chain.
    pub level: u32,
    /// The action to call.
    pub action: String,
    /// The state, as JSON text.
    pub state: String,
    /// How long it waits.
    pub delay: Duration,
}

/// Decides what becomes of the continuations that the call `key` at `level` asked for.
///
/// Nothing here fails: what cannot be granted as asked is cut or clamped, and told in the texts beside the plan.
pub fn plan(profile: &Profile, key: &str, level: u32, asks: Asks) -> (Vec<Planned>, Vec<String>) {
    let mut notices = Vec::new();
    if asks.count == 0 {
        return (Vec::new(), notices);
    }
    if profile.level_max <= level {
        notices.push("max continuation level reached".to_owned());
        return (Vec::new(), notices);
    }
    if profile.fanout_max < asks.count {
        notices
            .push(format!("continuation count {} exceeds max {}", asks.count, profile.fanout_max));
    }
    let child_level = level + 1;
    let child_key = format!("{key}:{child_level}");
    let mut equal_siblings: HashMap<String, u32> = HashMap::new();
    let mut planned = Vec::with_capacity(asks.elements.len());
    for ask in asks.elements.into_iter().take(profile.fanout_max) {
        let Some(action) = ask.action.filter(|action| !action.is_empty()) else {
            notice(&mut notices, "continuation without an action dropped".to_owned());
            continue;
        };
        if NAME_BYTES_MAX < action.len() {
            let text =
                format!("continuation of an action of more than {NAME_BYTES_MAX} bytes dropped");
            notice(&mut notices, text);
            continue;
        }
        let (delay, clamped) = delay(profile, ask.in_delay_sec.as_deref());
        if let Some(asked) = clamped {
            let most = profile.delay_max.as_secs();
            notice(&mut notices, format!("continuation delay {asked} exceeds max {most}, clamped"));
        }
        let state = match ask.state {
            Some(state) if state.get() != "null" => state.get().to_owned(),
            _ => "{}".to_owned(),
        };
        if !state.starts_with('{') {
            notice(&mut notices, "continuation whose state is not an object dropped".to_owned());
            continue;
        }
        if REQUEST_BYTES_MAX < state.len() {
            let text =
                format!("continuation whose state has more than {REQUEST_BYTES_MAX} bytes dropped");
            notice(&mut notices, text);
            continue;
        }
        let canonical = json::canonical(&state).unwrap_or_else(|| state.clone());
        let hash = digest_hex(&[action.as_bytes(), canonical.as_bytes()]);
        let ordinal = equal_siblings.entry(hash.clone()).and_modify(|n| *n += 1).or_insert(0);
        planned.push(Planned {
            identity: format!("{child_key}#{hash}#{ordinal}"),
            key: child_key.clone(),
            level: child_level,
            action,
            state,
            delay,
        });
    }
    (planned, notices)
}

/// Adds a text that is not there yet: a hundred equal mishaps of one answer are one notice.
fn notice(notices: &mut Vec<String>, text: String) {
    if !notices.contains(&text) {
        notices.push(text);
    }
}

/// The delay that is granted, and what was asked where that is more than is granted.
fn delay(profile: &Profile, asked: Option<&RawValue>) -> (Duration, Option<String>) {
    let text = asked.map_or("0", RawValue::get);
    let Ok(secs) = text.parse::<f64>() else {
        return (Duration::ZERO, None);
    };
    let most = profile.delay_max.as_secs();
    if secs > profile.delay_max.as_secs_f64() {
        return (profile.delay_max, Some(text.chars().take(NUMBER_CHARS_SHOWN).collect()));
    }
    // Never early: a part of a second counts as a whole one. Negative delays are none.
    let whole = secs.max(0.0).ceil();
    (Duration::from_secs((whole as u64).min(most)), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::LIMACHARLIE;

    fn asks(text: &str) -> Asks {
        serde_json::from_str(text).unwrap()
    }

    /// Plans, and compares delays and notices.
    #[track_caller]
    fn check(level: u32, text: &str, delays: &[u64], notices: &[&str]) {
        let (planned, said) = plan(&LIMACHARLIE, "k", level, asks(text));
        assert_eq!(planned.iter().map(|p| p.delay.as_secs()).collect::<Vec<_>>(), delays);
        assert_eq!(said, notices);
        for one in &planned {
            assert_eq!(
                (one.key.as_str(), one.level),
                (format!("k:{}", level + 1).as_str(), level + 1)
            );
        }
    }

    fn of_delay(delay: &str) -> String {
        format!(r#"[{{"in_delay_sec":{delay},"action":"a","state":{{}}}}]"#)
    }

    #[test]
    fn delay_at_the_limit_is_kept_and_past_it_is_clamped_and_noticed() {
        check(0, &of_delay("0"), &[0], &[]);
        check(0, &of_delay("300"), &[300], &[]);
        check(0, &of_delay("301"), &[300], &["continuation delay 301 exceeds max 300, clamped"]);
        check(0, &of_delay("1e30"), &[300], &["continuation delay 1e30 exceeds max 300, clamped"]);
        check(
            0,
            &of_delay("99999999999999999999"),
            &[300],
            &["continuation delay 99999999999999999999 exceeds max 300, clamped"],
        );
        check(0, &of_delay("299.2"), &[300], &[]);
        check(0, &of_delay("0.5"), &[1], &[]);
        check(0, &of_delay("-5"), &[0], &[]);
        check(0, &of_delay("\"30\""), &[0], &[]);
        check(0, &of_delay("null"), &[0], &[]);
    }

    #[test]
    fn level_99_may_go_on_and_level_100_may_not() {
        check(99, &of_delay("1"), &[1], &[]);
        check(100, &of_delay("1"), &[], &["max continuation level reached"]);
        check(100, "[]", &[], &[]);
    }

    #[test]
    fn a_hundred_go_out_and_of_a_hundred_and_one_the_first_hundred() {
        let of_count = |count: usize| {
            let one: Vec<_> =
                (0..count).map(|n| format!(r#"{{"action":"a","state":{{"n":{n}}}}}"#)).collect();
            format!("[{}]", one.join(","))
        };
        check(0, &of_count(100), &[0; 100], &[]);
        check(0, &of_count(101), &[0; 100], &["continuation count 101 exceeds max 100"]);
        let (planned, _) = plan(&LIMACHARLIE, "k", 0, asks(&of_count(101)));
        assert_eq!(planned[99].state, r#"{"n":99}"#, "LC-082: the earliest are kept");
    }

    #[test]
    fn equal_clamps_of_one_answer_are_one_notice() {
        let text = r#"[{"in_delay_sec":400,"action":"a"},{"in_delay_sec":400,"action":"b"}]"#;
        check(0, text, &[300, 300], &["continuation delay 400 exceeds max 300, clamped"]);
    }

    #[test]
    fn siblings_share_the_key_and_differ_in_identity() {
        let text = r#"[
            {"action":"a","state":{"x":1,"y":2}},
            {"action":"a","state":{"y":2,"x":1}},
            {"action":"b","state":{"x":1,"y":2}},
            {"action":"a","state":{"x":1,"y":3}}]"#;
        let (planned, _) = plan(&LIMACHARLIE, "k", 1, asks(text));
        let identities: std::collections::HashSet<_> =
            planned.iter().map(|p| &p.identity).collect();
        assert_eq!(identities.len(), 4, "LC-085");
        assert!(planned.iter().all(|p| p.key == "k:2"), "LC-072");
        assert_eq!(planned[1].state, r#"{"y":2,"x":1}"#, "the state passes unchanged");
        assert!(planned[1].identity.ends_with("#1"), "the second of two equal ones");
    }

    #[test]
    fn the_same_answer_gives_the_same_identities() {
        let text = r#"[{"action":"a","state":{"x":1}},{"action":"a","state":{"x":1}}]"#;
        assert_eq!(plan(&LIMACHARLIE, "k", 0, asks(text)), plan(&LIMACHARLIE, "k", 0, asks(text)));
    }

    #[test]
    fn keys_nest() {
        let (planned, _) = plan(&LIMACHARLIE, "k:1", 1, asks(&of_delay("1")));
        assert_eq!(planned[0].key, "k:1:2");
    }

    #[test]
    fn an_ask_without_an_action_is_dropped_and_noticed() {
        check(
            0,
            r#"[{"in_delay_sec":1},{"action":""},{"action":"a"}]"#,
            &[0],
            &["continuation without an action dropped"],
        );
    }

    #[test]
    fn an_ask_for_an_action_that_no_schema_has_is_dropped_and_noticed() {
        let of = |length: usize| format!(r#"[{{"action":"{}"}}]"#, "a".repeat(length));
        check(0, &of(NAME_BYTES_MAX), &[0], &[]);
        check(
            0,
            &of(NAME_BYTES_MAX + 1),
            &[],
            &["continuation of an action of more than 128 bytes dropped"],
        );
    }

    #[test]
    fn a_state_that_is_not_an_object_is_dropped_and_noticed() {
        for state in ["[1]", "7", "\"x\""] {
            let text =
                format!(r#"[{{"action":"a","state":{state}}},{{"action":"a","in_delay_sec":2}}]"#);
            check(0, &text, &[2], &["continuation whose state is not an object dropped"]);
        }
    }

    #[test]
    fn what_is_too_large_is_dropped_and_no_notice_is_longer_than_a_line() {
        let action = |bytes: usize| format!(r#"[{{"action":"{}"}}]"#, "a".repeat(bytes));
        check(0, &action(NAME_BYTES_MAX), &[0], &[]);
        let text = "continuation of an action of more than 128 bytes dropped";
        check(0, &action(NAME_BYTES_MAX + 1), &[], &[text]);
        let state = |bytes: usize| {
            format!(r#"[{{"action":"a","state":{{"x":"{}"}}}}]"#, "x".repeat(bytes - 8))
        };
        check(0, &state(REQUEST_BYTES_MAX), &[0], &[]);
        let text = "continuation whose state has more than 10485760 bytes dropped";
        check(0, &state(REQUEST_BYTES_MAX + 1), &[], &[text]);
        let text = format!(
            "continuation delay {} exceeds max 300, clamped",
            "9".repeat(NUMBER_CHARS_SHOWN)
        );
        check(0, &of_delay(&"9".repeat(5_000)), &[300], &[&text]);
    }

    #[test]
    fn absent_and_null_state_are_an_empty_object() {
        let (planned, _) =
            plan(&LIMACHARLIE, "k", 0, asks(r#"[{"action":"a"},{"action":"a","state":null}]"#));
        assert_eq!((planned[0].state.as_str(), planned[1].state.as_str()), ("{}", "{}"));
    }
}
