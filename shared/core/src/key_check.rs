//! Whether the store's secrets open with this key ring: a platform that starts with another root key would run, and
//! fail at the first secret.

use crate::keys;
use crate::ports::{Commit, Committed, Outage, Ports, When, Write};
use crate::seal::{self, Sealed};
use crate::stored;

const BINDING: &[&str] = &["platform", "key-check"];

/// Remembers the key ring in a new store; in one that has seen it before, answers whether it is the same.
pub async fn is_same(ports: &Ports) -> Result<bool, Outage> {
    let sealed = seal::seal(&*ports.keyring, &*ports.ids, BINDING, b"annex");
    let write = Write::Put {
        key: keys::key_check(),
        data: stored::bytes(&sealed),
        expires_at: None,
        when: When::Absent,
    };
    match ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await? {
        Committed::Done => Ok(true),
        Committed::Lost { found, .. } => {
            let found =
                found.ok_or_else(|| Outage::new("a put that needs absence is lost to nothing"))?;
            let sealed: Sealed = stored::read(&found, "key-check")?;
            Ok(seal::open(&*ports.keyring, BINDING, &sealed).is_ok())
        }
    }
}
