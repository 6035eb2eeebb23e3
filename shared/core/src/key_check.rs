//! Whether the store's secrets open with this key ring: a platform that starts with another root key would run, and
//! fail at the first secret.
//!
//! One item is sealed with the key that the store was first sealed with, or was last sealed anew with; each later key of a
//! rotation has its own. A ring is wrong that lacks the first one's key, and one that has another key under the id of one
//! of them.

use crate::keys;
use crate::ports::{Commit, Committed, Key, Outage, Ports, When, Write};
use crate::seal::{self, Sealed};
use crate::stored;

const BINDING: &[&str] = &["platform", "key-check"];

/// Remembers the key ring in a new store, and a newly promoted key in one that knows an older one; answers whether the
/// ring is one that the store was sealed with.
pub async fn is_same(ports: &Ports) -> Result<bool, Outage> {
    let base = put_or_read(ports, keys::key_check()).await?;
    if seal::open(&*ports.keyring, BINDING, &base).is_err() {
        return Ok(false);
    }
    let current = ports.keyring.current();
    if base.key_id() == Some(current) {
        return Ok(true);
    }
    let own = put_or_read(ports, keys::key_check_of(current)).await?;
    Ok(seal::open(&*ports.keyring, BINDING, &own).is_ok())
}

/// What stands at `key`, sealed with the current key where there was nothing.
async fn put_or_read(ports: &Ports, key: Key) -> Result<Sealed, Outage> {
    let sealed = seal::seal(&*ports.keyring, &*ports.ids, BINDING, b"annex");
    let data = stored::bytes(&sealed);
    let write = Write::Put { key, data, expires_at: None, when: When::Absent };
    match ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await? {
        Committed::Done => Ok(sealed),
        Committed::Lost { found, .. } => {
            let found =
                found.ok_or_else(|| Outage::new("a put that needs absence is lost to nothing"))?;
            stored::read(&found, "key-check")
        }
    }
}

/// Seals the item of the whole store anew; answers whether it was to be done. From then on a ring that lacks the current
/// key is wrong.
pub(crate) async fn reseal(ports: &Ports) -> Result<bool, Outage> {
    let key = keys::key_check();
    let Some(item) = ports.store.get(&key).await? else { return Ok(false) };
    let sealed: Sealed = stored::read(&item, &key.sort)?;
    let Some(new) = seal::reseal(&*ports.keyring, &*ports.ids, BINDING, &sealed)? else {
        return Ok(false);
    };
    let when = When::Revision(item.revision);
    let write = Write::Put { key, data: stored::bytes(&new), expires_at: None, when };
    let commit = Commit { writes: vec![write], ..Commit::default() };
    Ok(ports.store.commit(commit).await? == Committed::Done)
}

/// The key that sealed the item of the whole store.
pub(crate) async fn sealed_with(ports: &Ports) -> Result<Option<u32>, Outage> {
    let Some(item) = ports.store.get(&keys::key_check()).await? else { return Ok(None) };
    let sealed: Sealed = stored::read(&item, "key-check")?;
    Ok(sealed.key_id())
}
