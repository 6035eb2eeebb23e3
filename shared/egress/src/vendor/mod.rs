//! The client that vendors are called through: connections kept for one tenant, and how far a request got
//! (AL-178 to AL-222).

use std::sync::Arc;
use std::time::Duration;

use annex_core::limits::VENDOR_KEEPALIVE;
use bytes::Bytes;
use hyper_rustls::HttpsConnector;
use tokio::time::{Instant, timeout_at};

mod fault;
mod link;
mod outgoing;
mod pool;

pub use self::fault::{Network, VendorFault};
pub use self::outgoing::{
    BodyFault, ByteStream, OpenBody, Outgoing, OutgoingBody, RESERVED_HEADERS,
};

use self::link::{Link, LinkFault};
use self::outgoing::Prepared;
use self::pool::{Key, Pool};
use crate::connect::{Connector, PlainHttp};
use crate::policy::Policy;
use crate::resolve::Resolve;
use crate::tls::{self, BadRoot};

/// How long a request may take at the most, whatever its caller says.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// A vendor's answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 999.
    pub status: u16,
    /// Lower-case names with their values, a character for each byte (ISO 8859-1, as Fetch reads them). A name stands as
    /// often as it was sent, at the place where it was sent first.
    pub headers: Vec<(String, String)>,
    /// As it was sent: nothing is decompressed.
    pub body: Bytes,
}

impl Answer {
    /// The values of the headers with this lower-case name, in their order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// Sends requests to vendors and reads their answers.
///
/// **Contract.** A new connection looks its host up once, checks every address, and connects to the addresses it
/// checked (AL-209 to AL-216); a kept one stays where it is (AL-220) and serves only the tenant, scheme, host and port it
/// was opened for (AL-219). Over one connection requests follow each other, never overlap.
///
/// A `GET`, `HEAD`, `PUT` or `DELETE` goes out a second time, over a new connection, where a kept one ends before a byte
/// of the answer has come; nothing else ever does (AL-221, AL-222). Redirects are not followed, proxies of the
/// environment not used, answers not decompressed. Dropping a request closes its connection.
///
/// Connections without a request are bounded ([`VENDOR_KEPT_PER_HOST_MAX`], [`VENDOR_KEPT_MAX`]); those with one are as
/// many as callers send at a time, each holding an answer of at most [`VENDOR_ANSWER_BYTES_MAX`].
///
/// [`VENDOR_KEPT_PER_HOST_MAX`]: annex_core::limits::VENDOR_KEPT_PER_HOST_MAX
/// [`VENDOR_KEPT_MAX`]: annex_core::limits::VENDOR_KEPT_MAX
/// [`VENDOR_ANSWER_BYTES_MAX`]: annex_core::limits::VENDOR_ANSWER_BYTES_MAX
pub struct VendorClient {
    connector: HttpsConnector<Connector>,
    pool: Arc<Pool<Box<Link>>>,
}

/// What the pool had for a request.
enum Kept {
    Open(Box<Link>),
    /// Connections were kept, and every one of them was closed.
    Closed,
    Nothing,
}

impl VendorClient {
    /// How long connections are kept, unless set otherwise (AL-218).
    pub const KEEPALIVE: Duration = VENDOR_KEEPALIVE;

    /// A client under `policy`, that keeps a connection without a request for `keepalive`.
    ///
    /// One process needs one: what it keeps, it keeps for its own requests only.
    pub fn new(
        policy: Policy,
        resolver: Arc<dyn Resolve>,
        keepalive: Duration,
    ) -> Result<Self, BadRoot> {
        let connector = tls::connector(policy, resolver, PlainHttp::Permitted)?;
        Ok(Self { connector, pool: Arc::new(Pool::new(keepalive)) })
    }

    /// Sends one request for `tenant`, and reads its answer to the end within `timeout` (AL-164 to AL-166).
    ///
    /// Must be called inside a tokio runtime.
    pub async fn send(
        &self,
        tenant: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Answer, VendorFault> {
        let deadline = Instant::now() + timeout.min(TIMEOUT_MAX);
        let request = Prepared::new(outgoing)?;
        let key = Key::new(tenant, request.url());
        // Whether a vendor may have the request already.
        let mut handed_over = false;
        match self.kept(&key).await {
            Kept::Open(link) => match self.exchange(link, &key, &request, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(LinkFault::Unanswered(_)) if request.may_go_twice() => handed_over = true,
                Err(fault) => return Err(fault.describe(timeout)),
            },
            Kept::Closed if !request.may_go_twice() => return Err(fault::kept_and_closed()),
            Kept::Closed | Kept::Nothing => {}
        }
        let link = self.open(&request, deadline).await.map_err(|fault| match handed_over {
            true => fault.after_handing_over(),
            false => fault,
        })?;
        self.exchange(link, &key, &request, deadline).await.map_err(|fault| fault.describe(timeout))
    }

    /// The latest connection that is kept and still open.
    async fn kept(&self, key: &Key) -> Kept {
        let mut kept = Kept::Nothing;
        while let Some(mut link) = self.pool.take(key) {
            if link.is_idle().await {
                return Kept::Open(link);
            }
            kept = Kept::Closed;
        }
        kept
    }

    /// A new connection; one that is not there by the deadline was never made (AL-183).
    async fn open(&self, request: &Prepared, deadline: Instant) -> Result<Box<Link>, VendorFault> {
        let url = request.url();
        match timeout_at(deadline, Link::open(&self.connector, request.absolute().clone())).await {
            Ok(Ok(link)) => Ok(Box::new(link)),
            Ok(Err(error)) => Err(fault::of_connect(error.as_ref(), url)),
            Err(_elapsed) => Err(fault::connect_timed_out(url)),
        }
    }

    /// Sends over `link`, and keeps it where it can take another request.
    async fn exchange(
        &self,
        mut link: Box<Link>,
        key: &Key,
        request: &Prepared,
        deadline: Instant,
    ) -> Result<Answer, LinkFault> {
        let exchange = timeout_at(deadline, link.exchange(request.build()));
        let answer = exchange.await.unwrap_or(Err(LinkFault::TimedOut))?;
        if link.is_idle().await {
            self.pool.keep(key.clone(), link);
        }
        Ok(answer)
    }
}
