//! Records under another key of the ring.

use crate::ids::Oid;
use crate::model::{HiveData, HiveRecord};
use crate::ports::{Outage, Ports};
use crate::seal;

/// The key that sealed the data of a record; `None` where it is not sealed.
pub(crate) fn sealed_with(record: &HiveRecord) -> Option<u32> {
    match &record.data {
        HiveData::Plain(_) => None,
        HiveData::Sealed(sealed) => sealed.key_id(),
    }
}

/// The record with its data sealed anew by the current key; `None` where that sealed it, or nothing did. What its etag
/// stands for is the same.
pub(crate) fn resealed(
    ports: &Ports,
    oid: Oid,
    hive: &str,
    name: &str,
    record: &HiveRecord,
) -> Result<Option<HiveRecord>, Outage> {
    let HiveData::Sealed(sealed) = &record.data else { return Ok(None) };
    let oid = oid.to_string();
    let new = seal::reseal(&*ports.keyring, &*ports.ids, &[&oid, hive, name], sealed)?;
    Ok(new.map(|sealed| HiveRecord { data: HiveData::Sealed(sealed), ..record.clone() }))
}
