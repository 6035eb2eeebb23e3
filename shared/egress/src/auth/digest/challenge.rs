//! A Digest challenge that can be answered (RFC 7616, 2617 and 2069).

use super::header::{Offer, Twice};

/// Why a challenge cannot be answered: the end of the error's text.
pub type Reason = &'static str;

/// The hash of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// RFC 1321.
    Md5,
    /// FIPS 180-4.
    Sha256,
    /// FIPS 180-4, with its own start value: no cut of SHA-512.
    Sha512_256,
}

/// What a response protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qop {
    /// The request's method and target.
    Auth,
    /// The body too.
    AuthInt,
}

impl Qop {
    /// The name that is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::AuthInt => "auth-int",
        }
    }
}

/// A challenge, read and found answerable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Without its quotes and escapes.
    pub realm: String,
    /// Without its quotes and escapes.
    pub nonce: String,
    /// Echoed where it is there.
    pub opaque: Option<String>,
    /// The algorithm as the vendor wrote it; none where it named none, which is MD5.
    pub algorithm: Option<String>,
    /// The algorithm's hash.
    pub hash: Hash,
    /// Whether it is the algorithm's `-sess` form.
    pub session: bool,
    /// None for a server of RFC 2069.
    pub qop: Option<Qop>,
    /// Whether the username is sent hashed.
    pub userhash: bool,
    /// Whether only the nonce of the request before it was wrong.
    pub stale: bool,
}

impl Challenge {
    /// Reads a challenge of the Digest scheme.
    pub fn read(offer: &Offer) -> Result<Self, Reason> {
        if offer.malformed {
            return Err("it is malformed");
        }
        let parameter =
            |name: &str| offer.parameter(name).map_err(|Twice| "it has a parameter more than once");
        // What would break out of a quoted string of ours, or out of its header, is never echoed.
        let text = |name: &str| match parameter(name)? {
            Some(text) if text.contains(char::is_control) => Err("it holds a control character"),
            text => Ok(text.map(str::to_owned)),
        };
        let flag = |name: &str| {
            parameter(name).map(|text| text.is_some_and(|text| text.eq_ignore_ascii_case("true")))
        };
        let algorithm = parameter("algorithm")?;
        let (hash, session) = read_algorithm(algorithm)?;
        Ok(Self {
            realm: text("realm")?.ok_or("it has no realm")?,
            nonce: text("nonce")?.ok_or("it has no nonce")?,
            opaque: text("opaque")?,
            algorithm: algorithm.map(str::to_owned),
            hash,
            session,
            qop: read_qop(parameter("qop")?)?,
            userhash: flag("userhash")?,
            stale: flag("stale")?,
        })
    }
}

fn read_algorithm(name: Option<&str>) -> Result<(Hash, bool), Reason> {
    let Some(name) = name else { return Ok((Hash::Md5, false)) };
    let known = [("MD5", Hash::Md5), ("SHA-256", Hash::Sha256), ("SHA-512-256", Hash::Sha512_256)];
    for (plain, hash) in known {
        if name.eq_ignore_ascii_case(plain) {
            return Ok((hash, false));
        }
        if name.eq_ignore_ascii_case(&format!("{plain}-sess")) {
            return Ok((hash, true));
        }
    }
    Err("its algorithm is not MD5, SHA-256, SHA-512-256 or a -sess form of one of them")
}

/// The protection to use: `auth` where it is offered, `auth-int` where only that is (AL-290, AL-291). An empty list is
/// none, as the clients in use read it.
fn read_qop(offered: Option<&str>) -> Result<Option<Qop>, Reason> {
    let offered = offered.unwrap_or_default().split(',').map(str::trim);
    let offered: Vec<&str> = offered.filter(|name| !name.is_empty()).collect();
    let choice = [Qop::Auth, Qop::AuthInt]
        .into_iter()
        .find(|qop| offered.iter().any(|name| name.eq_ignore_ascii_case(qop.as_str())));
    match choice {
        None if !offered.is_empty() => Err("its qop is neither auth nor auth-int"),
        choice => Ok(choice),
    }
}
