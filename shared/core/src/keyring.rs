//! A ring of root keys, and the keys that derive from them.
//!
//! The text of a ring is JSON: `{"current": 2, "keys": {"1": "<64 hex>", "2": "<64 hex>"}}`. A member `key-N` beside
//! `keys` is the key `N` too: a secret that CloudFormation generates can hold only one generated text at its top level.
//! A text that is nothing but 64 hexadecimal characters is the ring whose one key has the id 1.

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

use crate::json::{self, Object};
use crate::limits::{RING_BYTES_MAX, RING_KEYS_MAX};
use crate::ports::{KeyUse, Keyring, SymmetricKey};

/// Characters of a root key's text.
pub const ROOT_CHARS: usize = 64;

/// The id of a ring's first key.
const FIRST: u32 = 1;

/// Why a text is no ring, or a ring cannot be changed so. Shows nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingFault {
    /// A key of another length or spelling.
    #[error("a root key has {ROOT_CHARS} hexadecimal characters")]
    Malformed,
    /// Neither one key nor the JSON of a ring.
    #[error(
        "a key ring is {ROOT_CHARS} hexadecimal characters, or {{\"current\": N, \"keys\": {{\"N\": \"...\"}}}}"
    )]
    NotRing,
    /// A name of a key that is no number from 1 on, or one that stands twice.
    #[error("the ids of root keys are different whole numbers from 1 on")]
    BadId,
    /// A ring whose current key is not in it.
    #[error("the ring has no key of its current id {0}")]
    NoCurrent(u32),
    /// More keys than [`RING_KEYS_MAX`], or a text larger than [`RING_BYTES_MAX`].
    #[error("a key ring has at most {RING_KEYS_MAX} keys and {RING_BYTES_MAX} bytes")]
    TooLarge,
    /// No key of this id is there.
    #[error("the ring has no key {0}")]
    Unknown(u32),
    /// The current key stays until there is a newer one.
    #[error("key {0} is the current one and stays")]
    Current(u32),
}

/// Root keys by id, and the keys that derive from each with HKDF-SHA256 (RFC 5869). The newest seals and signs, the
/// others still open and verify. The text of any of them is the operator's sign-in secret. `Debug` shows no key.
#[derive(Clone)]
pub struct RootKeys {
    current: u32,
    keys: BTreeMap<u32, Derived>,
}

#[derive(Clone)]
struct Derived {
    root: SymmetricKey,
    seal: SymmetricKey,
    token: SymmetricKey,
    api_key: SymmetricKey,
    operator: [u8; 32],
}

impl Derived {
    fn new(root: SymmetricKey, id: u32) -> Self {
        let key = |name: &str| derive(&root, id, name);
        Self {
            seal: key("seal"),
            token: key("token"),
            api_key: key("api-key"),
            operator: operator_hash(&spell(&root)),
            root,
        }
    }
}

impl RootKeys {
    /// The ring of one key, of id 1.
    pub fn single(root: &[u8; 32]) -> Self {
        let key = Derived::new(Zeroizing::new(*root), FIRST);
        Self { current: FIRST, keys: BTreeMap::from([(FIRST, key)]) }
    }

    /// Reads a ring's text; white space around it is fine. Letters of a key may have either case.
    pub fn parse(text: &str) -> Result<Self, RingFault> {
        if RING_BYTES_MAX < text.len() {
            return Err(RingFault::TooLarge);
        }
        let text = text.trim();
        if !text.starts_with('{') {
            return Ok(Self::single(&*read_root(text)?));
        }
        let ring = Object::parse(text).map_err(|_| RingFault::NotRing)?;
        let mut roots = BTreeMap::new();
        let mut current = None;
        for (name, value) in ring.iter() {
            match (name, name.strip_prefix("key-")) {
                ("current", _) => current = Some(read_id(value)?),
                ("keys", _) => {
                    let keys = Object::parse(value).map_err(|_| RingFault::NotRing)?;
                    keys.iter().try_for_each(|(id, root)| add(&mut roots, id, root))?;
                }
                (_, Some(id)) => add(&mut roots, id, value)?,
                (_, None) => return Err(RingFault::NotRing),
            }
        }
        let current = current.ok_or(RingFault::NotRing)?;
        if !roots.contains_key(&current) {
            return Err(RingFault::NoCurrent(current));
        }
        let keys = roots.into_iter().map(|(id, root)| (id, Derived::new(root, id))).collect();
        Ok(Self { current, keys })
    }

    /// The ring's text, which [`Self::parse`] reads.
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("{{\"current\": {}, \"keys\": {{", self.current));
        text.reserve(self.keys.len() * (ROOT_CHARS + 20));
        for (count, (id, key)) in self.keys.iter().enumerate() {
            text.push_str(if count == 0 { "" } else { ", " });
            text.push_str(&format!("\"{id}\": \""));
            text.push_str(&spell(&key.root));
            text.push('"');
        }
        text.push_str("}}");
        text
    }

    /// The ids of its keys, in order.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.keys.keys().copied()
    }

    /// The text of a root key: 64 hexadecimal characters, in lower case.
    pub fn root_text(&self, id: u32) -> Option<Zeroizing<String>> {
        self.keys.get(&id).map(|key| spell(&key.root))
    }

    /// The same ring with a new key, which nothing uses yet, and its id: one more than the newest has.
    pub fn added(&self, root: &[u8; 32]) -> Result<(Self, u32), RingFault> {
        if RING_KEYS_MAX <= self.keys.len() {
            return Err(RingFault::TooLarge);
        }
        let newest = self.keys.last_key_value().map_or(0, |(id, _)| *id);
        let id = newest.checked_add(1).ok_or(RingFault::BadId)?;
        let mut ring = self.clone();
        ring.keys.insert(id, Derived::new(Zeroizing::new(*root), id));
        Ok((ring, id))
    }

    /// The same ring with another current key.
    pub fn promoted(&self, id: u32) -> Result<Self, RingFault> {
        if !self.keys.contains_key(&id) {
            return Err(RingFault::Unknown(id));
        }
        Ok(Self { current: id, ..self.clone() })
    }

    /// The same ring without an older key: what it sealed cannot be opened any more.
    pub fn without(&self, id: u32) -> Result<Self, RingFault> {
        if id == self.current {
            return Err(RingFault::Current(id));
        }
        let mut ring = self.clone();
        ring.keys.remove(&id).ok_or(RingFault::Unknown(id))?;
        Ok(ring)
    }
}

impl Keyring for RootKeys {
    fn current(&self) -> u32 {
        self.current
    }

    fn key_ids(&self) -> Vec<u32> {
        self.ids().collect()
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        self.keys.get(&id).map(|key| match usage {
            KeyUse::Seal => key.seal.clone(),
            KeyUse::Token => key.token.clone(),
            KeyUse::ApiKey => key.api_key.clone(),
        })
    }

    fn is_operator(&self, secret: &str) -> bool {
        let hash = operator_hash(secret);
        // All are compared, so that the time tells neither which matched nor whether one did.
        let equal = |key: &Derived| verify_slices_are_equal(&hash, &key.operator).is_ok();
        self.keys.values().fold(false, |found, key| found | equal(key))
    }
}

impl fmt::Debug for RootKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u32> = self.ids().collect();
        f.debug_struct("RootKeys").field("current", &self.current).field("ids", &ids).finish()
    }
}

/// The hash of an operator's secret. A text that could be a root key is the same in either case of its letters.
pub fn operator_hash(secret: &str) -> [u8; 32] {
    let is_hex = secret.len() == ROOT_CHARS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut text = Zeroizing::new(secret.to_owned());
    if is_hex {
        text.make_ascii_lowercase();
    }
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}

fn derive(root: &[u8; 32], id: u32, name: &str) -> SymmetricKey {
    let id = id.to_be_bytes();
    let info: &[&[u8]] = &[b"annex/key/", &id, b"/", name.as_bytes()];
    let mut out = Zeroizing::new([0; 32]);
    Salt::new(HKDF_SHA256, b"annex")
        .extract(root)
        .expand(info, HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut out[..]))
        .expect("HKDF gives as many bytes as its hash has");
    out
}

fn spell(root: &[u8; 32]) -> Zeroizing<String> {
    Zeroizing::new(hex::encode(root))
}

fn read_root(text: &str) -> Result<SymmetricKey, RingFault> {
    let mut root = Zeroizing::new([0; ROOT_CHARS / 2]);
    hex::decode_to_slice(text, &mut root[..]).map_err(|_| RingFault::Malformed)?;
    Ok(root)
}

/// An id, spelled in one way only: no sign, no zero before it.
fn read_id(text: &str) -> Result<u32, RingFault> {
    let id: u32 = text.parse().map_err(|_| RingFault::BadId)?;
    if id == 0 || id.to_string() != text { Err(RingFault::BadId) } else { Ok(id) }
}

fn add(roots: &mut BTreeMap<u32, SymmetricKey>, id: &str, value: &str) -> Result<(), RingFault> {
    let text = Zeroizing::new(json::text(value).ok_or(RingFault::Malformed)?.into_owned());
    if roots.insert(read_id(id)?, read_root(&text)?).is_some() {
        return Err(RingFault::BadId);
    }
    if RING_KEYS_MAX < roots.len() { Err(RingFault::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const TWO: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

    fn both() -> RootKeys {
        RootKeys::parse(&format!(r#"{{"current":2,"keys":{{"1":"{ONE}","2":"{TWO}"}}}}"#)).unwrap()
    }

    #[test]
    fn keys_are_the_same_for_a_root_and_different_for_each_use_and_id() {
        let keys = |ring: &RootKeys, id| {
            [KeyUse::Seal, KeyUse::Token, KeyUse::ApiKey].map(|usage| ring.key(id, usage).unwrap())
        };
        let one = keys(&RootKeys::parse(ONE).unwrap(), 1);
        let [seal, token, api_key] = one.clone();
        assert!(seal != token && token != api_key && seal != api_key);
        assert_eq!(keys(&both(), 1), one);
        assert_ne!(keys(&both(), 2), one);
        assert_ne!(derive(&[7; 32], 1, "seal"), derive(&[7; 32], 2, "seal"));
        assert_eq!((both().key(0, KeyUse::Seal), both().key(3, KeyUse::Seal)), (None, None));
    }

    #[test]
    fn a_derived_key_is_pinned_so_that_sealed_values_stay_readable() {
        let key = both().key(1, KeyUse::Seal).unwrap();
        assert_eq!(hex::encode(&key[..]), PINNED);
    }

    /// From another implementation of RFC 5869.
    const PINNED: &str = "141cf40d0ac0b5653efb818ae93cb0fe85ddbfd08dc68bc448734c45efcf4b29";

    #[test]
    fn a_ring_is_read_from_each_of_its_forms() {
        let text = |ring: RootKeys| ring.text().to_string();
        let single = format!(r#"{{"current": 1, "keys": {{"1": "{ONE}"}}}}"#);
        let double = format!(r#"{{"current": 2, "keys": {{"1": "{ONE}", "2": "{TWO}"}}}}"#);
        for (form, expected) in [
            (ONE.to_owned(), &single),
            (format!(" {}\n", ONE.to_uppercase()), &single),
            (single.clone(), &single),
            (format!(r#"{{"current":1,"key-1":"{ONE}"}}"#), &single),
            (format!(r#"{{"key-2":"{TWO}","keys":{{"1":"{ONE}"}},"current":2}}"#), &double),
            (double.clone(), &double),
        ] {
            assert_eq!(&text(RootKeys::parse(&form).unwrap()), expected, "{form}");
        }
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        let short = &ONE[1..];
        let many: Vec<String> = (1..=101).map(|id| format!(r#""{id}":"{ONE}""#)).collect();
        for (text, fault) in [
            (String::new(), RingFault::Malformed),
            (short.to_owned(), RingFault::Malformed),
            (format!("{ONE}0"), RingFault::Malformed),
            (ONE.replace("0f", "0g"), RingFault::Malformed),
            ("{".to_owned(), RingFault::NotRing),
            ("{}".to_owned(), RingFault::NotRing),
            (format!(r#"{{"key-1":"{ONE}"}}"#), RingFault::NotRing),
            (format!(r#"{{"current":1,"key-1":"{ONE}","x":1}}"#), RingFault::NotRing),
            (format!(r#"{{"current":1,"current":1,"key-1":"{ONE}"}}"#), RingFault::NotRing),
            (r#"{"current":1,"keys":[]}"#.to_owned(), RingFault::NotRing),
            (format!(r#"{{"current":1,"key-1":"{short}"}}"#), RingFault::Malformed),
            (r#"{"current":1,"key-1":7}"#.to_owned(), RingFault::Malformed),
            (format!(r#"{{"current":2,"key-1":"{ONE}"}}"#), RingFault::NoCurrent(2)),
            (format!(r#"{{"current":"1","key-1":"{ONE}"}}"#), RingFault::BadId),
            (format!(r#"{{"current":0,"key-0":"{ONE}"}}"#), RingFault::BadId),
            (format!(r#"{{"current":1,"key-01":"{ONE}"}}"#), RingFault::BadId),
            (format!(r#"{{"current":1,"key-4294967296":"{ONE}"}}"#), RingFault::BadId),
            (
                format!(r#"{{"current":1,"key-1":"{ONE}","keys":{{"1":"{ONE}"}}}}"#),
                RingFault::BadId,
            ),
            (format!(r#"{{"current":1,"keys":{{{}}}}}"#, many.join(",")), RingFault::TooLarge),
            (" ".repeat(RING_BYTES_MAX + 1), RingFault::TooLarge),
        ] {
            assert_eq!(RootKeys::parse(&text).map(|_| ()), Err(fault), "{text:.200}");
        }
        let most = format!(r#"{{"current":1,"keys":{{{}}}}}"#, many[..100].join(","));
        assert_eq!(RootKeys::parse(&most).unwrap().ids().count(), RING_KEYS_MAX);
    }

    #[test]
    fn a_rotated_ring_seals_with_the_new_key_and_still_has_the_old() {
        let (added, id) = RootKeys::parse(ONE).unwrap().added(&[0xff; 32]).unwrap();
        assert_eq!((added.current(), id), (1, 2));
        let ring = added.promoted(2).unwrap();
        assert_eq!(ring.text(), both().text());
        assert_eq!(ring.promoted(3).map(|_| ()), Err(RingFault::Unknown(3)));
        assert_eq!((ring.current(), ring.ids().collect::<Vec<_>>()), (2, vec![1, 2]));
        assert_eq!(ring.root_text(2).unwrap().as_str(), TWO);
        assert_eq!(
            ring.without(1).unwrap().text().as_str(),
            format!(r#"{{"current": 2, "keys": {{"2": "{TWO}"}}}}"#)
        );
        assert_eq!(ring.without(2).map(|_| ()), Err(RingFault::Current(2)));
        assert_eq!(ring.without(3).map(|_| ()), Err(RingFault::Unknown(3)));
        let mut full = ring;
        for _ in 2..RING_KEYS_MAX {
            full = full.added(&[1; 32]).unwrap().0;
        }
        assert_eq!(full.added(&[1; 32]).map(|_| ()), Err(RingFault::TooLarge));
    }

    #[test]
    fn the_operator_is_known_by_the_text_of_any_root_key() {
        for secret in [ONE, TWO, &ONE.to_uppercase()] {
            assert!(both().is_operator(secret));
        }
        for other in ["", &ONE[1..], &format!("{ONE}x"), &"0".repeat(64)] {
            assert!(!both().is_operator(other));
        }
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", both()), "RootKeys { current: 2, ids: [1, 2] }");
    }
}
