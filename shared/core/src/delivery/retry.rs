//! When a failed attempt is made again.

use std::time::Duration;

use crate::limits;
use crate::time::Timestamp;

/// The delay after failed attempt `attempt` (1 is the first), jittered with 64 random bits.
///
/// 1 s, then twice as long each time, ±20 %, and never above 15 s, jitter included (LC-036 to LC-039).
pub fn delay(attempt: u32, random: u64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let base = limits::RETRY_DELAY
        .saturating_mul(limits::RETRY_FACTOR.saturating_pow(doublings))
        .min(limits::RETRY_DELAY_MAX);
    let base = u64::try_from(base.as_millis()).unwrap_or(u64::MAX);
    let spread = base * u64::from(limits::RETRY_JITTER_PERCENT) / 100;
    let jittered = base - spread + random % (2 * spread + 1);
    Duration::from_millis(jittered).min(limits::RETRY_DELAY_MAX)
}

/// The delay before slow retry `number` (0 is the first): 30 s, doubling to 15 minutes, never sooner than what the
/// extension asked for as far as one queue message can wait (LC-045).
pub fn slow_delay(number: u32, asked: Option<Duration>) -> Duration {
    let grown = limits::SLOW_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(number.min(16)));
    grown.max(asked.unwrap_or(Duration::ZERO)).min(limits::SLOW_RETRY_DELAY_MAX)
}

/// What a `retry-after` header asks for: whole seconds, or an HTTP date (RFC 9110, 10.2.3). Anything else, and a date
/// that is over, is nothing. Never longer than a day.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let day = Duration::from_secs(86_400);
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        let secs = value.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(secs).min(day));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_millisecond();
    let wait = Timestamp::from_millis(at).since(now);
    (!wait.is_zero()).then_some(wait.min(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: LC-036, LC-039
    #[test]
    fn first_delays_spread_over_a_second_give_or_take_a_fifth() {
        let delays: Vec<_> =
            (0..1000_u64).map(|n| delay(1, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        assert!(delays.iter().all(|d| (800..=1200).contains(&d.as_millis())));
        assert!(delays.iter().any(|d| d != &delays[0]), "LC-039: not all equal");
        assert_eq!((delay(1, 0).as_millis(), delay(1, 400).as_millis()), (800, 1200));
    }

    // covers: LC-037, LC-038
    #[test]
    fn delays_double_and_stop_at_fifteen_seconds_jitter_included() {
        for (attempt, least, most) in [
            (1, 800, 1200),
            (2, 1600, 2400),
            (3, 3200, 4800),
            (4, 6400, 9600),
            (5, 12_000, 15_000),
            (10, 12_000, 15_000),
            (u32::MAX, 12_000, 15_000),
        ] {
            let all: Vec<_> = (0..20_000).map(|n| delay(attempt, n).as_millis()).collect();
            assert_eq!(all.iter().min(), Some(&least), "attempt {attempt}");
            assert_eq!(all.iter().max(), Some(&most), "attempt {attempt}");
        }
    }

    #[test]
    fn slow_delays_grow_from_thirty_seconds_to_fifteen_minutes() {
        let secs: Vec<_> = (0..8).map(|n| slow_delay(n, None).as_secs()).collect();
        assert_eq!(secs, [30, 60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(slow_delay(u32::MAX, None).as_secs(), 900);
    }

    #[test]
    fn an_asked_delay_only_lengthens_and_is_bounded() {
        assert_eq!(slow_delay(0, Some(Duration::from_secs(5))).as_secs(), 30);
        assert_eq!(slow_delay(0, Some(Duration::from_secs(45))).as_secs(), 45);
        assert_eq!(slow_delay(0, Some(Duration::from_secs(86_400))).as_secs(), 900);
    }

    #[test]
    fn retry_after_is_read_with_bounds() {
        let now = Timestamp::parse("1994-11-06T08:49:00Z").unwrap();
        for (value, secs) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("99999999999999999999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sun, 06 Nov 1994 08:48:00 GMT", None),
            ("1e30", None),
            ("inf", None),
            ("-inf", None),
            ("NaN", None),
            ("-5", None),
            ("9e15", None),
            ("1.5", None),
            ("", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
        ] {
            assert_eq!(retry_after(value, now).map(|d| d.as_secs()), secs, "{value:?}");
        }
    }
}
