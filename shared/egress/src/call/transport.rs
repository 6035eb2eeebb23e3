//! What carries a call's requests: the network, or answers that somebody wrote down.

use std::time::Duration;

use async_trait::async_trait;

use crate::vendor::{Answer, Outgoing, VendorClient, VendorFault};

/// Carries requests to vendors.
///
/// **Contract.** A request is answered within `timeout`, or fails. A fault without a `network` is a refusal: of the request,
/// before anything was sent, or of an answer that is over its limits.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one request of a tenant.
    async fn send(
        &self,
        tenant: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Answer, VendorFault>;
}

#[async_trait]
impl Transport for VendorClient {
    async fn send(
        &self,
        tenant: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Answer, VendorFault> {
        Self::send(self, tenant, outgoing, timeout).await
    }
}
