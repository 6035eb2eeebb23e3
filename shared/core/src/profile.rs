//! The rules of one contract as data. Code branches on these values and never on a profile's name.

use std::time::Duration;

use crate::limits;

/// The rules of one contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Which contract, for logs and records.
    pub name: &'static str,
    /// Longest one attempt lasts, its body included.
    pub call_timeout: Duration,
    /// Largest response body, in bytes.
    pub response_bytes_max: usize,
    /// Attempts of one call, the first included.
    pub attempts_max: u32,
    /// Statuses that are tried again soon, in the same process.
    pub retry_statuses: &'static [u16],
    /// Statuses that are tried again much later, through the queue.
    pub slow_statuses: &'static [u16],
    /// Deepest level of a chain of continuations.
    pub level_max: u32,
    /// Deepest chain of calls across extensions; the root call is 1.
    pub depth_max: u32,
    /// Longest delay of a continuation.
    pub delay_max: Duration,
    /// Continuations of one answer.
    pub fanout_max: usize,
    /// How long a repeat publish of a continuation is dropped.
    pub dedupe: Duration,
    /// SKUs of one metric report.
    pub skus_max: usize,
}

/// The LimaCharlie runtime contract.
pub const LIMACHARLIE: Profile = Profile {
    name: "limacharlie",
    call_timeout: limits::WEBHOOK_TIMEOUT,
    response_bytes_max: limits::RESPONSE_BYTES_MAX,
    attempts_max: limits::ATTEMPTS_MAX,
    retry_statuses: &[408, 500, 502, 503, 504],
    slow_statuses: &[429],
    level_max: limits::CONTINUATION_LEVEL_MAX,
    depth_max: limits::CALL_DEPTH_MAX,
    delay_max: limits::CONTINUATION_DELAY_MAX,
    fanout_max: limits::CONTINUATIONS_PER_RESPONSE_MAX,
    dedupe: limits::CONTINUATION_DEDUPE,
    skus_max: limits::SKUS_PER_REPORT_MAX,
};
