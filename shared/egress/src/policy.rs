//! What may be reached, as one explicit value.

pub use rustls::pki_types::CertificateDer;

/// What the way out permits. There is no default: whoever starts a process says what it may reach.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether loopback and private networks may be reached, and loopback without TLS. Meant for one machine and for
    /// tests. The addresses by which clouds hand out credentials stay refused.
    pub allow_private_networks: bool,
    /// Root certificates that are trusted beside the public ones: a private authority, a test's own. Empty on a
    /// platform that keeps to public certificates (LC-012).
    pub extra_roots: Vec<CertificateDer<'static>>,
}
