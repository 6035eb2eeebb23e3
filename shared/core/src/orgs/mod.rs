//! Organizations, and the API keys that act for them.

mod api_keys;
mod areas;
mod delete;
mod export;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::Org;
use crate::ports::{Commit, Committed, Item, Outage, Ports, Query, Store, When, Write};
use crate::stored;

pub use api_keys::{
    FoundApiKey, NewApiKey, create_api_key, delete_api_key, find_api_key, list_api_keys,
};
pub(crate) use api_keys::{names as api_key_names, rehash as rehash_api_key};
pub(crate) use areas::page as area_page;
pub use delete::delete;
pub(crate) use delete::is_closed;
pub use export::{ExportPage, PERMISSIONS as EXPORT_PERMISSIONS, export};

/// Makes an organization; `oid` is chosen by the platform where it is not given.
pub async fn create(
    ports: &Ports,
    name: &str,
    description: &str,
    oid: Option<Oid>,
) -> Outcome<Org> {
    let org = Org {
        oid: oid.unwrap_or_else(|| Oid::new(uuid::Uuid::from_u128(random_v4(ports)))),
        name: read_name(name)?,
        description: read_text("description", description)?,
        created_at: ports.clock.now(),
        deletion: None,
    };
    let commit = Commit { writes: writes(&org, When::Absent), ..Commit::default() };
    match ports.store.commit(commit).await? {
        Committed::Done => Ok(org),
        Committed::Lost { .. } => {
            Err(Fault::new(Code::Conflict, format!("the organization {} exists already", org.oid)))
        }
    }
}

/// An organization's id must not tell when it was made, as the time-ordered ids of the port would.
fn random_v4(ports: &Ports) -> u128 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&ports.ids.secret()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().as_u128()
}

/// The organization; a fault where there is none.
pub async fn get(ports: &Ports, oid: Oid) -> Outcome<Org> {
    Ok(load(ports, oid).await?.0)
}

async fn load(ports: &Ports, oid: Oid) -> Outcome<(Org, Item)> {
    stored::load(ports, &keys::org(oid))
        .await?
        .filter(|(org, _): &(Org, Item)| org.deletion.is_none())
        .ok_or_else(|| not_found(oid))
}

fn not_found(oid: Oid) -> Fault {
    Fault::new(Code::NotFound, format!("there is no organization {oid}"))
}

/// Whether an organization is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Live,
    /// It was deleted, and not all of its data is gone yet.
    Deleted,
    /// It never was, or nothing of it is left.
    Gone,
}

/// The organization, deleted or not, as of at most [`crate::limits::RECENT_MAX`] ago; one that was just made is there.
/// `None`: it never was, or nothing of it is left.
pub(crate) async fn known(store: &dyn Store, oid: Oid) -> Result<Option<Org>, Outage> {
    let key = keys::org(oid);
    let item = match store.recent(&key).await? {
        Some(item) => Some(item),
        None => store.get(&key).await?,
    };
    item.map(|item| stored::read(&item, "org")).transpose()
}

/// Whether an organization is there, as of at most [`crate::limits::RECENT_MAX`] ago; one that was just made is there.
pub async fn standing(store: &dyn Store, oid: Oid) -> Result<Standing, Outage> {
    Ok(match known(store, oid).await? {
        None => Standing::Gone,
        Some(org) if org.deletion.is_none() => Standing::Live,
        Some(_) => Standing::Deleted,
    })
}

/// Renames an organization, and changes its description where one is given.
pub async fn rename(
    ports: &Ports,
    oid: Oid,
    name: &str,
    description: Option<&str>,
) -> Outcome<Org> {
    let name = read_name(name)?;
    let description = description.map(|text| read_text("description", text)).transpose()?;
    loop {
        let (mut org, item) = load(ports, oid).await?;
        org.name.clone_from(&name);
        if let Some(description) = &description {
            org.description.clone_from(description);
        }
        let writes = writes(&org, When::Revision(item.revision));
        let commit = Commit { writes, ..Commit::default() };
        if ports.store.commit(commit).await? == Committed::Done {
            return Ok(org);
        }
        // Somebody else renamed it meanwhile: read it again. Each round, one of them gets through.
    }
}

fn writes(org: &Org, when: When) -> Vec<Write> {
    let data = stored::bytes(org);
    vec![
        Write::Put { key: keys::org(org.oid), data: data.clone(), expires_at: None, when },
        Write::Put { key: keys::org_index(org.oid), data, expires_at: None, when: When::Always },
    ]
}

/// A page of organizations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrgPage {
    /// Those of the page, sorted by oid.
    pub orgs: Vec<Org>,
    /// How many match in all.
    pub total: usize,
}

/// The organizations whose name, description or id holds `filter`, in any case: `limit` of them after the first `offset`. Reads the whole
/// list, page by page: for the operator.
pub async fn list(ports: &Ports, offset: usize, limit: usize, filter: &str) -> Outcome<OrgPage> {
    let filter = filter.to_lowercase();
    let mut found = OrgPage::default();
    let mut query = Query::prefix(keys::ORGS, "");
    loop {
        let page = ports.store.query(query.clone()).await?;
        for (sort, item) in page.items {
            let org: Org = stored::read(&item, &sort)?;
            if !matches(&org, &filter) {
                continue;
            }
            if offset <= found.total && found.orgs.len() < limit {
                found.orgs.push(org);
            }
            found.total += 1;
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(found),
        }
    }
}

/// Whether the organization's name, description or id holds a text in lower case.
pub fn matches(org: &Org, filter: &str) -> bool {
    let held = |text: &str| text.to_lowercase().contains(filter);
    held(&org.name) || held(&org.description) || held(&org.oid.to_string())
}

/// A name for people: something, not too long, on one line.
fn read_name(text: &str) -> Outcome<String> {
    let text = text.trim();
    if text.is_empty() || NAME_BYTES_MAX < text.len() || text.chars().any(char::is_control) {
        return Err(Fault::new(
            Code::BadRequest,
            format!("a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"),
        ));
    }
    Ok(text.to_owned())
}

/// A text for people, of bounded length.
pub(crate) fn read_text(what: &str, text: &str) -> Outcome<String> {
    if TEXT_BYTES_MAX < text.len() {
        return Err(Fault::new(
            Code::BadRequest,
            format!("{what} is longer than {TEXT_BYTES_MAX} bytes"),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_bounded() {
        assert_eq!(read_name(" Acme é "), Ok("Acme é".into()));
        assert!(read_name(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        for bad in ["", "  ", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(read_name(bad).map_err(|fault| fault.code), Err(Code::BadRequest));
        }
    }

    #[test]
    fn a_text_is_bounded() {
        assert!(read_text("comment", &"x".repeat(TEXT_BYTES_MAX)).is_ok());
        let fault = read_text("comment", &"x".repeat(TEXT_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(fault.message, "comment is longer than 2048 bytes");
    }
}
