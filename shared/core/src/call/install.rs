//! What a delivery needs to know of an install: the definition, the subscription, the configuration, the secrets.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::delivery::wire::Signer;
use crate::extensions;
use crate::fault::{Code, Fault, Outcome};
use crate::hive;
use crate::ids::{ExtensionName, Oid};
use crate::json::Object;
use crate::keys;
use crate::limits;
use crate::model::{Definition, HiveRecord, Subscription};
use crate::ports::{Item, Outage, Ports};
use crate::schema::{self, ObjectSchema};
use crate::stored;

use super::Calls;
use super::sign::Signers;

/// An extension that can be called: its definition, and what signs its messages.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) definition: Definition,
    /// The definition as it is stored. Tells one version from another, also when a name was deleted and made anew.
    pub(super) stored: Vec<u8>,
    pub(super) signers: Signers,
}

impl Calls {
    /// An extension's definition; [`Code::NotFound`] where there is none. What is made of a definition (its signing
    /// key) is made once for each of its versions, and looked up by each call.
    pub(super) async fn extension(&self, name: &ExtensionName) -> Outcome<Arc<Extension>> {
        let ports = self.ports();
        let item = stored::recent(ports, &keys::definition(name), |_| true).await?;
        let item =
            item.ok_or_else(|| Fault::new(Code::NotFound, format!("unknown extension: {name}")))?;
        if let Some(known) = self.inner.extensions.get(name).await
            && known.stored == item.data
        {
            return Ok(known);
        }
        let extension = Arc::new(read_extension(ports, name, item)?);
        self.inner.extensions.insert(name.clone(), Arc::clone(&extension)).await;
        Ok(extension)
    }
}

fn read_extension(ports: &Ports, name: &ExtensionName, item: Item) -> Result<Extension, Outage> {
    let definition: Definition = stored::read(&item, name.as_str())?;
    let current = Signer::new(&extensions::secret(ports, &definition)?);
    let previous = extensions::previous_secret(ports, &definition)?;
    let previous = previous.map(|(secret, until)| (Signer::new(&secret), until));
    Ok(Extension { definition, stored: item.data, signers: Signers::new(current, previous) })
}

/// The subscription of an organization, whether or not it was removed.
pub(super) async fn subscription(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
) -> Result<Option<Subscription>, Outage> {
    let key = keys::subscription(oid, extension);
    let live = |item: &Item| {
        stored::read::<Subscription>(item, &key.sort).is_ok_and(|found| found.removed_at.is_none())
    };
    let item = stored::recent(ports, &key, live).await?;
    item.map(|item| stored::read(&item, extension.as_str())).transpose()
}

/// The data in the item of a hive record that is enabled and not expired.
fn hive_data(
    ports: &Ports,
    oid: Oid,
    hive: &str,
    name: &str,
    item: Option<&Item>,
) -> Result<Option<Zeroizing<String>>, Outage> {
    let Some(item) = item else { return Ok(None) };
    let record: HiveRecord = stored::read(item, name)?;
    let expired = record.user.expiry > 0 && record.user.expiry <= ports.clock.now().millis();
    if !record.user.enabled || expired {
        return Ok(None);
    }
    hive::open_data(ports, oid, hive, name, &record.data).map(Some)
}

/// Values of secrets by name, as one delivery uses them.
pub(super) type Secrets = BTreeMap<String, Zeroizing<String>>;

/// Resolves the secrets that an object's fields refer to and puts their values in place (LC-007).
pub(super) async fn fill(
    ports: &Ports,
    oid: Oid,
    schema: &ObjectSchema,
    object: &mut Object,
    secrets: &mut Secrets,
) -> Outcome<()> {
    for name in schema::secret_references(schema, object) {
        if secrets.contains_key(&name) {
            continue;
        }
        // The first one that is missing decides; there can be very many.
        let Some(value) = secret(ports, oid, &name).await? else { break };
        secrets.insert(name, value);
        let bytes: usize = secrets.values().map(|value| value.len()).sum();
        if limits::MESSAGE_SECRETS_MAX < secrets.len() || limits::MESSAGE_SECRETS_BYTES_MAX < bytes
        {
            return Err(too_many_secrets());
        }
    }
    let left = Cell::new(Some(limits::MESSAGE_SECRETS_BYTES_MAX));
    let value = |name: &str| {
        let value = secrets.get(name)?;
        left.set(left.get().and_then(|left| left.checked_sub(value.len())));
        left.get().map(|_| value.to_string())
    };
    let filled = schema::fill_secrets(schema, object, &value);
    if left.get().is_none() {
        return Err(too_many_secrets());
    }
    filled.map_err(|name| {
        Fault::new(Code::SecretMissing, format!("secret not set or is not of type string: {name}"))
    })
}

fn too_many_secrets() -> Fault {
    let (names, bytes) = (limits::MESSAGE_SECRETS_MAX, limits::MESSAGE_SECRETS_BYTES_MAX);
    Fault::new(
        Code::TooLarge,
        format!("the secrets of a message are more than {names}, or have more than {bytes} bytes"),
    )
}

/// Adds the value of a secret that the extension has from a call before, if it still has one.
pub(super) async fn known(
    ports: &Ports,
    oid: Oid,
    name: &str,
    secrets: &mut Secrets,
) -> Result<(), Outage> {
    if !secrets.contains_key(name)
        && let Some(value) = secret(ports, oid, name).await?
    {
        secrets.insert(name.to_owned(), value);
    }
    Ok(())
}

async fn secret(ports: &Ports, oid: Oid, name: &str) -> Result<Option<Zeroizing<String>>, Outage> {
    #[derive(serde::Deserialize)]
    struct Data {
        secret: String,
    }
    if !crate::ids::is_name(name) {
        return Ok(None);
    }
    let key = keys::hive(oid, "secret", name);
    let open = |item: Option<Item>| hive_data(ports, oid, "secret", name, item.as_ref());
    let data = match open(ports.store.recent(&key).await?)? {
        Some(data) => data,
        // What was just set works at once.
        None => match open(ports.store.get(&key).await?)? {
            Some(data) => data,
            None => return Ok(None),
        },
    };
    Ok(serde_json::from_str::<Data>(&data).ok().map(|data| Zeroizing::new(data.secret)))
}

/// The configuration as it is attached to a message: fields that the schema knows, secrets resolved; `{}` for none.
pub(super) async fn config(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
    schema: &ObjectSchema,
    secrets: &mut Secrets,
) -> Outcome<Box<RawValue>> {
    let (hive, name) = ("extension_config", extension.as_str());
    // Most installs have none: that, too, is remembered.
    let item = ports.store.recent(&keys::hive(oid, hive, name)).await?;
    match hive_data(ports, oid, hive, name, item.as_ref())? {
        Some(stored) => prepare_config(ports, oid, schema, &stored, secrets).await,
        None => Ok(super::payload::raw("{}")),
    }
}

/// The configuration pass over an object's text.
pub(super) async fn prepare_config(
    ports: &Ports,
    oid: Oid,
    schema: &ObjectSchema,
    text: &str,
    secrets: &mut Secrets,
) -> Outcome<Box<RawValue>> {
    let refused = |text: String| Fault::new(Code::ConfigRefused, text);
    let object = Object::parse(text).map_err(|fault| refused(format!("configuration: {fault}")))?;
    let mut object = schema.config(&object).map_err(refused)?;
    fill(ports, oid, schema, &mut object, secrets).await?;
    Ok(super::payload::raw(&crate::json::go_safe(&object.to_json())))
}
