//! What a library's errors mean to us. The short reason goes to whoever reads the fault, the rest to the log.

use std::error::Error;
use std::io;

use annex_core::ports::SendFault;
use hyper_util::client::legacy;
use rustls::{AlertDescription, CertificateError};

use crate::connect::{ConnectFault, SocketFault};

/// The fault of a request that got no answer head.
pub(crate) fn of_request(error: &legacy::Error) -> SendFault {
    tracing::debug!(error = error as &dyn Error, "request failed");
    if !error.is_connect() {
        return SendFault::Broken(reason_of_exchange(error));
    }
    match find::<ConnectFault>(error) {
        Some(ConnectFault::Refused(why)) => SendFault::Refused(why.clone()),
        Some(fault @ (ConnectFault::Lookup(_) | ConnectFault::Failed(_))) => {
            SendFault::NotSent(fault.to_string())
        }
        // The connection stood, so it is the handshake that failed: no byte of the request has left.
        None => SendFault::NotSent(reason_of_handshake(error)),
    }
}

/// The fault of an answer that broke off.
pub(crate) fn of_exchange(error: &hyper::Error) -> SendFault {
    tracing::debug!(error = error as &dyn Error, "response failed");
    SendFault::Broken(reason_of_exchange(error))
}

fn reason_of_exchange(error: &(dyn Error + 'static)) -> String {
    const INCOMPLETE: &str = "connection closed before the response was complete";
    const NOT_HTTP: &str = "response is not valid HTTP";
    let reason = match (find::<hyper::Error>(error), find::<io::Error>(error)) {
        (Some(error), _) if error.is_parse_too_large() => "response head is too large",
        (Some(error), _) if error.is_parse() => NOT_HTTP,
        (Some(error), _) if error.is_incomplete_message() => INCOMPLETE,
        (_, Some(error)) => match error.kind() {
            io::ErrorKind::UnexpectedEof => INCOMPLETE,
            _ if find::<rustls::Error>(error).is_some() => "TLS connection failed",
            // How hyper says that a chunk's size is none, or that there is too much beside the chunks.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => NOT_HTTP,
            _ => return SocketFault::of(error).to_string(),
        },
        _ => "connection closed",
    };
    reason.to_owned()
}

/// Why there was no TLS over a connection that stood.
pub(crate) fn reason_of_handshake(error: &(dyn Error + 'static)) -> String {
    let reason = match (find::<rustls::Error>(error), find::<io::Error>(error)) {
        (Some(rustls::Error::InvalidCertificate(error)), _) => reason_of_certificate(error),
        (Some(rustls::Error::AlertReceived(alert)), _) => reason_of_alert(*alert),
        (Some(_), _) => "TLS handshake failed",
        (None, Some(error)) => match SocketFault::of(error) {
            SocketFault::Closed => "connection closed during the TLS handshake",
            SocketFault::Reset => "connection reset during the TLS handshake",
            _ => "TLS handshake failed",
        },
        (None, None) => "TLS handshake failed",
    };
    reason.to_owned()
}

fn reason_of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => "certificate not trusted",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not valid yet"
        }
        CertificateError::Revoked => "certificate is revoked",
        _ => "certificate not valid",
    }
}

fn reason_of_alert(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::UnrecognisedName => "the server does not know this name",
        AlertDescription::ProtocolVersion => "the server speaks no TLS version that is permitted",
        AlertDescription::CertificateRequired => "the server asks for a client certificate",
        _ => "the server refused the TLS handshake",
    }
}

/// The first error of type `E` in a chain. An `io::Error` hides the error it wraps from the chain, so it is opened.
pub(crate) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        let wrapped = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        // An io::Error around another one tells less than the inner one.
        let opaque = wrapped.is_some_and(|inner| inner.is::<E>());
        if let (Some(found), false) = (error.downcast_ref::<E>(), opaque) {
            return Some(found);
        }
        next = wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}
