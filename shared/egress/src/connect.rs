//! Connections to checked addresses: the step after which a name no longer matters.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::address;
use crate::resolve::Resolve;

/// How long one address is tried before the next one.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long resolving and connecting may take together. A caller's deadline may end earlier; this one also ends the
/// attempts nobody waits for any more, because a kept connection came free first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no connection. Nothing has been sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectFault {
    /// An address is not permitted; nothing was connected to.
    #[error("{0}")]
    Refused(String),
    /// The name has no addresses, or none of them answered.
    #[error("{0}")]
    Failed(String),
}

/// Connects to a URI's host: resolves once, checks every address, and connects to the very addresses it checked.
#[derive(Clone)]
pub struct Connector {
    resolver: Arc<dyn Resolve>,
    allow_private_networks: bool,
}

impl Connector {
    /// A connector that may reach private networks only where `allow_private_networks` is set.
    pub fn new(resolver: Arc<dyn Resolve>, allow_private_networks: bool) -> Self {
        Self { resolver, allow_private_networks }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, ConnectFault> {
        let within = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let addresses = self.addresses(&uri).await?;
            first_of(&addresses, port_of(&uri)).await
        });
        within.await.unwrap_or_else(|_elapsed| Err(failed("connection timed out")))
    }

    /// The checked addresses of a URI's host. One that is not permitted spoils the others: whoever mixes them is
    /// trying whether we take it by chance.
    async fn addresses(&self, uri: &Uri) -> Result<Vec<IpAddr>, ConnectFault> {
        let host = uri.host().unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let addresses = match bare.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_name) => self
                .resolver
                .resolve(bare)
                .await
                .map_err(|fault| ConnectFault::Failed(fault.to_string()))?,
        };
        let plain = uri.scheme() != Some(&Scheme::HTTPS);
        for address in &addresses {
            address::permit(*address, self.allow_private_networks)
                .map_err(|_name| refused("the host has an address that is not permitted"))?;
            if plain && !address::is_loopback(*address) {
                return Err(refused("the host is not on this machine, as plain http has to be"));
            }
        }
        match addresses.is_empty() {
            true => Err(failed("name not found")),
            false => Ok(addresses),
        }
    }
}

/// A connection to the first address that takes one; the fault is that of the last one tried.
async fn first_of(addresses: &[IpAddr], port: u16) -> Result<TokioIo<TcpStream>, ConnectFault> {
    let mut fault = failed("name not found");
    for address in addresses {
        let socket = SocketAddr::new(address.to_canonical(), port);
        match tokio::time::timeout(ADDRESS_TIMEOUT, TcpStream::connect(socket)).await {
            Ok(Ok(stream)) => {
                // A request leaves in one or two small writes, which must not wait for each other's acknowledgement.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "no TCP_NODELAY");
                }
                return Ok(TokioIo::new(stream));
            }
            Ok(Err(error)) => fault = failed(reason(&error)),
            Err(_elapsed) => fault = failed("connection timed out"),
        }
    }
    Err(fault)
}

fn port_of(uri: &Uri) -> u16 {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    uri.port_u16().unwrap_or(default)
}

/// A short reason that holds no address and nothing else of our network.
pub(crate) fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "connection reset",
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => "connection closed",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::HostUnreachable => "host unreachable",
        io::ErrorKind::NetworkUnreachable => "network unreachable",
        _ => "connection failed",
    }
}

fn refused(why: &str) -> ConnectFault {
    ConnectFault::Refused(why.to_owned())
}

fn failed(why: &str) -> ConnectFault {
    ConnectFault::Failed(why.to_owned())
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectFault;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
