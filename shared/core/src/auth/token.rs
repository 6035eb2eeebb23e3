//! Tokens: JWTs that the platform signs (HS256) and nobody else reads meaning into.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::{Caller, CallerKind};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits::{
    CLOCKS_APART_MAX, EXTENSION_TOKEN_TTL, REMOVED_INSTALL_GRACE, TOKEN_BYTES_MAX,
};
use crate::model::{Definition, Subscription};
use crate::orgs;
use crate::ports::{Item, KeyUse, Ports, newest};
use crate::stored;
use crate::time::Timestamp;

const ISSUER: &str = "annex";

/// What a token says. Times are in seconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) iss: String,
    pub(super) kind: Kind,
    /// The organization; absent for an operator without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) oid: Option<Oid>,
    /// The caller's stable name.
    pub(super) sub: String,
    pub(super) perms: Vec<String>,
    /// Hash of the API key it was made with: the token ends with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The extension it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ext: Option<ExtensionName>,
    /// Generation of that extension's install.
    #[serde(default)]
    pub(super) generation: u32,
    /// Depth of the call that it was made for.
    #[serde(default)]
    pub(super) depth: u32,
    pub(super) iat: i64,
    pub(super) exp: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Operator,
    User,
    Extension,
}

impl Claims {
    pub(super) fn new(kind: Kind, sub: String, now: Timestamp, exp: Timestamp) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            kind,
            oid: None,
            sub,
            perms: Vec::new(),
            key: None,
            ext: None,
            generation: 0,
            depth: 0,
            iat: now.secs(),
            exp: exp.secs(),
        }
    }
}

/// A token for an extension in an organization, with the permissions of its definition (LC-133), whatever the caller's
/// own are (LC-134).
pub fn extension_token(
    ports: &Ports,
    oid: Oid,
    definition: &Definition,
    subscription: &Subscription,
    depth: u32,
) -> String {
    let now = ports.clock.now();
    let name = &definition.name;
    sign(
        ports,
        &Claims {
            oid: Some(oid),
            perms: definition.permissions.clone(),
            ext: Some(name.clone()),
            generation: subscription.generation,
            depth,
            ..Claims::new(
                Kind::Extension,
                format!("ext:{name}"),
                now,
                now.plus(EXTENSION_TOKEN_TTL),
            )
        },
    )
}

/// Signs claims with the newest key.
pub(super) fn sign(ports: &Ports, claims: &Claims) -> String {
    let (id, key) = newest(&*ports.keyring, KeyUse::Token);
    let key = EncodingKey::from_secret(&key[..]).expect("a key of 32 bytes is not empty");
    let header = Header { kid: Some(id.to_string()), ..Header::new(Algorithm::HS256) };
    jsonwebtoken::encode(&header, claims, &key).expect("plain claims serialize and HS256 signs")
}

/// The caller behind a token: its signature, its times, and that what it was made with still stands: an API key, or
/// for an extension its install, at most [`REMOVED_INSTALL_GRACE`] after its removal.
///
/// One read of the store beside that of the organization, none for the operator.
pub async fn verify(ports: &Ports, token: &str) -> Outcome<Caller> {
    let claims = read(ports, token)?;
    let now = ports.clock.now();
    if claims.exp <= now.secs() {
        return Err(refused("the token has expired"));
    }
    if let Some(oid) = claims.oid {
        let deleted = || refused("the organization of this token was deleted");
        match orgs::known(&*ports.store, oid).await? {
            // An id is free again after a deletion: what was signed for the organization before is not for this one. A
            // clock that was set back tells nothing about that.
            Some(org) => {
                let signed = Timestamp::from_secs(claims.iat).plus(CLOCKS_APART_MAX);
                let is_older = signed < org.created_at && org.created_at <= now;
                if org.deletion.is_some() || is_older {
                    return Err(deleted());
                }
            }
            // Keys and installs of an organization go with it; a token of the operator has nothing else to end it.
            None if claims.kind != Kind::Operator => {}
            None => return Err(deleted()),
        }
    }
    let kind = match claims.kind {
        // The token that an operator has for an organization is worth that organization only: an impersonated action
        // hands it to an extension.
        Kind::Operator if claims.oid.is_some() => CallerKind::User,
        Kind::Operator => CallerKind::Operator,
        Kind::User => {
            let (Some(oid), Some(hash)) = (claims.oid, &claims.key) else {
                return Err(invalid());
            };
            if stored::recent(ports, &keys::api_key(oid, hash), |_| true).await?.is_none() {
                return Err(refused("the API key of this token was deleted"));
            }
            CallerKind::User
        }
        Kind::Extension => {
            let (Some(oid), Some(name)) = (claims.oid, &claims.ext) else {
                return Err(invalid());
            };
            check_install(ports, oid, name, claims.generation).await?;
            CallerKind::Extension { name: name.clone(), depth: claims.depth }
        }
    };
    Ok(Caller { kind, oid: claims.oid, ident: claims.sub, permissions: claims.perms })
}

/// The claims of a token that we signed. The algorithm is fixed: what the header says is not believed.
fn read(ports: &Ports, token: &str) -> Outcome<Claims> {
    if TOKEN_BYTES_MAX < token.len() {
        return Err(invalid());
    }
    let header = jsonwebtoken::decode_header(token).map_err(|_| invalid())?;
    let id = header.kid.and_then(|kid| kid.parse().ok()).ok_or_else(invalid)?;
    let key = ports.keyring.key(id, KeyUse::Token).ok_or_else(invalid)?;
    let key = DecodingKey::from_secret(&key[..]).map_err(|_| invalid())?;
    let claims: Claims =
        jsonwebtoken::decode(token, &key, &validation()).map_err(|_| invalid())?.claims;
    if claims.iss == ISSUER { Ok(claims) } else { Err(invalid()) }
}

/// Signature and algorithm only: times are checked against our own clock.
fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

async fn check_install(
    ports: &Ports,
    oid: Oid,
    name: &ExtensionName,
    generation: u32,
) -> Outcome<()> {
    let key = keys::subscription(oid, name);
    let now = ports.clock.now();
    let stands = |item: &Item| {
        stored::read::<Subscription>(item, &key.sort).is_ok_and(|install| {
            install.generation == generation
                && install.removed_at.is_none_or(|at| now < at.plus(REMOVED_INSTALL_GRACE))
        })
    };
    match stored::recent(ports, &key, stands).await? {
        Some(item) if stands(&item) => Ok(()),
        _ => Err(refused("the subscription of this token was removed or re-keyed")),
    }
}

fn refused(text: &str) -> Fault {
    Fault::new(Code::Unauthenticated, text)
}

fn invalid() -> Fault {
    refused("the token is not valid")
}
