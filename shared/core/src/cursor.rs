//! Cursors of walks over the whole store, as callers hold them: sealed.
//!
//! Such a walk goes over everybody's items and keeps what is asked for, so that where it stands is the key of an item of
//! anybody: of another organization, with names and ids in it. A cursor shows none of that, and nobody makes one up.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ports::Ports;
use crate::seal;
use crate::stored;

/// The cursor's text, of characters that need no escape in a URL. It opens under the same `binding` only.
pub(crate) fn seal<T: Serialize>(ports: &Ports, binding: &[&str], cursor: &T) -> String {
    let sealed = seal::seal(&*ports.keyring, &*ports.ids, binding, &stored::bytes(cursor));
    BASE64.encode(stored::bytes(&sealed))
}

/// The cursor in a text; `None` where it is not one that [`seal`] made under this binding.
pub(crate) fn open<T: DeserializeOwned>(ports: &Ports, binding: &[&str], text: &str) -> Option<T> {
    let sealed = serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
    let bytes = seal::open(&*ports.keyring, binding, &sealed).ok()?;
    serde_json::from_slice(&bytes).ok()
}
