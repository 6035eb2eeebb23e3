//! Waiting between attempts of what the SDK does not try again by itself.

use std::time::Duration;

/// Attempts of a transaction that others are in the way of, and of messages that SQS did not take, the first included.
pub(crate) const ATTEMPTS_MAX: u32 = 6;

/// Longest wait before the second attempt; doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(50);

const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Waits before the attempt after `failed` ones: a random part of a time that doubles, so that those who were in each
/// other's way do not meet again.
pub(crate) async fn pause(failed: u32) {
    let mut random = [0; 4];
    // Without random numbers all wait as long as the time is.
    let part = match aws_lc_rs::rand::fill(&mut random) {
        Ok(()) => u32::from_le_bytes(random),
        Err(_) => u32::MAX,
    };
    tokio::time::sleep(longest(failed).mul_f64(f64::from(part) / f64::from(u32::MAX))).await;
}

fn longest(failed: u32) -> Duration {
    PAUSE.saturating_mul(1 << failed.saturating_sub(1).min(10)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_second() {
        let waits = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|failed| longest(failed).as_millis());
        assert_eq!(waits, [50, 50, 100, 200, 400, 800, 1000, 1000]);
    }
}
