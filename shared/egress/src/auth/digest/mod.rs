//! Digest authentication: which challenge of a vendor is answered, and how (AL-281 to AL-311).
//!
//! The exchange itself, with its two or three requests, is the caller's: it sends, asks [`choose`] about a 401, and sends
//! again with what [`Digest::respond`] adds and the cookies of [`cookies::Jar`].

use super::AuthFault;

pub mod challenge;
pub mod cookies;
pub mod date;
pub mod header;
mod respond;

#[cfg(test)]
mod tests;

pub use self::challenge::Challenge;

/// The credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Digest {
    username: String,
    password: String,
}

impl Digest {
    /// With any username and any password.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into() }
    }
}

/// What becomes of a 401.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The request is sent again, with an answer to this.
    Answer(Box<Challenge>),
    /// No Digest challenge: the answer stands (AL-282).
    NotDigest,
    /// There are Digest challenges, and none can be answered (AL-309).
    Error(AuthFault),
}

/// Chooses the first challenge that can be answered, as a vendor lists them by preference (AL-289). The lines are the
/// answer's `www-authenticate` headers, in their order.
pub fn choose(www_authenticate: &[&str]) -> Choice {
    let mut reason = None;
    for challenge in challenges(www_authenticate) {
        match challenge {
            Ok(challenge) => return Choice::Answer(Box::new(challenge)),
            Err(found) => reason = reason.or(Some(found)),
        }
    }
    match reason {
        Some(reason) => Choice::Error(AuthFault(format!(
            "digest auth: the vendor's challenge cannot be answered: {reason}"
        ))),
        None => Choice::NotDigest,
    }
}

/// The challenge a third request answers: one of the second 401 that can be answered, says `stale=true` and gives another
/// nonce than the one that was answered (AL-303, AL-307). Without it the second answer stands.
pub fn wants_third(first: &Challenge, second: &[&str]) -> Option<Challenge> {
    challenges(second)
        .filter_map(Result::ok)
        .find(|challenge| challenge.stale && challenge.nonce != first.nonce)
}

/// The challenges of the Digest scheme.
fn challenges(lines: &[&str]) -> impl Iterator<Item = Result<Challenge, challenge::Reason>> {
    let offers = header::offers(lines).into_iter();
    offers
        .filter(|offer| offer.scheme.eq_ignore_ascii_case("digest"))
        .map(|offer| Challenge::read(&offer))
}
