//! Sealing at rest: authenticated encryption, bound to where a value belongs.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::keys::digest_bytes;
use crate::ports::{Ids, KeyUse, Keyring, Outage, SymmetricKey, newest};

/// A sealed value: `<key id>.<base64 of nonce and ciphertext>`. It shows nothing, also in `Debug`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

/// Seals `plain` so that it opens only under the same `binding` (tenant, install, name, …), each part a field of it.
///
/// AES-256-GCM-SIV (RFC 8452): a repeated nonce gives away at most that two values are equal.
pub fn seal(keyring: &dyn Keyring, ids: &dyn Ids, binding: &[&str], plain: &[u8]) -> Sealed {
    let (id, key) = newest(keyring, KeyUse::Seal);
    let key = cipher(&key);
    let random = ids.secret();
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&random[..NONCE_LEN]);
    let mut bytes = plain.to_vec();
    key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(bound(binding)),
        &mut bytes,
    )
    .expect("a value of less than 64 GiB can be sealed");
    let mut out = nonce.to_vec();
    out.append(&mut bytes);
    Sealed(format!("{id}.{}", BASE64.encode(out)))
}

/// Opens what [`seal`] made under the same binding.
pub fn open(
    keyring: &dyn Keyring,
    binding: &[&str],
    sealed: &Sealed,
) -> Result<Zeroizing<Vec<u8>>, Outage> {
    let broken =
        || Outage::new("a sealed value does not open: it was changed, moved, or its key is gone");
    let (id, text) = sealed.0.split_once('.').ok_or_else(broken)?;
    let id = id.parse().map_err(|_| broken())?;
    let key = cipher(&keyring.key(id, KeyUse::Seal).ok_or_else(broken)?);
    let mut bytes = Zeroizing::new(BASE64.decode(text).map_err(|_| broken())?);
    if bytes.len() < NONCE_LEN {
        return Err(broken());
    }
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&bytes[..NONCE_LEN]);
    let plain = key
        .open_within(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound(binding)),
            bytes.as_mut_slice(),
            NONCE_LEN..,
        )
        .map_err(|_| broken())?
        .len();
    bytes.truncate(plain);
    Ok(bytes)
}

/// Opens a sealed text.
pub fn open_text(
    keyring: &dyn Keyring,
    binding: &[&str],
    sealed: &Sealed,
) -> Result<Zeroizing<String>, Outage> {
    let bytes = open(keyring, binding, sealed)?;
    String::from_utf8(bytes.to_vec())
        .map(Zeroizing::new)
        .map_err(|_| Outage::new("a sealed text is not UTF-8"))
}

fn cipher(key: &SymmetricKey) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, &key[..]).expect("a key of 32 bytes"))
}

impl Sealed {
    /// The id of the key that sealed it; `None` where it is broken.
    pub fn key_id(&self) -> Option<u32> {
        self.0.split_once('.')?.0.parse().ok()
    }
}

/// Seals anew, with the current key, what another one sealed. `None`: the current key sealed it.
pub fn reseal(
    keyring: &dyn Keyring,
    ids: &dyn Ids,
    binding: &[&str],
    sealed: &Sealed,
) -> Result<Option<Sealed>, Outage> {
    if sealed.key_id() == Some(keyring.current()) {
        return Ok(None);
    }
    let plain = open(keyring, binding, sealed)?;
    Ok(Some(seal(keyring, ids, binding, &plain)))
}

fn bound(binding: &[&str]) -> [u8; 32] {
    let parts: Vec<&[u8]> = binding.iter().map(|part| part.as_bytes()).collect();
    digest_bytes(&parts)
}
