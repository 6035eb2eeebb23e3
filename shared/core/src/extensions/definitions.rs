//! Definitions of extensions: only the operator writes them.

use serde::Deserialize;
use zeroize::Zeroizing;

use crate::auth::permission;
use crate::capability::id::Slug;
use crate::fault::{Code, Fault, Outcome};
use crate::ids::{ExtensionName, is_name};
use crate::json::Object;
use crate::keys;
use crate::limits::{SHARED_SECRET_CHARS_MIN, TAGS_MAX, TEXT_BYTES_MAX};
use crate::model::Definition;
use crate::orgs::read_text;
use crate::ports::{Commit, Committed, Item, Outage, Ports, When, Write};
use crate::seal::{self, Sealed};
use crate::stored;

use super::rotation::previous_of;

/// A definition as the operator writes it. Unknown and doubled members are refused by name.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionInput {
    /// Its name, unique on the platform.
    pub name: String,
    /// Where its webhooks go.
    pub url: String,
    /// The shared secret; may be left out where a definition is replaced, and is kept then.
    pub secret: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// What its tokens may do.
    pub permissions: Option<Vec<String>>,
    /// What an organization must be subscribed to first.
    pub required_extensions: Option<Vec<String>>,
    /// Labels.
    pub flairs: Option<Vec<String>>,
    /// The events it wants; absent: what its schema says.
    pub events: Option<Vec<String>>,
}

impl DefinitionInput {
    /// Reads a definition's JSON.
    pub fn parse(json: &[u8]) -> Outcome<Self> {
        let refused = |code, why: &dyn std::fmt::Display| {
            Fault::new(code, format!("the definition cannot be read: {why}"))
        };
        // By itself the derived reader would take a list of values for the object.
        Object::read(json).map_err(|fault| refused(Code::InvalidJson, &fault))?;
        serde_json::from_slice(json).map_err(|error| refused(Code::BadRequest, &error))
    }

    /// The definition, with a secret that was given or kept.
    fn build(
        self,
        ports: &Ports,
        name: ExtensionName,
        before: Option<&Definition>,
    ) -> Outcome<Definition> {
        ports
            .outbound
            .check_url(&self.url)
            .map_err(|why| Fault::new(Code::BadRequest, format!("url is refused: {why}")))?;
        let now = ports.clock.now();
        let (secret, previous_secret) = match (&self.secret, before) {
            // Set outright, it is the only one at once.
            (Some(secret), _) => (sealed_secret(ports, &name, secret)?, None),
            (None, Some(before)) => (before.secret.clone(), previous_of(before, now).cloned()),
            (None, None) => return Err(Fault::new(Code::BadRequest, "secret is missing")),
        };
        let required = self.required_extensions.unwrap_or_default();
        Ok(Definition {
            url: read_text("url", &self.url)?,
            secret,
            previous_secret,
            description: read_text("description", self.description.as_deref().unwrap_or(""))?,
            permissions: permission::read_list(
                self.permissions.iter().flatten().map(String::as_str),
            )?,
            required_extensions: read_required(&name, &required)?,
            flairs: read_labels("flairs", self.flairs.unwrap_or_default())?,
            events: self.events.map(|events| read_labels("events", events)).transpose()?,
            created_at: before.map_or(now, |before| before.created_at),
            updated_at: now,
            name,
        })
    }
}

/// A new shared secret, checked.
pub(super) fn sealed_secret(ports: &Ports, name: &ExtensionName, secret: &str) -> Outcome<Sealed> {
    if secret.chars().count() < SHARED_SECRET_CHARS_MIN {
        return Err(Fault::new(
            Code::BadRequest,
            format!("secret is shorter than {SHARED_SECRET_CHARS_MIN} characters"),
        ));
    }
    read_text("secret", secret)?;
    let binding = secret_binding(name);
    Ok(seal::seal(ports.keyring.as_ref(), ports.ids.as_ref(), &binding, secret.as_bytes()))
}

fn secret_binding(name: &ExtensionName) -> [&str; 2] {
    ["extension", name.as_str()]
}

/// The shared secret of an extension.
pub fn secret(ports: &Ports, definition: &Definition) -> Result<Zeroizing<String>, Outage> {
    open_secret(ports, &definition.name, &definition.secret)
}

/// One of the secrets of a definition.
pub(super) fn open_secret(
    ports: &Ports,
    name: &ExtensionName,
    secret: &Sealed,
) -> Result<Zeroizing<String>, Outage> {
    seal::open_text(ports.keyring.as_ref(), &secret_binding(name), secret)
}

/// The definition with its secrets sealed anew by the current key; `None` where that sealed them.
pub(crate) fn resealed(
    ports: &Ports,
    definition: &Definition,
) -> Result<Option<Definition>, Outage> {
    let binding = secret_binding(&definition.name);
    let anew = |sealed: &Sealed| seal::reseal(&*ports.keyring, &*ports.ids, &binding, sealed);
    let mut new = definition.clone();
    let mut changed = false;
    let previous = new.previous_secret.as_mut().map(|previous| &mut previous.secret);
    for secret in [&mut new.secret].into_iter().chain(previous) {
        if let Some(sealed) = anew(secret)? {
            *secret = sealed;
            changed = true;
        }
    }
    Ok(changed.then_some(new))
}

fn read_required(name: &ExtensionName, list: &[String]) -> Outcome<Vec<ExtensionName>> {
    if TAGS_MAX < list.len() {
        return Err(too_many("required_extensions"));
    }
    let mut required = Vec::new();
    for text in list {
        let other = ExtensionName::parse(text)?;
        if other == *name {
            return Err(Fault::new(Code::BadRequest, "an extension cannot require itself"));
        }
        if !required.contains(&other) {
            required.push(other);
        }
    }
    Ok(required)
}

fn read_labels(what: &str, list: Vec<String>) -> Outcome<Vec<String>> {
    if TAGS_MAX < list.len() {
        return Err(too_many(what));
    }
    match list.iter().find(|label| !is_name(label)) {
        None => Ok(list),
        Some(_) => Err(Fault::new(
            Code::BadRequest,
            format!(
                "an entry of {what} is not a word of letters, digits, dots, dashes or underscores"
            ),
        )),
    }
}

fn too_many(what: &str) -> Fault {
    Fault::new(Code::BadRequest, format!("{what} has more than {TAGS_MAX} entries"))
}

/// Registers an extension.
pub async fn create(ports: &Ports, input: DefinitionInput) -> Outcome<Definition> {
    let name = ExtensionName::parse(&input.name)?;
    let definition = input.build(ports, name, None)?;
    let mut writes = vec![write(&definition, When::Absent)];
    if let Ok(slug) = Slug::parse(definition.name.as_str()) {
        // The name is free only where no capability extension has it either.
        writes.push(Write::Delete { key: keys::capability_extension(&slug), when: When::Absent });
    }
    match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
        Committed::Done => Ok(definition),
        Committed::Lost { .. } => Err(Fault::new(
            Code::Conflict,
            format!("the extension {} exists already", definition.name),
        )),
    }
}

/// Replaces the definition of an extension; its secret stays unless a new one is given.
pub async fn replace(ports: &Ports, input: DefinitionInput) -> Outcome<Definition> {
    let name = ExtensionName::parse(&input.name)?;
    loop {
        let (before, item) = load(ports, &name).await?.ok_or_else(|| unknown(&name))?;
        let definition = input.clone().build(ports, name.clone(), Some(&before))?;
        if put(ports, &definition, When::Revision(item.revision)).await? == Committed::Done {
            return Ok(definition);
        }
        // Somebody else replaced it meanwhile; the secret to keep may be another now.
    }
}

pub(super) async fn put(
    ports: &Ports,
    definition: &Definition,
    when: When,
) -> Result<Committed, Outage> {
    let writes = vec![write(definition, when)];
    ports.store.commit(Commit { writes, ..Commit::default() }).await
}

fn write(definition: &Definition, when: When) -> Write {
    Write::Put {
        key: keys::definition(&definition.name),
        data: stored::bytes(definition),
        expires_at: None,
        when,
    }
}

/// Withdraws an extension. Subscriptions to it stay, and calls to it fail, until it is registered again.
pub async fn delete(ports: &Ports, name: &ExtensionName) -> Outcome<()> {
    let write = Write::Delete { key: keys::definition(name), when: When::Present };
    match ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await? {
        Committed::Done => Ok(()),
        Committed::Lost { .. } => Err(unknown(name)),
    }
}

/// The definition of an extension.
pub async fn definition(ports: &Ports, name: &ExtensionName) -> Outcome<Option<Definition>> {
    Ok(load(ports, name).await?.map(|(definition, _)| definition))
}

/// The definition of an extension; a fault where there is none.
pub async fn require_definition(ports: &Ports, name: &ExtensionName) -> Outcome<Definition> {
    definition(ports, name).await?.ok_or_else(|| unknown(name))
}

pub(super) async fn load(
    ports: &Ports,
    name: &ExtensionName,
) -> Outcome<Option<(Definition, Item)>> {
    stored::load(ports, &keys::definition(name)).await
}

/// Every extension, by name.
pub async fn list(ports: &Ports) -> Outcome<Vec<Definition>> {
    let found = stored::all(ports, keys::EXTENSIONS, "").await?;
    Ok(found.into_iter().map(|(_, definition)| definition).collect())
}

pub(super) fn unknown(name: &ExtensionName) -> Fault {
    Fault::new(Code::NotFound, format!("unknown extension: {name}"))
}

const _: () = assert!(SHARED_SECRET_CHARS_MIN < TEXT_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, code: Code, text: &str) {
        let fault = DefinitionInput::parse(json.as_bytes()).err().unwrap();
        assert_eq!(fault.code, code, "{json}");
        assert!(fault.message.contains(text), "{}", fault.message);
    }

    #[test]
    fn unknown_doubled_and_missing_members_are_refused_by_name() {
        check(r#"{"name":"a","url":"u","token":"x"}"#, Code::BadRequest, "`token`");
        check(r#"{"name":"a","url":"u","url":"u"}"#, Code::InvalidJson, "\"url\" stands twice");
        check(r#"{"name":"a"}"#, Code::BadRequest, "`url`");
        check(r#"{"name":1,"url":"u"}"#, Code::BadRequest, "expected a string");
        check(r#"{"name":"a","#, Code::InvalidJson, "ends early");
        check("", Code::BadRequest, "EOF");
        check(r#"["a","u"]"#, Code::InvalidJson, "not a JSON object");
    }

    #[test]
    fn members_that_are_null_count_as_absent() {
        let json = r#"{"name":"a","url":"u","secret":null,"permissions":null,"events":null}"#;
        let input = DefinitionInput::parse(json.as_bytes()).ok().unwrap();
        assert!(input.secret.is_none() && input.permissions.is_none() && input.events.is_none());
    }

    #[test]
    fn lists_are_bounded_and_an_extension_does_not_require_itself() {
        let name = ExtensionName::parse("a").unwrap();
        let many: Vec<String> = (0..=TAGS_MAX).map(|n| format!("e{n}")).collect();
        assert!(read_required(&name, &many[1..]).is_ok());
        assert!(read_required(&name, &many).is_err());
        assert!(read_required(&name, &["a".into()]).is_err());
        assert!(read_labels("flairs", many[1..].to_vec()).is_ok());
        assert!(read_labels("flairs", many).is_err());
        assert!(read_labels("flairs", vec!["a b".into()]).is_err());
    }
}
