//! API keys: shown once when they are made, stored as a keyed hash.
//!
//! A key is a UUID, since several real clients refuse anything else. Its first 16 bits name the key of the ring that
//! hashes it, so that one look-up is enough after a rotation; 106 bits are random.

use aws_lc_rs::hmac;
use uuid::Uuid;

use super::read_name;
use crate::auth::{Caller, permission};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::API_KEYS_PER_ORG_MAX;
use crate::model::ApiKey;
use crate::ports::{Commit, Committed, KeyUse, Keyring, Outage, Ports, When, Write};
use crate::stored;

/// An API key that was just made: the only time it is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct NewApiKey {
    /// The key.
    pub key: String,
    /// What names it from now on.
    pub hash: String,
}

/// Makes an API key with permissions that `caller` holds.
pub async fn create_api_key(
    ports: &Ports,
    oid: Oid,
    caller: &Caller,
    name: &str,
    permissions: &[&str],
) -> Outcome<NewApiKey> {
    let permissions = permission::read_list(permissions.iter().copied())?;
    if permissions.is_empty() {
        return Err(Fault::new(Code::BadRequest, "perms is empty: a key needs a permission"));
    }
    if let Some(missing) = permissions.iter().find(|word| !caller.holds(word)) {
        return Err(Fault::new(
            Code::Forbidden,
            format!("nobody grants what they do not hold: {missing}"),
        ));
    }
    let entry = ApiKey {
        name: read_name(name)?,
        permissions,
        created_at: ports.clock.now(),
        created_by: caller.ident.clone(),
    };
    if API_KEYS_PER_ORG_MAX <= list_api_keys(ports, oid).await?.len() {
        return Err(Fault::new(
            Code::BadRequest,
            format!("an organization has at most {API_KEYS_PER_ORG_MAX} API keys"),
        ));
    }
    let (key, hash) = make(ports)?;
    let put = |key, data| Write::Put { key, data, expires_at: None, when: When::Absent };
    let writes = vec![
        put(keys::api_key(oid, &hash), stored::bytes(&entry)),
        put(keys::api_key_owner(&hash), stored::bytes(&oid)),
    ];
    match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
        Committed::Done => Ok(NewApiKey { key: key.to_string(), hash }),
        Committed::Lost { .. } => Err(Fault::new(Code::Conflict, "this key exists already")),
    }
}

/// The API keys of an organization, with their hashes.
pub async fn list_api_keys(ports: &Ports, oid: Oid) -> Outcome<Vec<(String, ApiKey)>> {
    stored::all(ports, &keys::settings(oid), keys::API_KEYS).await
}

/// Deletes an API key, and with it every token that was made with it.
pub async fn delete_api_key(ports: &Ports, oid: Oid, hash: &str) -> Outcome<()> {
    let missing = || Fault::new(Code::NotFound, "there is no such API key");
    if !is_hash(hash) {
        return Err(missing());
    }
    let writes = vec![
        Write::Delete { key: keys::api_key(oid, hash), when: When::Present },
        Write::Delete { key: keys::api_key_owner(hash), when: When::Always },
    ];
    match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
        Committed::Done => Ok(()),
        Committed::Lost { .. } => Err(missing()),
    }
}

/// The API key that a secret is, with its organization and its hash; only in `oid` where that is given.
pub async fn find_api_key(
    ports: &Ports,
    oid: Option<Oid>,
    secret: &str,
) -> Outcome<Option<(Oid, String, ApiKey)>> {
    let Some(hash) = hash(ports.keyring.as_ref(), secret) else {
        return Ok(None);
    };
    let owner = match oid {
        Some(oid) => Some(oid),
        None => stored::load(ports, &keys::api_key_owner(&hash)).await?.map(|(oid, _)| oid),
    };
    let Some(owner) = owner else {
        return Ok(None);
    };
    let found = stored::load(ports, &keys::api_key(owner, &hash)).await?;
    Ok(found.map(|(key, _)| (owner, hash, key)))
}

fn make(ports: &Ports) -> Result<(Uuid, String), Outage> {
    let id = ports.keyring.current();
    let id = u16::try_from(id).map_err(|_| Outage::new("the ring has more than 65,535 keys"))?;
    let random = ports.ids.secret();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&random[..16]);
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    let key = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    let hash = hash(ports.keyring.as_ref(), &key.to_string());
    Ok((key, hash.expect("the current key is in the ring")))
}

/// The keyed hash of an API key; `None` for what cannot be one.
fn hash(keyring: &dyn Keyring, secret: &str) -> Option<String> {
    let key = Uuid::try_parse(secret).ok()?;
    let id = u16::from_be_bytes([key.as_bytes()[0], key.as_bytes()[1]]);
    let ring_key = keyring.key(u32::from(id), KeyUse::ApiKey)?;
    let ring_key = hmac::Key::new(hmac::HMAC_SHA256, &ring_key[..]);
    Some(hex::encode(hmac::sign(&ring_key, key.as_bytes()).as_ref()))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::ports::SymmetricKey;

    struct Ring;

    impl Keyring for Ring {
        fn current(&self) -> u32 {
            2
        }
        fn key(&self, id: u32, _: KeyUse) -> Option<SymmetricKey> {
            (1..=2).contains(&id).then(|| Zeroizing::new([id as u8; 32]))
        }
        fn is_operator(&self, _: &str) -> bool {
            false
        }
    }

    #[test]
    fn a_key_is_hashed_with_the_key_of_the_ring_that_it_names_in_any_spelling() {
        let hash = |text: &str| hash(&Ring, text);
        let one = hash("0001aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee");
        assert!(one.as_deref().is_some_and(is_hash));
        assert_eq!(hash("0001AAAABBBB8CCC8DDDEEEEEEEEEEEE"), one);
        let two = hash("0002aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee");
        assert!(two.is_some() && two != one);
    }

    #[test]
    fn what_cannot_be_a_key_has_no_hash() {
        for text in [
            "",
            "0003aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee",
            "0000aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee",
            "0001aaaa-bbbb-8ccc-8ddd-eeeeeeeeeee",
            "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        ] {
            assert_eq!(hash(&Ring, text), None, "{text}");
        }
    }
}
