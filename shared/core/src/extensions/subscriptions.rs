//! Subscriptions: an organization's installs of extensions.

use std::time::Duration;

use crate::call::Calls;
use crate::extensions::{definition, require_definition};
use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, Oid};
use crate::keys;
use crate::limits::REMOVED_INSTALL_GRACE;
use crate::model::Subscription;
use crate::ports::{Commit, Committed, Item, Outgoing, Ports, When, Write};
use crate::stored;

/// The subscription, if it is live.
pub async fn subscription(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
) -> Outcome<Option<Subscription>> {
    let found = load(ports, oid, extension).await?.map(|(found, _)| found);
    Ok(found.filter(|found| found.removed_at.is_none()))
}

/// The live subscription; a fault where there is none (LC-124).
pub async fn require_subscription(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
) -> Outcome<Subscription> {
    subscription(ports, oid, extension)
        .await?
        .ok_or_else(|| not_subscribed(extension, Code::NotSubscribed))
}

/// The live subscriptions of an organization, by extension.
pub async fn subscriptions(ports: &Ports, oid: Oid) -> Outcome<Vec<Subscription>> {
    let found = stored::all(ports, &keys::settings(oid), keys::SUBSCRIPTIONS).await?;
    let live = |(_, found): (String, Subscription)| found.removed_at.is_none().then_some(found);
    Ok(found.into_iter().filter_map(live).collect())
}

async fn load(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
) -> Outcome<Option<(Subscription, Item)>> {
    stored::load(ports, &keys::subscription(oid, extension)).await
}

fn not_subscribed(extension: &ExtensionName, code: Code) -> Fault {
    Fault::new(code, format!("the organization is not subscribed to {extension}"))
}

/// Subscribes an organization, and sends the `subscribe` event (LC-104) with it. A repeat changes nothing and sends
/// nothing. Extensions that the definition requires must be subscribed first.
pub async fn subscribe(
    ports: &Ports,
    calls: &Calls,
    oid: Oid,
    extension: &ExtensionName,
    ident: &str,
) -> Outcome<Subscription> {
    let definition = require_definition(ports, extension).await?;
    for required in &definition.required_extensions {
        if subscription(ports, oid, required).await?.is_none() {
            return Err(Fault::new(
                Code::NotSubscribed,
                format!("{extension} requires a subscription to {required} first"),
            ));
        }
    }
    loop {
        let before = load(ports, oid, extension).await?;
        let (generation, when) = match &before {
            Some((live, _)) if live.removed_at.is_none() => {
                send_again(ports, calls, oid, live, "subscribe", ident).await?;
                return Ok(live.clone());
            }
            // Tokens of the install before stay refused.
            Some((gone, item)) => {
                (gone.generation.saturating_add(1), When::Revision(item.revision))
            }
            None => (1, When::Absent),
        };
        let install = Subscription {
            extension: extension.clone(),
            created_at: ports.clock.now(),
            generation,
            removed_at: None,
        };
        let index = Write::Put {
            key: keys::install(extension, oid),
            data: b"{}".to_vec(),
            expires_at: None,
            when: When::Always,
        };
        let event = event(calls, oid, &install, "subscribe", ident);
        let commit = Commit {
            writes: vec![put(oid, &install, when), index],
            sends: vec![event],
            ..Commit::default()
        };
        if ports.store.commit(commit).await? == Committed::Done {
            return Ok(install);
        }
        // Somebody else subscribed or unsubscribed meanwhile: look again.
    }
}

/// Unsubscribes an organization, and sends the `unsubscribe` event (LC-105) with it. Its configuration stays.
pub async fn unsubscribe(
    ports: &Ports,
    calls: &Calls,
    oid: Oid,
    extension: &ExtensionName,
    ident: &str,
) -> Outcome<()> {
    loop {
        let (mut install, item) = match load(ports, oid, extension).await? {
            Some((live, item)) if live.removed_at.is_none() => (live, item),
            gone => {
                if let Some((gone, _)) = gone {
                    send_again(ports, calls, oid, &gone, "unsubscribe", ident).await?;
                }
                return Err(not_subscribed(extension, Code::NotFound));
            }
        };
        install.removed_at = Some(ports.clock.now());
        let index = Write::Delete { key: keys::install(extension, oid), when: When::Always };
        // An extension that was withdrawn cannot be told.
        let sends = match definition(ports, extension).await? {
            Some(_) => vec![event(calls, oid, &install, "unsubscribe", ident)],
            None => Vec::new(),
        };
        let commit = Commit {
            writes: vec![put(oid, &install, When::Revision(item.revision)), index],
            sends,
            ..Commit::default()
        };
        if ports.store.commit(commit).await? == Committed::Done {
            return Ok(());
        }
    }
}

/// How long after a change of an install who repeats it sends its event again.
const SENT_AGAIN_FOR: Duration = Duration::from_secs(24 * 3600);

/// Where writing and sending are two steps, a process that died in between sent no event: who repeats the request, as
/// one does who got no answer, sends it. It has the name of the first one, so it is delivered once.
async fn send_again(
    ports: &Ports,
    calls: &Calls,
    oid: Oid,
    install: &Subscription,
    name: &str,
    ident: &str,
) -> Outcome<()> {
    // Later than that, the first event is forgotten, and the second one would be delivered.
    let since = ports.clock.now().since(install.removed_at.unwrap_or(install.created_at));
    if ports.store.atomic()
        || SENT_AGAIN_FOR < since
        || definition(ports, &install.extension).await?.is_none()
    {
        return Ok(());
    }
    let sends = vec![event(calls, oid, install, name, ident)];
    ports.store.commit(Commit { sends, ..Commit::default() }).await?;
    Ok(())
}

/// Starts a new generation: tokens that the extension got before are refused from now on.
pub async fn rekey(ports: &Ports, oid: Oid, extension: &ExtensionName) -> Outcome<Subscription> {
    loop {
        let found = load(ports, oid, extension).await?;
        let Some((mut install, item)) = found.filter(|(found, _)| found.removed_at.is_none())
        else {
            return Err(not_subscribed(extension, Code::NotFound));
        };
        install.generation = install.generation.saturating_add(1);
        let writes = vec![put(oid, &install, When::Revision(item.revision))];
        if ports.store.commit(Commit { writes, ..Commit::default() }).await? == Committed::Done {
            return Ok(install);
        }
    }
}

fn put(oid: Oid, install: &Subscription, when: When) -> Write {
    Write::Put {
        key: keys::subscription(oid, &install.extension),
        data: stored::bytes(install),
        expires_at: install.removed_at.map(|at| at.plus(REMOVED_INSTALL_GRACE)),
        when,
    }
}

/// The event of an install. An install is named by when it was made and by its generation, so that a repeat of the
/// same message is delivered once and the next install has its own.
fn event(calls: &Calls, oid: Oid, install: &Subscription, name: &str, ident: &str) -> Outgoing {
    let once = format!("{name}:{}:{}", install.created_at.millis(), install.generation);
    calls.event_message(oid, &install.extension, name, ident, &once)
}
