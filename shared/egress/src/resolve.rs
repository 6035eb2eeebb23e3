//! Names to addresses, behind a trait so that tests decide what DNS says.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Lookups under way at a time in one process. The system's resolver blocks a thread for each, and names that hang
/// must not take every thread that the process has for blocking work.
const LOOKUPS_AT_ONCE: usize = 128;

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResolveFault {
    /// There is no such name, or it has no address.
    #[error("name not found")]
    NotFound,
    /// The name service did not answer, or not usefully.
    #[error("name lookup failed")]
    Failed,
}

/// Finds the addresses of a name.
///
/// **Contract.** One call is one lookup. The answer is every address the name has, unchecked: the caller checks each.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, which is a name and never an address.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ResolveFault>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl SystemResolver {
    /// A resolver with its own bound of concurrent lookups.
    #[expect(clippy::new_without_default, reason = "what reaches the network is built on purpose")]
    pub fn new() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)) }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ResolveFault> {
        let permit = Arc::clone(&self.lookups)
            .acquire_owned()
            .await
            .map_err(|_closed| ResolveFault::Failed)?;
        let host = host.to_owned();
        // Like tokio's own lookup, but the thread keeps its permit when the caller has stopped waiting for it.
        let lookup = tokio::task::spawn_blocking(move || {
            let found = (host.as_str(), 0).to_socket_addrs();
            drop(permit);
            found.map(|addresses| addresses.map(|address| address.ip()).collect())
        });
        match lookup.await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(fault_of(&error)),
            Err(_stopped) => Err(ResolveFault::Failed),
        }
    }
}

/// The standard library says what went wrong with a lookup in its text only.
fn fault_of(error: &io::Error) -> ResolveFault {
    let text = error.to_string();
    let absent = ["not known", "No address associated", "No such host"];
    match absent.iter().any(|part| text.contains(part)) {
        true => ResolveFault::NotFound,
        false => ResolveFault::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: ResolveFault) {
        let text = format!("failed to lookup address information: {text}");
        assert_eq!(fault_of(&io::Error::other(text)), expected);
    }

    #[test]
    fn absent_name_and_failed_lookup_are_told_apart() {
        check("Name or service not known", ResolveFault::NotFound);
        check("No address associated with hostname", ResolveFault::NotFound);
        check("nodename nor servname provided, or not known", ResolveFault::NotFound);
        check("Temporary failure in name resolution", ResolveFault::Failed);
        check("Non-recoverable failure in name resolution", ResolveFault::Failed);
    }

    #[tokio::test]
    async fn system_resolver_finds_this_machine() {
        let addresses = SystemResolver::new().resolve("localhost").await.unwrap();
        assert!(addresses.iter().all(IpAddr::is_loopback) && !addresses.is_empty());
    }
}
