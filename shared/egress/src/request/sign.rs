//! The signature that a request asks for, and keys by name or by text (AL-385 to AL-399).

use annex_core::strict::{Fields, Value};

use crate::hmac::{HmacAlgorithm, KeyEncoding, SignatureEncoding};
use crate::sign::check_template;

/// Characters of a secret's name.
const SECRET_NAME_CHARS_MAX: usize = 128;

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A secret of the install, by its name (AL-081).
    Secret(String),
    /// A text that the module wrote.
    Text(String),
}

/// A signature over the final request, as it was asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct SignRequest {
    /// The header that it is put in, as it was written.
    pub header: String,
    /// The hash.
    pub algorithm: HmacAlgorithm,
    /// The key.
    pub key: KeySource,
    /// How the key's text becomes bytes.
    pub key_encoding: KeyEncoding,
    /// How the signature is written.
    pub encoding: SignatureEncoding,
    /// What is hashed before the body, unfilled.
    pub prefix: Option<String>,
    /// What is hashed behind the body, unfilled.
    pub suffix: Option<String>,
}

pub(super) fn read(sign: Value<'_>) -> Option<SignRequest> {
    sign.object(|sign| {
        let header = sign.required("header", |it| it.any_text());
        let algorithm = sign.required("algorithm", hash);
        let key = sign.required("key", key);
        let key_encoding = sign.optional("keyEncoding", key_encoding);
        let encoding = sign.optional("encoding", signature_encoding);
        let prefix = sign.optional("prefix", template);
        let suffix = sign.optional("suffix", template);
        Some(SignRequest {
            header: header?,
            algorithm: algorithm?,
            key: key?,
            key_encoding: key_encoding?.unwrap_or_default(),
            encoding: encoding?.unwrap_or_default(),
            prefix: prefix?,
            suffix: suffix?,
        })
    })
}

fn template(value: Value<'_>) -> Option<String> {
    let text = annex_core::json::text(value.raw()).map(std::borrow::Cow::into_owned);
    match text.map(|text| check_template(&text).map(|()| text)) {
        Some(Ok(text)) => Some(text),
        Some(Err(problem)) => value.problem(&problem),
        None => value.problem("expected a string"),
    }
}

/// `sha1`, `sha256` or `sha512` (AL-387, AL-406).
pub(crate) fn hash(value: Value<'_>) -> Option<HmacAlgorithm> {
    use HmacAlgorithm::{Sha1, Sha256, Sha512};
    value.word(&[("sha1", Sha1), ("sha256", Sha256), ("sha512", Sha512)])
}

/// `utf8`, `base64` or `hex`.
pub(crate) fn key_encoding(value: Value<'_>) -> Option<KeyEncoding> {
    use KeyEncoding::{Base64, Hex, Utf8};
    value.word(&[("utf8", Utf8), ("base64", Base64), ("hex", Hex)])
}

/// `hex` or `base64`.
pub(crate) fn signature_encoding(value: Value<'_>) -> Option<SignatureEncoding> {
    value.word(&[("hex", SignatureEncoding::Hex), ("base64", SignatureEncoding::Base64)])
}

/// `{ "secret": name }` or `{ "text": … }`.
pub(crate) fn key(value: Value<'_>) -> Option<KeySource> {
    value.object(|key: &mut Fields<'_>| {
        let secret = key.optional("secret", |it| it.text(1..=SECRET_NAME_CHARS_MAX));
        let text = key.optional("text", |it| it.any_text());
        match (secret?, text?) {
            (Some(name), None) => Some(KeySource::Secret(name)),
            (None, Some(text)) => Some(KeySource::Text(text)),
            _ => {
                key.problem_here("expected either secret or text");
                None
            }
        }
    })
}
