//! The deletion of an organization: the mark, after which it is gone for everybody. The rest is the work of a job, see
//! [`Calls`].

use super::not_found;
use crate::call::Calls;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::Oid;
use crate::keys;
use crate::limits::{LEASE, REMOVED_INSTALL_GRACE};
use crate::model::{Deletion, DeletionStep, Org};
use crate::ports::{Commit, Committed, Outage, Ports, When, Write};
use crate::stored;

/// Deletes an organization whose name is `confirmation`, and sends the job that removes its data. A repeat sends the job
/// again, which changes nothing where that is under way.
pub async fn delete(calls: &Calls, oid: Oid, confirmation: &str, by: &str) -> Outcome<()> {
    let ports = calls.ports();
    loop {
        let (mut org, item): (Org, _) =
            stored::load(ports, &keys::org(oid)).await?.ok_or_else(|| not_found(oid))?;
        if org.name != confirmation {
            return Err(Fault::new(
                Code::ConfirmationRefused,
                "confirm must repeat the name of the organization",
            ));
        }
        if org.deletion.is_none() {
            org.deletion = Some(Deletion {
                at: ports.clock.now(),
                by: by.to_owned(),
                step: DeletionStep::Unsubscribe,
                cursor: None,
            });
        }
        let mark = Write::Put {
            key: keys::org(oid),
            data: stored::bytes(&org),
            expires_at: None,
            when: When::Revision(item.revision),
        };
        let index = Write::Delete { key: keys::org_index(oid), when: When::Always };
        let commit = Commit {
            writes: vec![mark, index],
            sends: vec![calls.erase_message(oid)],
            ..Commit::default()
        };
        if ports.store.commit(commit).await? == Committed::Done {
            tracing::info!(%oid, by, "organization deleted");
            return Ok(());
        }
        // It was renamed, or a step of its deletion was done meanwhile: look again.
    }
}

/// Whether an organization takes nothing new any more, not even for its former extensions: what begins now could end
/// after the removal of its data has begun.
pub(crate) async fn is_closed(ports: &Ports, oid: Oid) -> Result<bool, Outage> {
    let Some(item) = ports.store.get(&keys::org(oid)).await? else { return Ok(true) };
    let org: Org = stored::read(&item, "org")?;
    let end = |deletion: Deletion| deletion.at.plus(REMOVED_INSTALL_GRACE).minus(LEASE);
    Ok(org.deletion.is_some_and(|deletion| end(deletion) <= ports.clock.now()))
}
