//! `POST /jwt`: a secret becomes a token.

use super::token::{Claims, Kind, sign};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::limits::{TOKEN_TTL, TOKEN_TTL_MAX, UID_BYTES_MAX};
use crate::orgs::{self, FoundApiKey, Standing};
use crate::ports::Ports;
use crate::time::Timestamp;

/// Smaller numbers are durations, larger ones times since 2001.
const DURATION_MAX_SECS: i64 = 1_000_000_000;

/// What a client signs in with.
#[derive(Clone, Default)]
pub struct SignIn {
    /// The root key, or an API key of an organization.
    pub secret: String,
    /// The organization; absent, empty or `-`: none.
    pub oid: Option<String>,
    /// Who it is, for the root key only: an API key names itself.
    pub uid: Option<String>,
    /// Until when, in seconds since the epoch. At most [`TOKEN_TTL_MAX`] ahead; what is later is cut to that. A number
    /// too small to be a time of these days is a duration: some clients send one.
    pub expiry: Option<String>,
}

/// A token for a secret.
///
/// The root key and no organization make an operator's token; with an organization, a token with every permission on
/// it. An API key makes a token with its permissions in its organization, and without an organization one that can do
/// nothing but tell whose it is.
pub async fn sign_in(ports: &Ports, with: &SignIn) -> Outcome<String> {
    let oid = match with.oid.as_deref() {
        None | Some("" | "-") => None,
        Some(text) => Some(Oid::parse(text)?),
    };
    let now = ports.clock.now();
    let exp = expiry(now, with.expiry.as_deref())?;
    if ports.keyring.is_operator(&with.secret) {
        return operator(ports, oid, with.uid.as_deref(), now, exp).await;
    }
    let wrong = || Fault::new(Code::Unauthenticated, "the secret is not valid");
    let found = orgs::find_api_key(ports, oid, &with.secret).await?.ok_or_else(wrong)?;
    if orgs::standing(&*ports.store, found.oid).await? != Standing::Live {
        return Err(wrong());
    }
    orgs::rehash_api_key(ports, &with.secret, &found).await;
    let FoundApiKey { oid: owner, hash, key, .. } = found;
    let perms = if oid.is_some() { key.permissions } else { Vec::new() };
    let claims = Claims::new(Kind::User, format!("key:{hash}"), now, exp);
    Ok(sign(ports, &Claims { oid: Some(owner), perms, key: Some(hash), ..claims }))
}

async fn operator(
    ports: &Ports,
    oid: Option<Oid>,
    uid: Option<&str>,
    now: Timestamp,
    exp: Timestamp,
) -> Outcome<String> {
    if let Some(oid) = oid {
        orgs::get(ports, oid).await?;
    }
    let ident = match uid {
        None | Some("") => "operator".to_owned(),
        Some(uid) if uid.len() <= UID_BYTES_MAX && !uid.chars().any(char::is_control) => {
            uid.to_owned()
        }
        Some(_) => {
            return Err(Fault::new(
                Code::BadRequest,
                format!("uid is longer than {UID_BYTES_MAX} bytes, or holds control characters"),
            ));
        }
    };
    let claims = Claims::new(Kind::Operator, ident, now, exp);
    Ok(sign(ports, &Claims { oid, perms: vec!["*".to_owned()], ..claims }))
}

/// When the token ends.
fn expiry(now: Timestamp, asked: Option<&str>) -> Outcome<Timestamp> {
    let Some(text) = asked.filter(|text| !text.is_empty()) else {
        return Ok(now.plus(TOKEN_TTL));
    };
    let secs = text.parse::<i64>().map_err(|_| {
        Fault::new(Code::BadRequest, "expiry is not a number of seconds since the epoch")
    })?;
    let secs = if (1..DURATION_MAX_SECS).contains(&secs) { now.secs() + secs } else { secs };
    if secs <= now.secs() {
        return Err(Fault::new(Code::BadRequest, "expiry is in the past"));
    }
    Ok(Timestamp::from_secs(secs).min(now.plus(TOKEN_TTL_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn check(asked: Option<&str>, until: Result<i64, &str>) {
        let got = expiry(Timestamp::from_secs(NOW), asked);
        assert_eq!(
            got.map(Timestamp::secs).map_err(|fault| fault.message),
            until.map(|ahead| NOW + ahead).map_err(Into::into)
        );
    }

    #[test]
    fn a_token_lasts_an_hour_unless_asked_and_a_day_at_most() {
        check(None, Ok(3_600));
        check(Some(""), Ok(3_600));
        check(Some("1700000001"), Ok(1));
        check(Some("1700086400"), Ok(86_400));
        check(Some("1700086401"), Ok(86_400));
        check(Some("9223372036854775807"), Ok(86_400));
    }

    #[test]
    fn a_small_expiry_is_a_duration() {
        check(Some("1"), Ok(1));
        check(Some("7200"), Ok(7_200));
        check(Some("999999999"), Ok(86_400));
        check(Some("1000000000"), Err("expiry is in the past"));
    }

    #[test]
    fn an_expiry_that_is_over_or_no_number_is_refused() {
        check(Some("1700000000"), Err("expiry is in the past"));
        check(Some("0"), Err("expiry is in the past"));
        check(Some("-1"), Err("expiry is in the past"));
        for bad in ["1e30", "x", "92233720368547758080", "1.5"] {
            check(Some(bad), Err("expiry is not a number of seconds since the epoch"));
        }
    }
}
