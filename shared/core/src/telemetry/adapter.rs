//! Adapters of extensions: what the SDK's `create_extension_adapter` makes, made by the platform in one step.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{Telemetry, installation_keys};
use crate::extensions;
use crate::fault::{Code, Fault, Outcome};
use crate::hive::{self, CLOUD_SENSOR, Change};
use crate::ids::{ExtensionName, Oid};
use crate::keys::{digest_bytes, installation_key, uuid_of};
use crate::model::{InstallationKey, UserMetadata};
use crate::ports::{Commit, Committed, Ports, When, Write};
use crate::rules::document::Node;
use crate::rules::path::Lookup;

/// The tag of everything that the platform makes for an extension (LC-117).
pub const SYSTEM_TAG: &str = "lc:system";

/// What was provisioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisioned {
    /// Path of the URL that takes events, the secret included.
    pub path: String,
    /// The id of the installation key.
    pub installation_key: String,
    /// The tags of adapter and key.
    pub tags: Vec<String>,
}

/// The private tag of an extension (LC-118).
pub fn private_tag(extension: &ExtensionName) -> String {
    format!("ext:{extension}")
}

/// The description of an extension's installation key: the SDKs find it again by this text.
pub fn key_description(extension: &ExtensionName) -> String {
    format!("ext {extension} webhook adapter")
}

/// The secret of an extension's webhook in an organization: hex SHA-256 of its shared secret and the oid, so that the
/// extension knows where to post without asking.
pub fn webhook_secret(shared_secret: &str, oid: Oid) -> Zeroizing<String> {
    let text = Zeroizing::new(format!("{shared_secret}{oid}"));
    Zeroizing::new(hex::encode(digest::digest(&digest::SHA256, text.as_bytes())))
}

impl Telemetry {
    /// Provisions the adapter of an extension in an organization that is subscribed to it (LC-115 to LC-118). A repeat
    /// restores the record and keeps the key; keys that were made twice by someone else are made one. `mapping` is
    /// the JSON text of an object that says where an event's type and time stand; see [`super::envelope`].
    pub async fn provision(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        mapping: Option<&str>,
        author: &str,
    ) -> Outcome<Provisioned> {
        let mapping = read_mapping(mapping)?;
        let definition = extensions::require_definition(&self.ports, extension).await?;
        extensions::require_subscription(&self.ports, oid, extension).await?;
        let shared = extensions::secret(&self.ports, &definition)?;
        let secret = webhook_secret(&shared, oid);
        let tags = vec![SYSTEM_TAG.to_owned(), private_tag(extension)];

        let iid = self.own_key(oid, extension, &shared, &tags).await?;
        let name = extension.as_str();
        let data = json!({
            "sensor_type": "webhook",
            "webhook": {
                "secret": *secret,
                "client_options": {
                    "hostname": name,
                    "identity": { "oid": oid.to_string(), "installation_key": iid },
                    "platform": "json",
                    "sensor_seed_key": name,
                    "mapping": mapping,
                },
            },
        });
        let change = Change {
            data: Some(Zeroizing::new(data.to_string())),
            user: Some(UserMetadata { tags: tags.clone(), ..UserMetadata::default() }),
            etag: None,
        };
        hive::set(&self.ports, oid, CLOUD_SENSOR, name, change, author).await?;
        let path = format!("/hook/{oid}/{name}/{}", *secret);
        Ok(Provisioned { path, installation_key: iid, tags })
    }

    /// The one installation key of an extension: the one its record names, else the first, else a new one.
    async fn own_key(
        &self,
        oid: Oid,
        extension: &ExtensionName,
        shared_secret: &str,
        tags: &[String],
    ) -> Outcome<String> {
        let own = own_keys(&self.ports, oid, extension).await?;
        let current = load(&self.ports, oid, extension.as_str()).await?.map(|found| found.iid);
        let kept = own.iter().find(|key| Some(&key.iid) == current.as_ref()).or(own.first());
        if let Some(kept) = kept {
            let doubles = own.iter().filter(|key| key.iid != kept.iid);
            remove_keys(&self.ports, oid, doubles).await?;
            return Ok(kept.iid.clone());
        }
        // The same for everyone who asks at the same time, and no one else can tell what it is.
        let oid_text = oid.to_string();
        let iid = uuid_of(&[
            b"installation key",
            shared_secret.as_bytes(),
            oid_text.as_bytes(),
            extension.as_str().as_bytes(),
        ]);
        let key = InstallationKey {
            iid: iid.hyphenated().to_string(),
            desc: key_description(extension),
            tags: tags.to_vec(),
            use_public_root_ca: false,
            created_at: self.ports.clock.now(),
        };
        let writes = vec![installation_keys::put(oid, &key, When::Always)];
        // Without a condition a commit is never lost.
        self.ports.store.commit(Commit { writes, ..Commit::default() }).await?;
        Ok(key.iid)
    }

    /// Removes the adapter of an extension and its installation keys (LC-121). A repeat is fine.
    pub async fn unprovision(&self, oid: Oid, extension: &ExtensionName) -> Outcome<()> {
        match hive::delete(&self.ports, oid, CLOUD_SENSOR, extension.as_str()).await {
            Err(fault) if fault.code == Code::RecordNotFound => {}
            other => other?,
        }
        let own = own_keys(&self.ports, oid, extension).await?;
        remove_keys(&self.ports, oid, own.iter()).await
    }
}

fn read_mapping(mapping: Option<&str>) -> Outcome<Box<RawValue>> {
    let text = mapping.unwrap_or("{}");
    Mapping::parse(text)?;
    RawValue::from_string(text.to_owned())
        .map_err(|_| Fault::new(Code::InvalidJson, "mapping is not valid JSON"))
}

async fn own_keys(
    ports: &Ports,
    oid: Oid,
    extension: &ExtensionName,
) -> Outcome<Vec<InstallationKey>> {
    let (desc, tag) = (key_description(extension), private_tag(extension));
    let mut found = installation_keys::list(ports, oid).await?;
    found.retain(|key| key.desc == desc && key.tags.contains(&tag));
    Ok(found)
}

async fn remove_keys(
    ports: &Ports,
    oid: Oid,
    gone: impl Iterator<Item = &InstallationKey>,
) -> Outcome<()> {
    let writes: Vec<Write> = gone
        .map(|key| Write::Delete { key: installation_key(oid, &key.iid), when: When::Always })
        .collect();
    for part in writes.chunks(crate::limits::COMMIT_WRITES_MAX) {
        let commit = Commit { writes: part.to_vec(), ..Commit::default() };
        let done = ports.store.commit(commit).await?;
        debug_assert_eq!(done, Committed::Done, "nothing was asked for");
    }
    Ok(())
}

/// An adapter as a record of hive `cloud_sensor` describes it.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Name of the record.
    pub name: String,
    /// What the poster has to know.
    secret: Zeroizing<String>,
    /// Name of the host that events come from.
    pub hostname: String,
    /// The installation key it names, if any.
    pub iid: String,
    /// What makes the sensor of its events, beside organization and key.
    pub seed: String,
    /// Tags of its events, so far.
    pub tags: Vec<String>,
    /// Where an event says what it is.
    pub mapping: Mapping,
}

/// Where an event says what it is: paths like `a/b` or `a.b`, each optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// `event_type_path`.
    pub event_type: Option<Lookup>,
    /// `event_time_path`.
    pub event_time: Option<Lookup>,
    /// `sensor_hostname_path`.
    pub hostname: Option<Lookup>,
}

impl Mapping {
    /// Reads a mapping: an object, of which other members have no meaning here.
    pub fn parse(text: &str) -> Outcome<Self> {
        let bad = |what: String| Fault::new(Code::BadRequest, format!("mapping: {what}"));
        let node = Node::parse(text).map_err(bad)?;
        let path = |name: &str| match node.member(name).and_then(Node::text) {
            None | Some("") => Ok(None),
            Some(text) => Lookup::parse(&text.trim_matches('/').replace('/', "."))
                .map(Some)
                .map_err(|error| bad(format!("{name}: {error}"))),
        };
        Ok(Self {
            event_type: path("event_type_path")?,
            event_time: path("event_time_path")?,
            hostname: path("sensor_hostname_path")?,
        })
    }
}

#[derive(Deserialize)]
struct Data {
    sensor_type: String,
    webhook: Webhook,
}

#[derive(Deserialize)]
struct Webhook {
    secret: String,
    #[serde(default)]
    client_options: ClientOptions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClientOptions {
    hostname: String,
    identity: Identity,
    sensor_seed_key: String,
    mapping: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Identity {
    installation_key: String,
}

/// The adapter of this name, if there is a live, enabled record that describes one.
pub async fn load(ports: &Ports, oid: Oid, name: &str) -> Outcome<Option<Adapter>> {
    if hive::check_name(name).is_err() {
        return Ok(None);
    }
    let Some(record) = hive::get(ports, oid, CLOUD_SENSOR, name).await? else { return Ok(None) };
    if !record.user.enabled {
        return Ok(None);
    }
    let Ok(data) = serde_json::from_str::<Data>(&record.data) else { return Ok(None) };
    if data.sensor_type != "webhook" || data.webhook.secret.is_empty() {
        return Ok(None);
    }
    let options = data.webhook.client_options;
    // A mapping that cannot be read must not lose events: they come in as they would without one.
    let mapping = options.mapping.and_then(|raw| Mapping::parse(raw.get()).ok());
    Ok(Some(Adapter {
        name: name.to_owned(),
        secret: Zeroizing::new(data.webhook.secret),
        hostname: if options.hostname.is_empty() { name.to_owned() } else { options.hostname },
        iid: options.identity.installation_key,
        seed: options.sensor_seed_key,
        tags: record.user.tags,
        mapping: mapping.unwrap_or_default(),
    }))
}

impl Adapter {
    /// Whether this is the secret. Takes the same time whatever differs.
    pub fn knows(&self, secret: &str) -> bool {
        same_text(&self.secret, secret)
    }
}

/// Compares digests, so that not even the length shows.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (digest_bytes(&[a.as_bytes()]), digest_bytes(&[b.as_bytes()]));
    verify_slices_are_equal(&a, &b).is_ok()
}
