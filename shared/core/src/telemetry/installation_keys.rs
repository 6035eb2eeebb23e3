//! Installation keys: what an adapter names as the place its telemetry comes from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{INSTALLATION_KEYS_PER_ORG_MAX, NAME_BYTES_MAX, TAGS_MAX, TEXT_BYTES_MAX};
use crate::model::InstallationKey;
use crate::ports::{Commit, Committed, Ports, When, Write};
use crate::stored;

/// Longest tag, in bytes: the private tag of the longest name of an extension (`ext:<name>`).
pub const PRIVATE_TAG_BYTES_MAX: usize = NAME_BYTES_MAX + 4;

/// A key as a caller asks for it.
#[derive(Debug, Clone, Default)]
pub struct InstallationKeyInput {
    /// The key to change; `None` makes a new one.
    pub iid: Option<String>,
    /// For people.
    pub desc: String,
    /// As they came: each can be a list separated by commas.
    pub tags: Vec<String>,
    /// Kept and shown.
    pub use_public_root_ca: bool,
}

/// Makes or changes a key; answers its id.
pub async fn create(ports: &Ports, oid: Oid, input: InstallationKeyInput) -> Outcome<String> {
    let iid = match &input.iid {
        None => {
            let known = list(ports, oid).await?.len();
            if known >= INSTALLATION_KEYS_PER_ORG_MAX {
                return Err(Fault::new(
                    Code::BadRequest,
                    format!(
                        "an organization has at most {INSTALLATION_KEYS_PER_ORG_MAX} installation keys"
                    ),
                ));
            }
            Uuid::from_u128(u128::from_be_bytes(first_half(ports.ids.secret())))
        }
        Some(text) => {
            Uuid::try_parse(text).map_err(|_| Fault::new(Code::BadRequest, "iid is not a UUID"))?
        }
    };
    let when = if input.iid.is_some() { When::Present } else { When::Absent };
    let key = InstallationKey {
        iid: iid.hyphenated().to_string(),
        desc: bounded("desc", input.desc, TEXT_BYTES_MAX)?,
        tags: read_tags(&input.tags)?,
        use_public_root_ca: input.use_public_root_ca,
        created_at: ports.clock.now(),
    };
    let commit = Commit { writes: vec![put(oid, &key, when)], ..Commit::default() };
    match ports.store.commit(commit).await? {
        Committed::Done => Ok(key.iid),
        Committed::Lost { .. } => Err(missing()),
    }
}

/// The write that stores a key.
pub fn put(oid: Oid, key: &InstallationKey, when: When) -> Write {
    Write::Put {
        key: keys::installation_key(oid, &key.iid),
        data: stored::bytes(key),
        expires_at: None,
        when,
    }
}

fn first_half(bytes: [u8; 32]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&bytes[..16]);
    out
}

/// All keys of an organization, by id.
pub async fn list(ports: &Ports, oid: Oid) -> Outcome<Vec<InstallationKey>> {
    let found = stored::all(ports, &keys::settings(oid), keys::INSTALLATION_KEYS).await?;
    Ok(found.into_iter().map(|(_, key)| key).collect())
}

/// One key.
pub async fn get(ports: &Ports, oid: Oid, iid: &str) -> Outcome<InstallationKey> {
    find(ports, oid, iid).await?.ok_or_else(missing)
}

/// One key, if there is such a one.
pub async fn find(ports: &Ports, oid: Oid, iid: &str) -> Outcome<Option<InstallationKey>> {
    // What is no id of ours is no key of the store's either.
    let Ok(iid) = Uuid::try_parse(iid) else { return Ok(None) };
    let key = keys::installation_key(oid, &iid.hyphenated().to_string());
    Ok(stored::load(ports, &key).await?.map(|(found, _)| found))
}

/// Removes a key. Removing what is absent is a fault, with the text real clients look for.
pub async fn delete(ports: &Ports, oid: Oid, iid: &str) -> Outcome<()> {
    let key = get(ports, oid, iid).await?;
    let key = keys::installation_key(oid, &key.iid);
    let commit =
        Commit { writes: vec![Write::Delete { key, when: When::Present }], ..Commit::default() };
    match ports.store.commit(commit).await? {
        Committed::Done => Ok(()),
        Committed::Lost { .. } => Err(missing()),
    }
}

fn missing() -> Fault {
    Fault::new(
        Code::RecordNotFound,
        "lc_error_code:RECORD_NOT_FOUND - there is no such installation key",
    )
}

/// A key as clients read it: tags joined by commas, times in seconds.
pub fn view(oid: Oid, key: &InstallationKey) -> Value {
    let text = BASE64.encode(format!("{oid}:{}", key.iid));
    json!({
        "iid": key.iid,
        "desc": key.desc,
        "tags": key.tags.join(","),
        "key": text,
        "json_key": text,
        "created": key.created_at.secs().max(0),
        "use_public_root_ca": key.use_public_root_ca,
    })
}

/// All keys as clients read them: `{oid: {iid: key}}`.
pub fn view_all(oid: Oid, keys: &[InstallationKey]) -> Value {
    let map: Map<String, Value> =
        keys.iter().map(|key| (key.iid.clone(), view(oid, key))).collect();
    json!({ oid.to_string(): map })
}

fn bounded(name: &str, text: String, max: usize) -> Outcome<String> {
    if text.len() > max || text.contains('\0') {
        return Err(Fault::new(Code::BadRequest, format!("{name} is longer than {max} bytes")));
    }
    Ok(text)
}

fn read_tags(given: &[String]) -> Outcome<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for tag in given.iter().flat_map(|list| list.split(',')).map(str::trim) {
        let tag = bounded("a tag", tag.to_owned(), PRIVATE_TAG_BYTES_MAX)?;
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
        if tags.len() > TAGS_MAX {
            return Err(Fault::new(Code::BadRequest, format!("a key has at most {TAGS_MAX} tags")));
        }
    }
    Ok(tags)
}
