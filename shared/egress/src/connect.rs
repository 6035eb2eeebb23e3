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
use crate::resolve::{Resolve, ResolveFault};

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
    /// The name has no addresses.
    #[error(transparent)]
    Lookup(ResolveFault),
    /// None of the addresses answered; how it went with the last one.
    #[error(transparent)]
    Failed(SocketFault),
}

/// How a socket failed, told without an address or anything else of our network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocketFault {
    /// Nobody listens.
    #[error("connection refused")]
    Refused,
    /// The other side tore it down.
    #[error("connection reset")]
    Reset,
    /// The other side ended it.
    #[error("connection closed")]
    Closed,
    /// Nobody answered in time.
    #[error("connection timed out")]
    TimedOut,
    /// There is no way to the host.
    #[error("host unreachable")]
    HostUnreachable,
    /// There is no way to its network.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// Anything else.
    #[error("connection failed")]
    Other,
}

impl SocketFault {
    /// What an error of a socket means.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Self::Reset,
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::HostUnreachable => Self::HostUnreachable,
            io::ErrorKind::NetworkUnreachable => Self::NetworkUnreachable,
            _ => Self::Other,
        }
    }
}

/// Where plain http may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// To this machine, where private networks are allowed (LC-011).
    Loopback,
    /// To every permitted address, where private networks are allowed (AL-145).
    Permitted,
}

/// Connects to a URI's host: resolves once, checks every address, and connects to the very addresses it checked.
#[derive(Clone)]
pub struct Connector {
    resolver: Arc<dyn Resolve>,
    allow_private_networks: bool,
    plain: PlainHttp,
}

impl Connector {
    /// A connector that may reach private networks, and go without TLS, only where `allow_private_networks` is set.
    pub fn new(resolver: Arc<dyn Resolve>, allow_private_networks: bool, plain: PlainHttp) -> Self {
        Self { resolver, allow_private_networks, plain }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, ConnectFault> {
        let within = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let addresses = self.addresses(&uri).await?;
            first_of(&addresses, port_of(&uri)).await
        });
        within.await.unwrap_or_else(|_elapsed| Err(ConnectFault::Failed(SocketFault::TimedOut)))
    }

    /// The checked addresses of a URI's host. One that is not permitted spoils the others: whoever mixes them is
    /// trying whether we take it by chance.
    async fn addresses(&self, uri: &Uri) -> Result<Vec<IpAddr>, ConnectFault> {
        let host = uri.host().unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let addresses = match bare.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_name) => self.resolver.resolve(bare).await.map_err(ConnectFault::Lookup)?,
        };
        let plain = uri.scheme() != Some(&Scheme::HTTPS);
        for address in &addresses {
            address::permit(*address, self.allow_private_networks)
                .map_err(|_name| refused("the host has an address that is not permitted"))?;
            if plain {
                self.permit_plain(*address)?;
            }
        }
        match addresses.is_empty() {
            true => Err(ConnectFault::Lookup(ResolveFault::NotFound)),
            false => Ok(addresses),
        }
    }

    fn permit_plain(&self, address: IpAddr) -> Result<(), ConnectFault> {
        match self.plain {
            PlainHttp::Loopback if !address::is_loopback(address) => {
                Err(refused("the host is not on this machine, as plain http has to be"))
            }
            PlainHttp::Permitted if !self.allow_private_networks => {
                Err(refused("plain http is not permitted"))
            }
            PlainHttp::Loopback | PlainHttp::Permitted => Ok(()),
        }
    }
}

/// A connection to the first address that takes one; the fault is that of the last one tried.
async fn first_of(addresses: &[IpAddr], port: u16) -> Result<TokioIo<TcpStream>, ConnectFault> {
    let mut fault = ConnectFault::Lookup(ResolveFault::NotFound);
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
            Ok(Err(error)) => fault = ConnectFault::Failed(SocketFault::of(&error)),
            Err(_elapsed) => fault = ConnectFault::Failed(SocketFault::TimedOut),
        }
    }
    Err(fault)
}

fn port_of(uri: &Uri) -> u16 {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    uri.port_u16().unwrap_or(default)
}

fn refused(why: &str) -> ConnectFault {
    ConnectFault::Refused(why.to_owned())
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
