//! The host functions `hmac` and `hmac_verify` (AL-403 to AL-420).

use annex_core::json;
use annex_core::strict::{self, Fields, Value};

use super::{Call, CallFault};
use crate::hmac::{self, HmacAlgorithm, KeyEncoding, SignatureEncoding};
use crate::request::{self, KeySource, REQUEST_BYTES_MAX};

/// Characters of a signature that is compared: far more than any has.
const SIGNATURE_CHARS_MAX: usize = 4_096;

struct Keyed {
    algorithm: HmacAlgorithm,
    key: KeySource,
    key_encoding: KeyEncoding,
    data: Vec<u8>,
    encoding: SignatureEncoding,
}

impl Keyed {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let algorithm = fields.required("algorithm", request::hash);
        let key = fields.required("key", request::key);
        let key_encoding = fields.optional("keyEncoding", request::key_encoding);
        let data = fields.required("data", data);
        let encoding = fields.optional("encoding", request::signature_encoding);
        Some(Self {
            algorithm: algorithm?,
            key: key?,
            key_encoding: key_encoding?.unwrap_or_default(),
            data: data?,
            encoding: encoding?.unwrap_or_default(),
        })
    }
}

/// `{ "text": … }` as UTF-8, or `{ "base64": … }` (AL-404).
fn data(value: Value<'_>) -> Option<Vec<u8>> {
    value.object(|data| {
        let text = data.optional("text", |it| it.any_text());
        let base64 = data.optional("base64", request::base64);
        match (text?, base64?) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(bytes)) => Some(bytes),
            _ => {
                data.problem_here("expected either text or base64");
                None
            }
        }
    })
}

impl Call {
    pub(super) fn hmac_of(&self, json: &[u8]) -> Result<String, CallFault> {
        let keyed = self.keyed(json, Keyed::read)?;
        let key = self.key_bytes(&keyed)?;
        let signature = hmac::sign(keyed.algorithm, &key, &keyed.data, keyed.encoding);
        Ok(format!("{{\"signature\":{}}}", json::quote(&signature)))
    }

    pub(super) fn hmac_verify_of(&self, json: &[u8]) -> Result<String, CallFault> {
        let (keyed, signature) = self.keyed(json, |fields| {
            let keyed = Keyed::read(fields);
            let signature = fields.required("signature", |it| it.text(0..=SIGNATURE_CHARS_MAX));
            Some((keyed?, signature?))
        })?;
        let key = self.key_bytes(&keyed)?;
        let Keyed { algorithm, ref data, encoding, .. } = keyed;
        let valid = hmac::verify(algorithm, &key, data, encoding, &signature);
        Ok(format!("{{\"valid\":{valid}}}"))
    }

    fn keyed<T>(
        &self,
        json: &[u8],
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, CallFault> {
        self.check_running()?;
        if REQUEST_BYTES_MAX < json.len() {
            let text = format!("invalid request: request: longer than {REQUEST_BYTES_MAX} bytes");
            return Err(CallFault::refused(text));
        }
        Ok(strict::read(json, read)?)
    }

    fn key_bytes(&self, keyed: &Keyed) -> Result<zeroize::Zeroizing<Vec<u8>>, CallFault> {
        let text = self.key(&keyed.key)?;
        hmac::key_bytes(text, keyed.key_encoding)
            .map_err(|fault| CallFault::refused(fault.to_string()))
    }
}
