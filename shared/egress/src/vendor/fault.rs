//! Why there is no answer, and whether the vendor may have the request (AL-178 to AL-196).

use std::error::Error;
use std::time::Duration;

use annex_core::limits::{VENDOR_ANSWER_BYTES_MAX, VENDOR_HEAD_BYTES_MAX, VENDOR_HEADERS_MAX};

use super::link::LinkFault;
use crate::connect::{ConnectFault, SocketFault};
use crate::draft::SentUrl;
use crate::failure;
use crate::resolve::ResolveFault;

/// A request without a complete answer. The text holds no address, header or body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct VendorFault {
    /// What went wrong, for whoever made the request.
    pub text: String,
    /// How far the request got; none for one that was refused, or whose answer was (AL-190 to AL-192).
    pub network: Option<Network>,
}

/// How far a request got that failed in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// There was no connection: the vendor has nothing of it (AL-180 to AL-185).
    NotSent,
    /// The vendor may have it (AL-186 to AL-188).
    Unknown,
}

impl Network {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Unknown => "unknown",
        }
    }
}

impl VendorFault {
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self { text: text.into(), network: None }
    }

    fn not_sent(text: impl Into<String>) -> Self {
        Self { text: text.into(), network: Some(Network::NotSent) }
    }

    fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), network: Some(Network::Unknown) }
    }

    /// The same fault of a request that had gone out over a kept connection before (AL-188).
    pub(super) fn after_handing_over(self) -> Self {
        let network = self.network.map(|_further| Network::Unknown);
        Self { network, ..self }
    }
}

impl LinkFault {
    /// The fault as its caller gets it: there was a connection (AL-186 to AL-188).
    pub(super) fn describe(self, timeout: Duration) -> VendorFault {
        match self {
            Self::Unanswered(text) | Self::Broken(text) => VendorFault::unknown(text),
            Self::TimedOut => VendorFault::unknown(format!(
                "no complete answer within {} ms",
                timeout.as_millis()
            )),
            Self::HeadTooLarge => VendorFault::refused(format!(
                "response head is larger than {VENDOR_HEAD_BYTES_MAX} bytes or {VENDOR_HEADERS_MAX} lines"
            )),
            Self::BodyTooLarge => VendorFault::refused(format!(
                "response is larger than {VENDOR_ANSWER_BYTES_MAX} bytes"
            )),
        }
    }
}

/// A request that met a kept connection which was closed, and must not go out twice (AL-222).
pub(super) fn kept_and_closed() -> VendorFault {
    VendorFault::unknown("the vendor closed the connection that was kept for this request")
}

/// No connection by the deadline (AL-183).
pub(super) fn connect_timed_out(url: &SentUrl) -> VendorFault {
    not_connected(SocketFault::TimedOut, url)
}

/// What the connector says about a connection that was not made, in the words of Node where it has some.
pub(super) fn of_connect(error: &(dyn Error + 'static), url: &SentUrl) -> VendorFault {
    tracing::debug!(error, "no connection");
    match failure::find::<ConnectFault>(error) {
        Some(ConnectFault::Refused(why)) => VendorFault::refused(why.clone()),
        Some(ConnectFault::Lookup(fault)) => {
            let code = match fault {
                ResolveFault::NotFound => "ENOTFOUND",
                ResolveFault::Failed => "EAI_AGAIN",
            };
            VendorFault::not_sent(format!("getaddrinfo {code} {}", url.host))
        }
        Some(ConnectFault::Failed(fault)) => not_connected(*fault, url),
        // The connection stood, so it is the handshake that failed: no byte of the request has left.
        None => {
            let reason = failure::reason_of_handshake(error);
            VendorFault::not_sent(format!("connect {}: {reason}", peer(url)))
        }
    }
}

fn not_connected(fault: SocketFault, url: &SentUrl) -> VendorFault {
    let code = match fault {
        SocketFault::Refused => "ECONNREFUSED",
        SocketFault::Reset => "ECONNRESET",
        SocketFault::Closed => "ECONNABORTED",
        SocketFault::TimedOut => "ETIMEDOUT",
        SocketFault::HostUnreachable => "EHOSTUNREACH",
        SocketFault::NetworkUnreachable => "ENETUNREACH",
        SocketFault::Other => {
            return VendorFault::not_sent(format!("connect {}: {fault}", peer(url)));
        }
    };
    VendorFault::not_sent(format!("connect {code} {}", peer(url)))
}

/// Whom the URL names: never the address that the name had.
fn peer(url: &SentUrl) -> String {
    format!("{}:{}", url.host, url.port_or_default())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::draft::Scheme;

    #[track_caller]
    fn check(error: ConnectFault, text: &str, network: Option<Network>) {
        let url = SentUrl {
            scheme: Scheme::Https,
            host: "api.vendor.example".to_owned(),
            port: None,
            target: "/v1?key=1".to_owned(),
        };
        let expected = VendorFault { text: text.to_owned(), network };
        assert_eq!(of_connect(&error, &url), expected);
    }

    fn socket(kind: io::ErrorKind) -> ConnectFault {
        ConnectFault::Failed(SocketFault::of(&io::Error::from(kind)))
    }

    // covers: AL-179, AL-180
    #[test]
    fn failed_lookup_reads_as_in_node() {
        let not_sent = Some(Network::NotSent);
        let lookup = ConnectFault::Lookup;
        check(lookup(ResolveFault::NotFound), "getaddrinfo ENOTFOUND api.vendor.example", not_sent);
        check(lookup(ResolveFault::Failed), "getaddrinfo EAI_AGAIN api.vendor.example", not_sent);
    }

    // covers: AL-181, AL-182, AL-183
    #[test]
    fn connection_that_was_not_made_is_not_sent() {
        use io::ErrorKind::{
            AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut,
        };
        let check = |kind, text| check(socket(kind), text, Some(Network::NotSent));
        check(ConnectionRefused, "connect ECONNREFUSED api.vendor.example:443");
        check(HostUnreachable, "connect EHOSTUNREACH api.vendor.example:443");
        check(NetworkUnreachable, "connect ENETUNREACH api.vendor.example:443");
        check(TimedOut, "connect ETIMEDOUT api.vendor.example:443");
        check(AddrNotAvailable, "connect api.vendor.example:443: connection failed");
    }

    // covers: AL-191
    #[test]
    fn refusal_is_no_failure_of_the_network() {
        let why = "the host has an address that is not permitted";
        check(ConnectFault::Refused(why.to_owned()), why, None);
    }
}
