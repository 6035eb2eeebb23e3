//! Payloads of calls: small ones stay in the record, large ones go to the blobs, sensitive ones are sealed.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::ids::{ExtensionName, Oid};
use crate::limits;
use crate::ports::{Outage, Ports};
use crate::seal::{self, Sealed};
use crate::stored;
use crate::time::Timestamp;

/// A JSON text as a record or a message carries it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Payload {
    /// As it is.
    Json(Box<RawValue>),
    /// In the blobs, under this key.
    Blob(String),
    /// Sealed: the state of a continuation, into which extensions put what they like.
    Sealed(Sealed),
    /// Sealed, in the blobs.
    SealedBlob(String),
}

impl Payload {
    /// A JSON text that may be shown to its tenant.
    pub(super) async fn plain(
        ports: &Ports,
        json: String,
        until: Timestamp,
    ) -> Result<Self, Outage> {
        if json.len() <= limits::INLINE_BYTES_MAX {
            return Ok(Self::Json(raw(&json)));
        }
        let key = format!("payload-{}", ports.ids.uuid());
        ports.blobs.put(&key, Bytes::from(json), until).await?;
        Ok(Self::Blob(key))
    }

    /// A JSON text that only the extension may see again.
    pub(super) async fn sealed(
        ports: &Ports,
        oid: Oid,
        extension: &ExtensionName,
        json: &str,
        until: Timestamp,
    ) -> Result<Self, Outage> {
        if json.len() <= limits::INLINE_BYTES_MAX {
            return Ok(Self::Sealed(seal_state(ports, oid, extension, json)));
        }
        let key = format!("state-{}", ports.ids.uuid());
        Self::put_sealed(ports, &key, oid, extension, json, until).await?;
        Ok(Self::SealedBlob(key))
    }

    /// Puts a sealed text into the blobs.
    pub(super) async fn put_sealed(
        ports: &Ports,
        key: &str,
        oid: Oid,
        extension: &ExtensionName,
        json: &str,
        until: Timestamp,
    ) -> Result<(), Outage> {
        let sealed = seal_state(ports, oid, extension, json);
        let text = serde_json::to_vec(&sealed).expect("sealed text can be written as JSON");
        ports.blobs.put(key, Bytes::from(text), until).await
    }

    /// Removes what was put into the blobs for a record that was not written. Where that fails, it expires.
    pub(super) async fn forget(&self, ports: &Ports) {
        if let Self::Blob(key) | Self::SealedBlob(key) = self
            && let Err(error) = ports.blobs.delete(key).await
        {
            tracing::warn!(source = ?error.source, "a payload could not be removed: {error}");
        }
    }

    /// The JSON text.
    pub(super) async fn load(
        &self,
        ports: &Ports,
        oid: Oid,
        extension: &ExtensionName,
    ) -> Result<Zeroizing<String>, Outage> {
        let oid = oid.to_string();
        let binding = state_binding(&oid, extension);
        match self {
            Self::Json(json) => Ok(Zeroizing::new(json.get().to_owned())),
            Self::Blob(key) => {
                let bytes = blob(ports, key).await?;
                let text = String::from_utf8(bytes.into())
                    .map_err(|_| Outage::new("a payload is not UTF-8"))?;
                Ok(Zeroizing::new(text))
            }
            Self::Sealed(sealed) => seal::open_text(&*ports.keyring, &binding, sealed),
            Self::SealedBlob(key) => {
                let bytes = blob(ports, key).await?;
                let sealed = serde_json::from_slice(&bytes)
                    .map_err(|error| stored::unreadable("a sealed payload", &error))?;
                seal::open_text(&*ports.keyring, &binding, &sealed)
            }
        }
    }
}

/// What the sealed state of a continuation is bound to.
pub(super) fn state_binding<'a>(oid: &'a str, extension: &'a ExtensionName) -> [&'a str; 3] {
    ["state", oid, extension.as_str()]
}

fn seal_state(ports: &Ports, oid: Oid, extension: &ExtensionName, json: &str) -> Sealed {
    let oid = oid.to_string();
    seal::seal(&*ports.keyring, &*ports.ids, &state_binding(&oid, extension), json.as_bytes())
}

async fn blob(ports: &Ports, key: &str) -> Result<Bytes, Outage> {
    ports.blobs.get(key).await?.ok_or_else(|| Outage::new("a payload is gone from the blobs"))
}

/// Text that is known to be JSON.
pub(super) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the text was checked to be JSON")
}
