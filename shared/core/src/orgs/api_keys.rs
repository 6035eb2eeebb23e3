//! API keys: shown once when they are made, stored as a keyed hash.
//!
//! A key is a UUID, since several real clients refuse anything else. Its first 16 bits name the key of the ring that
//! hashes it, so that one look-up is enough after a rotation; 106 bits are random. That first hash names it for good: in
//! listings, and in the tokens that it made.

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::read_name;
use crate::auth::{Caller, permission};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::API_KEYS_PER_ORG_MAX;
use crate::model::{ApiKey, Rehash};
use crate::ports::{Commit, Committed, Key, KeyUse, Keyring, Outage, Ports, When, Write};
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
    let mut entry = ApiKey {
        name: read_name(name)?,
        permissions,
        created_at: ports.clock.now(),
        created_by: caller.ident.clone(),
        hashed_with: 0,
        rehashed: None,
    };
    if API_KEYS_PER_ORG_MAX <= list_api_keys(ports, oid).await?.len() {
        return Err(Fault::new(
            Code::BadRequest,
            format!("an organization has at most {API_KEYS_PER_ORG_MAX} API keys"),
        ));
    }
    let (key, ring_key, hash) = make(ports)?;
    entry.hashed_with = ring_key;
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
    loop {
        let (entry, item): (ApiKey, _) =
            stored::load(ports, &keys::api_key(oid, hash)).await?.ok_or_else(missing)?;
        let delete = |key| Write::Delete { key, when: When::Always };
        let when = When::Revision(item.revision);
        let mut writes = vec![Write::Delete { key: keys::api_key(oid, hash), when }];
        writes.extend(names(hash, Some(&entry)).map(delete));
        if ports.store.commit(Commit { writes, ..Commit::default() }).await? == Committed::Done {
            return Ok(());
        }
        // It was used and hashed anew, or deleted, meanwhile: look again.
    }
}

/// The entries of the index by which an API key is found.
pub(crate) fn names<'a>(
    hash: &'a str,
    entry: Option<&'a ApiKey>,
) -> impl Iterator<Item = Key> + 'a {
    let newer = entry.and_then(|entry| entry.rehashed.as_ref()).map(|rehash| &*rehash.hash);
    [hash].into_iter().chain(newer).map(keys::api_key_owner)
}

/// An API key that was found by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundApiKey {
    /// Its organization.
    pub oid: Oid,
    /// What names it: its first hash.
    pub hash: String,
    /// The key.
    pub key: ApiKey,
    /// Revision of its item.
    revision: u64,
}

/// What the index of API keys says of a hash.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Owner {
    /// It is the first hash of a key of this organization.
    First(Oid),
    /// It is a newer hash of the key that `hash` names.
    Newer { oid: Oid, hash: String },
}

/// The API key that a secret is; only in `oid` where that is given.
///
/// It is found under the key of the ring that its text names. Once that one is retired, it is found under the newer one
/// that hashed it when it was last used.
pub async fn find_api_key(
    ports: &Ports,
    oid: Option<Oid>,
    secret: &str,
) -> Outcome<Option<FoundApiKey>> {
    let Some(key) = read(secret) else { return Ok(None) };
    let ring = ports.keyring.as_ref();
    let (owner, hash) = match (hash(ring, named(key), key), oid) {
        (Some(hash), Some(oid)) => (oid, hash),
        (Some(hash), None) => match stored::load(ports, &keys::api_key_owner(&hash)).await? {
            Some((Owner::First(owner), _)) => (owner, hash),
            _ => return Ok(None),
        },
        (None, _) => match newer(ports, key).await? {
            Some((owner, hash)) if oid.is_none_or(|oid| oid == owner) => (owner, hash),
            _ => return Ok(None),
        },
    };
    let found = stored::load(ports, &keys::api_key(owner, &hash)).await?;
    Ok(found.map(|(key, item)| FoundApiKey { oid: owner, hash, key, revision: item.revision }))
}

/// Looks under the keys of the ring that the text does not name: the current one first.
async fn newer(ports: &Ports, key: Uuid) -> Outcome<Option<(Oid, String)>> {
    let ring = ports.keyring.as_ref();
    let current = ring.current();
    let others = ring.key_ids().into_iter().rev().filter(|id| *id != current);
    for id in [current].into_iter().chain(others) {
        let Some(hash) = hash(ring, id, key) else { continue };
        if let Some((Owner::Newer { oid, hash }, _)) =
            stored::load(ports, &keys::api_key_owner(&hash)).await?
        {
            return Ok(Some((oid, hash)));
        }
    }
    Ok(None)
}

/// Hashes an API key that was just used under the current key of the ring as well, unless it is found by that already.
/// Where the store cannot be written, that waits for the next use.
pub(crate) async fn rehash(ports: &Ports, secret: &str, found: &FoundApiKey) {
    let current = ports.keyring.current();
    if [found.key.hashed_with, found.key.found_with()].contains(&current) {
        return;
    }
    let Some(new) = read(secret).and_then(|key| hash(ports.keyring.as_ref(), current, key)) else {
        return;
    };
    let FoundApiKey { oid, hash, key, revision } = found.clone();
    let before = key.rehashed.as_ref().map(|rehash| keys::api_key_owner(&rehash.hash));
    let owner = Owner::Newer { oid, hash: hash.clone() };
    let put = |key, data, when| Write::Put { key, data, expires_at: None, when };
    let entry = ApiKey { rehashed: Some(Rehash { with: current, hash: new.clone() }), ..key };
    let mut writes = vec![
        put(keys::api_key(oid, &hash), stored::bytes(&entry), When::Revision(revision)),
        put(keys::api_key_owner(&new), stored::bytes(&owner), When::Always),
    ];
    writes.extend(before.map(|key| Write::Delete { key, when: When::Always }));
    if let Err(error) = ports.store.commit(Commit { writes, ..Commit::default() }).await {
        tracing::warn!(source = ?error.source, "an API key could not be hashed anew: {error}");
    }
}

fn make(ports: &Ports) -> Result<(Uuid, u32, String), Outage> {
    let ring = ports.keyring.as_ref();
    let random = ports.ids.secret();
    loop {
        let id = ring.current();
        let short =
            u16::try_from(id).map_err(|_| Outage::new("the ring has more than 65,535 keys"))?;
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&random[..16]);
        bytes[..2].copy_from_slice(&short.to_be_bytes());
        let key = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        // A ring always has its current key; that there is none means that it was replaced just now.
        if let Some(hash) = hash(ring, id, key) {
            return Ok((key, id, hash));
        }
    }
}

/// The key that a text is; `None` for what cannot be one.
fn read(secret: &str) -> Option<Uuid> {
    Uuid::try_parse(secret).ok()
}

/// The key of the ring that an API key names.
fn named(key: Uuid) -> u32 {
    u32::from(u16::from_be_bytes([key.as_bytes()[0], key.as_bytes()[1]]))
}

/// The keyed hash of an API key under a key of the ring; `None` where the ring has no such key.
fn hash(keyring: &dyn Keyring, id: u32, key: Uuid) -> Option<String> {
    let ring_key = keyring.key(id, KeyUse::ApiKey)?;
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
        fn key_ids(&self) -> Vec<u32> {
            vec![1, 2]
        }
        fn is_operator(&self, _: &str) -> bool {
            false
        }
    }

    fn hash_of(text: &str) -> Option<String> {
        read(text).and_then(|key| hash(&Ring, named(key), key))
    }

    #[test]
    fn a_key_is_hashed_with_the_key_of_the_ring_that_it_names_in_any_spelling() {
        let one = hash_of("0001aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee");
        assert!(one.as_deref().is_some_and(is_hash));
        assert_eq!(hash_of("0001AAAABBBB8CCC8DDDEEEEEEEEEEEE"), one);
        let two = hash_of("0002aaaa-bbbb-8ccc-8ddd-eeeeeeeeeeee");
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
            assert_eq!(hash_of(text), None, "{text}");
        }
    }
}
