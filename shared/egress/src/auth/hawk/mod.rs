//! Hawk 1: a MAC over the request, and the check of the vendor's over its answer (AL-326 to AL-344).

use aws_lc_rs::constant_time;
use jiff::Timestamp;

use self::mac::{Kind, Parts};
use super::{AuthFault, HawkAlgorithm, HawkAuth};
use crate::draft::{Additions, Draft, Nonces};

pub mod attributes;
pub mod mac;

#[cfg(test)]
mod tests;

/// Largest timestamp of a request, in seconds: the largest integer that every JSON reader keeps.
const TIMESTAMP_MAX: i64 = 9_007_199_254_740_991;

/// What an answer is checked against: the parts of the request's MAC, and the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// The credential's key.
    pub key: String,
    /// The hash.
    pub algorithm: HawkAlgorithm,
    /// Seconds since 1970, as sent.
    pub timestamp: String,
    /// As sent.
    pub nonce: String,
    /// The method.
    pub method: String,
    /// Path and query as sent.
    pub resource: String,
    /// The host without its port.
    pub host: String,
    /// The port, the scheme's own included.
    pub port: u16,
    /// The application's id.
    pub app: Option<String>,
    /// Who delegated.
    pub dlg: Option<String>,
}

/// Builds the header of a request at a time.
///
/// # Errors
///
/// A field that a Hawk server would not read (AL-336), `dlg` without `app` (AL-335), no id, no key, and a timestamp below
/// 0 or above 2^53 - 1.
pub fn build(
    auth: &HawkAuth,
    draft: &Draft<'_>,
    at: Timestamp,
    nonces: &dyn Nonces,
) -> Result<(Additions, Artifacts), AuthFault> {
    let ext = given(&auth.ext);
    let app = given(&auth.app);
    let dlg = given(&auth.dlg);
    let nonce = given(&auth.nonce);
    check(auth)?;
    let artifacts = Artifacts {
        key: auth.auth_key.clone(),
        algorithm: auth.algorithm,
        timestamp: auth.timestamp.unwrap_or_else(|| at.as_second()).to_string(),
        nonce: nonce.map_or_else(|| nonces.hawk(), str::to_owned),
        method: draft.method.to_owned(),
        resource: draft.url.target.clone(),
        host: draft.url.host.clone(),
        port: draft.url.port_or_default(),
        app: app.map(str::to_owned),
        dlg: dlg.map(str::to_owned),
    };
    let hash = auth.include_payload_hash.then(|| {
        mac::payload_hash(auth.algorithm, draft.header("content-type"), draft.body_bytes())
    });
    let mac = artifacts.mac(Kind::Header, hash.as_deref(), ext);

    let mut value = format!(
        r#"Hawk id="{}", ts="{}", nonce="{}""#,
        auth.auth_id, artifacts.timestamp, artifacts.nonce
    );
    let mut attribute = |name: &str, text: Option<&str>| {
        if let Some(text) = text {
            value.push_str(&format!(r#", {name}="{text}""#));
        }
    };
    attribute("hash", hash.as_deref());
    attribute("ext", ext);
    attribute("mac", Some(&mac));
    attribute("app", app);
    attribute("dlg", dlg);
    let added = Additions {
        headers: vec![("authorization".to_owned(), value)],
        query: Vec::new(),
        derived: vec![mac],
    };
    Ok((added, artifacts))
}

impl Artifacts {
    /// Checks the `server-authorization` of an answer: its MAC, and where it carries a hash the answer's media type and
    /// bytes. A header without any text reads as absent, as in the library of Hawk's author (AL-344).
    ///
    /// # Errors
    ///
    /// The contract's three texts (AL-341 to AL-343); the request has reached the vendor in each.
    pub fn check_answer(
        &self,
        server_authorization: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<(), AuthFault> {
        if server_authorization.trim().is_empty() {
            return Ok(());
        }
        let read = attributes::parse(server_authorization)
            .ok_or_else(|| fault("the vendor's server-authorization cannot be read"))?;
        let expected = self.mac(Kind::Response, read.hash.as_deref(), read.ext.as_deref());
        if !is_same(&expected, &read.mac.unwrap_or_default()) {
            return Err(fault("the vendor's server-authorization does not verify"));
        }
        match read.hash {
            Some(hash)
                if !is_same(&mac::payload_hash(self.algorithm, content_type, body), &hash) =>
            {
                Err(fault(
                    "the vendor's answer does not match the hash in its server-authorization",
                ))
            }
            _ => Ok(()),
        }
    }

    fn mac(&self, kind: Kind, hash: Option<&str>, ext: Option<&str>) -> String {
        let parts = Parts {
            timestamp: &self.timestamp,
            nonce: &self.nonce,
            method: &self.method,
            resource: &self.resource,
            host: &self.host,
            port: self.port,
            hash,
            ext,
            app: self.app.as_deref(),
            dlg: self.dlg.as_deref(),
        };
        parts.mac(kind, &self.key, self.algorithm)
    }
}

fn fault(text: &str) -> AuthFault {
    AuthFault(format!("hawk auth: {text}"))
}

/// An optional text that is not empty.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn check(auth: &HawkAuth) -> Result<(), AuthFault> {
    let fields = [
        ("authId", Some(auth.auth_id.as_str())),
        ("nonce", given(&auth.nonce)),
        ("ext", given(&auth.ext)),
        ("app", given(&auth.app)),
        ("dlg", given(&auth.dlg)),
    ];
    for (name, text) in fields {
        if !text.unwrap_or_default().chars().all(attributes::is_permitted) {
            return Err(fault(&format!(
                "{name} must be printable ASCII without a double quote and a backslash"
            )));
        }
    }
    if auth.auth_id.is_empty() {
        return Err(fault("authId is empty"));
    }
    if auth.auth_key.is_empty() {
        return Err(fault("authKey is empty"));
    }
    if given(&auth.dlg).is_some() && given(&auth.app).is_none() {
        return Err(fault("dlg is set without app"));
    }
    if auth.timestamp.is_some_and(|seconds| !(0..=TIMESTAMP_MAX).contains(&seconds)) {
        return Err(fault("timestamp must be seconds since 1970, from 0 to 2^53 - 1"));
    }
    Ok(())
}

fn is_same(left: &str, right: &str) -> bool {
    constant_time::verify_slices_are_equal(left.as_bytes(), right.as_bytes()).is_ok()
}
