//! Limits of requests to vendors (AL-218, AL-225), and what the client keeps for them.

use std::time::Duration;

/// Largest body of a vendor's answer, in bytes: 8 MiB (AL-225).
pub const VENDOR_ANSWER_BYTES_MAX: usize = 8 << 20;

/// Largest head of a vendor's answer, and of each informational one before it, in bytes.
pub const VENDOR_HEAD_BYTES_MAX: usize = 64 << 10;

/// Header lines of a vendor's answer.
pub const VENDOR_HEADERS_MAX: usize = 256;

/// How long a connection without a request is kept, unless set otherwise (AL-218).
pub const VENDOR_KEEPALIVE: Duration = Duration::from_secs(4);

/// Connections without a request that are kept for one tenant, scheme, host and port.
pub const VENDOR_KEPT_PER_HOST_MAX: usize = 16;

/// Connections without a request that are kept in all; past it the one kept longest is closed.
pub const VENDOR_KEPT_MAX: usize = 256;

const _: () = assert!(VENDOR_KEPT_PER_HOST_MAX < VENDOR_KEPT_MAX);
