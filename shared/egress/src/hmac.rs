//! HMAC signatures: how a key's text becomes bytes, how a signature is written, and how one is checked (AL-403 to
//! AL-419).

use aws_lc_rs::{constant_time, hmac};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use zeroize::Zeroizing;

/// What a Standard Webhooks secret begins with (AL-410).
const STANDARD_WEBHOOKS_PREFIX: &str = "whsec_";

// Bits behind the last byte are not looked at: secrets of published libraries have some that are set.
const LENIENT: GeneralPurposeConfig =
    base64::engine::general_purpose::NO_PAD.with_decode_allow_trailing_bits(true);
const STANDARD_LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE_LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The hash under an HMAC (AL-387, AL-406).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// `sha1`
    Sha1,
    /// `sha256`
    Sha256,
    /// `sha512`
    Sha512,
}

impl HmacAlgorithm {
    fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

/// How a key's text becomes its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyEncoding {
    /// `utf8`: the text as it is (AL-408).
    #[default]
    Utf8,
    /// `base64`: standard or URL-safe, padded or not; a leading `whsec_` is dropped first (AL-409, AL-410).
    Base64,
    /// `hex`, in either case (AL-411).
    Hex,
}

/// How a signature is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignatureEncoding {
    /// `hex`, in lower case.
    #[default]
    Hex,
    /// `base64`, of the standard alphabet, padded.
    Base64,
}

/// A key whose text does not decode. It never holds the key (AL-414).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// AL-412.
    #[error("the key is not base64")]
    NotBase64,
    /// AL-413.
    #[error("the key is not hex")]
    NotHex,
}

/// The bytes of a key.
pub fn key_bytes(text: &str, encoding: KeyEncoding) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
    match encoding {
        KeyEncoding::Utf8 => Ok(Zeroizing::new(text.as_bytes().to_vec())),
        KeyEncoding::Base64 => {
            let text = text.strip_prefix(STANDARD_WEBHOOKS_PREFIX).unwrap_or(text);
            decode_base64(text).map(Zeroizing::new).ok_or(KeyFault::NotBase64)
        }
        KeyEncoding::Hex => {
            let mut key = Zeroizing::new(vec![0; text.len() / 2]);
            hex::decode_to_slice(text, &mut key).map_err(|_no_digits| KeyFault::NotHex)?;
            Ok(key)
        }
    }
}

/// The bytes of a base64 text: of the standard alphabet or the URL-safe one, padded as RFC 4648 asks or not at all, without
/// white space. `None` for any other text.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let unpadded = match text.strip_suffix('=') {
        Some(_) if !text.len().is_multiple_of(4) => return None,
        Some(rest) => rest.strip_suffix('=').unwrap_or(rest),
        None => text,
    };
    let engine = if unpadded.contains(['-', '_']) { URL_SAFE_LENIENT } else { STANDARD_LENIENT };
    engine.decode(unpadded).ok()
}

/// An HMAC whose data comes in pieces, so that a large body is not copied.
pub(crate) struct Hmac(hmac::Context);

impl Hmac {
    /// Over nothing yet.
    pub(crate) fn new(algorithm: HmacAlgorithm, key: &[u8]) -> Self {
        Self(hmac::Context::with_key(&hmac::Key::new(algorithm.algorithm(), key)))
    }

    /// Takes the next piece.
    pub(crate) fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The signature of all that was taken.
    pub(crate) fn finish(self, encoding: SignatureEncoding) -> String {
        let tag = self.0.sign();
        match encoding {
            SignatureEncoding::Hex => hex::encode(tag),
            SignatureEncoding::Base64 => STANDARD.encode(tag),
        }
    }
}

/// The signature of `data` under a key's bytes (AL-403).
pub fn sign(
    algorithm: HmacAlgorithm,
    key: &[u8],
    data: &[u8],
    encoding: SignatureEncoding,
) -> String {
    let mut hmac = Hmac::new(algorithm, key);
    hmac.update(data);
    hmac.finish(encoding)
}

/// Whether `signature` is the one of `data`, in constant time (AL-415, AL-416): hex in any case (AL-417), base64 exactly
/// as [`sign`] writes it (AL-418). A text of another length or form is just not valid (AL-419).
pub fn verify(
    algorithm: HmacAlgorithm,
    key: &[u8],
    data: &[u8],
    encoding: SignatureEncoding,
    signature: &str,
) -> bool {
    is_same(&sign(algorithm, key, data, encoding), signature, encoding)
}

/// Whether a signature is the one that [`sign`] made, in constant time.
pub(crate) fn is_same(expected: &str, signature: &str, encoding: SignatureEncoding) -> bool {
    // The length says nothing of the signature; a longer text is not even copied.
    if signature.len() != expected.len() {
        return false;
    }
    let is_equal = |signature: &str| {
        constant_time::verify_slices_are_equal(expected.as_bytes(), signature.as_bytes()).is_ok()
    };
    match encoding {
        SignatureEncoding::Hex => is_equal(&signature.to_ascii_lowercase()),
        SignatureEncoding::Base64 => is_equal(signature),
    }
}

#[cfg(test)]
mod tests;
