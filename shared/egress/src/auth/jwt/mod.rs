//! A JSON Web Token of the request's claims, signed anew for each request (AL-345 to AL-362).
//!
//! What is signed is what `jose` would sign for the same claims, with one difference: numbers keep their spelling, so
//! that one beyond a double's precision survives.

mod claims;
mod keys;
mod pem;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use super::{AddTo, AuthFault, JwtAlgorithm, JwtAuth};
use crate::draft::Additions;

/// Before the token in the header, where the request gives nothing else (AL-357).
const PREFIX: &str = "Bearer ";

/// The parameter, where the request names none (AL-358).
const PARAM: &str = "token";

impl JwtAlgorithm {
    /// Every algorithm there is, for readers of their names.
    pub const ALL: [Self; 12] = [
        Self::Hs256,
        Self::Hs384,
        Self::Hs512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
    ];

    /// The name of RFC 7518, section 3.1.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }
}

/// Signs a token at a time, and puts it where the auth says. Every fault begins with `jwt auth: ` (AL-362) and holds
/// neither the key nor the claims.
pub fn build(auth: &JwtAuth, at: Timestamp) -> Result<Additions, AuthFault> {
    let token = token(auth, at)?;
    let mut additions = Additions { derived: vec![token.clone()], ..Additions::default() };
    match auth.add_to {
        AddTo::Headers => {
            // A prefix that is given stands as it is, an empty one too.
            let prefix = auth.header_prefix.as_deref().unwrap_or(PREFIX);
            additions.headers.push(("authorization".to_owned(), format!("{prefix}{token}")));
        }
        AddTo::QueryParams => {
            let name = auth.param_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(PARAM);
            additions.query.push((name.to_owned(), token));
        }
    }
    Ok(additions)
}

/// The signature of a signing input, which is a token's header and claims as they stand in it, under the auth's algorithm
/// and key (RFC 7515, section 5.1). Faults are those of [`build`].
pub fn signature(auth: &JwtAuth, input: &[u8]) -> Result<Vec<u8>, AuthFault> {
    keys::sign(auth, input).map_err(fault)
}

fn fault(problem: impl std::fmt::Display) -> AuthFault {
    AuthFault::new(format!("jwt auth: {problem}"))
}

/// The token in the compact form of RFC 7515.
fn token(auth: &JwtAuth, at: Timestamp) -> Result<String, AuthFault> {
    let header = claims::header(&auth.jwt_headers, auth.algorithm).map_err(fault)?;
    let payload = claims::payload(&auth.payload, at.as_second()).map_err(fault)?;
    let mut token = String::new();
    URL_SAFE_NO_PAD.encode_string(header, &mut token);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut token);
    let signature = signature(auth, token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}

#[cfg(test)]
mod tests;
