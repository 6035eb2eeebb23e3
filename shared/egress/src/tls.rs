//! The one place where a connector and its TLS are made: both clients go out through it.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use rustls::{ClientConfig, RootCertStore};

use crate::connect::{Connector, PlainHttp};
use crate::policy::Policy;
use crate::resolve::Resolve;

/// A root certificate of the policy that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("extra root certificate {index} cannot be used: {why}")]
pub struct BadRoot {
    /// Which one, counted from 0.
    pub index: usize,
    /// Why.
    pub why: String,
}

/// Connections to checked addresses, with TLS for `https`, that speak HTTP/1.1.
pub(crate) fn connector(
    policy: Policy,
    resolver: Arc<dyn Resolve>,
    plain: PlainHttp,
) -> Result<HttpsConnector<Connector>, BadRoot> {
    let Policy { allow_private_networks, extra_roots } = policy;
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for (index, root) in extra_roots.into_iter().enumerate() {
        roots.add(root).map_err(|error| BadRoot { index, why: error.to_string() })?;
    }
    // Address and scheme were checked by then, as far as the URL tells; the connector checks both once more.
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config(roots))
        .https_or_http()
        .enable_http1()
        .wrap_connector(Connector::new(resolver, allow_private_networks, plain)))
}

fn config(roots: RootCertStore) -> ClientConfig {
    // The provider is named, so that a process with another one as its default still gets this one.
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has a cipher suite for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
