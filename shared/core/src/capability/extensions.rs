//! Capability extensions: registered and withdrawn by the operator; what a developer token stands for.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::fault::{Code, Fault, Outcome};
use crate::ids::ExtensionName;
use crate::json::Object;
use crate::keys;
use crate::orgs::read_text;
use crate::ports::{Commit, Committed, Item, Outage, Ports, When, Write};
use crate::seal;
use crate::stored;

use super::id::{Slug, WORD_CHARS_MAX};
use super::manifest;
use super::model::{Credentials, Extension, Manifest};

/// The word by which a definition says that it is one of a capability extension.
pub const CONTRACT: &str = "chaster";

/// What every developer token begins with.
const TOKEN_PREFIX: &str = "axd.";

/// Characters of the secret part of a developer token: 32 bytes in base64url.
const TOKEN_SECRET_CHARS: usize = 43;

/// A capability extension as the operator writes it. Unknown and doubled members are refused by name.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtensionInput {
    /// [`CONTRACT`].
    pub contract: String,
    /// Its slug, unique among the names of all extensions of the platform.
    pub name: String,
    /// Where its calls and webhooks go; absent: it receives none.
    pub url: Option<String>,
    /// The Basic credentials that its calls and webhooks carry.
    pub webhook: Option<CredentialsInput>,
    /// Whether it belongs to the platform itself.
    pub platform_owned: Option<bool>,
    /// For people.
    pub description: Option<String>,
}

/// Basic credentials as the operator writes them.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialsInput {
    /// No colon in it.
    pub username: String,
    /// May be left out where an extension is replaced and the username is the same; it is kept then.
    pub password: Option<String>,
}

/// An extension that was registered, or that got a new token: the token is known only now.
pub struct Registered {
    /// The extension.
    pub extension: Extension,
    /// Its developer token.
    pub developer_token: String,
}

impl ExtensionInput {
    /// Reads the JSON of one.
    pub fn parse(json: &[u8]) -> Outcome<Self> {
        let refused = |code, why: &dyn std::fmt::Display| {
            Fault::new(code, format!("the definition cannot be read: {why}"))
        };
        Object::read(json).map_err(|fault| refused(Code::InvalidJson, &fault))?;
        serde_json::from_slice(json).map_err(|error| refused(Code::BadRequest, &error))
    }

    fn build(self, ports: &Ports, slug: Slug, before: Option<&Extension>) -> Outcome<Extension> {
        if let Some(url) = &self.url {
            let refused = |why| bad(format!("url is refused: {why}"));
            ports.outbound.check_url(url).map_err(refused)?;
            read_text("url", url)?;
        }
        let kept = before.and_then(|before| before.webhook.as_ref());
        let now = ports.clock.now();
        Ok(Extension {
            webhook: self.webhook.map(|input| input.seal(ports, &slug, kept)).transpose()?,
            url: self.url,
            description: read_text("description", self.description.as_deref().unwrap_or(""))?,
            platform_owned: self.platform_owned.unwrap_or(false),
            developer_token: before.map_or_else(String::new, |ext| ext.developer_token.clone()),
            manifest: before.map_or_else(Manifest::default, |ext| ext.manifest.clone()),
            created_at: before.map_or(now, |ext| ext.created_at),
            updated_at: now,
            slug,
        })
    }
}

impl CredentialsInput {
    fn seal(self, ports: &Ports, slug: &Slug, kept: Option<&Credentials>) -> Outcome<Credentials> {
        let username = read_text("webhook.username", &self.username)?;
        if username.is_empty() || username.contains(':') || username.contains(char::is_control) {
            return Err(bad("webhook.username is empty, or holds a colon or a control character"));
        }
        let kept = kept.filter(|kept| kept.username == username);
        let password = match (self.password, kept) {
            (Some(password), _) => {
                let password = Zeroizing::new(read_text("webhook.password", &password)?);
                if password.is_empty() || password.contains(char::is_control) {
                    return Err(bad("webhook.password is empty, or holds a control character"));
                }
                seal::seal(&*ports.keyring, &*ports.ids, &binding(slug), password.as_bytes())
            }
            (None, Some(kept)) => kept.password.clone(),
            (None, None) => return Err(bad("webhook.password is missing")),
        };
        Ok(Credentials { username, password })
    }
}

/// What the password of an extension's webhooks is bound to.
fn binding(slug: &Slug) -> [&str; 2] {
    ["capability-webhook", slug.as_str()]
}

fn bad(text: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, text)
}

fn unknown(slug: &Slug) -> Fault {
    Fault::new(Code::NotFound, format!("unknown extension: {slug}"))
}

/// A new developer token, and what is stored of it.
fn new_token(ports: &Ports, slug: &Slug) -> (String, String) {
    let secret = Zeroizing::new(ports.ids.secret());
    let token = format!("{TOKEN_PREFIX}{slug}.{}", URL_SAFE_NO_PAD.encode(&secret[..]));
    let hash = hash(&token);
    (token, hash)
}

fn hash(token: &str) -> String {
    hex::encode(digest(&SHA256, token.as_bytes()).as_ref())
}

fn put(extension: &Extension, when: When) -> Write {
    let key = keys::capability_extension(&extension.slug);
    Write::Put { key, data: stored::bytes(extension), expires_at: None, when }
}

/// Registers a capability extension. A name that any extension of the platform has is [`Code::Conflict`].
pub async fn create(ports: &Ports, input: ExtensionInput) -> Outcome<Registered> {
    let slug = Slug::parse(&input.name)?;
    let mut extension = input.build(ports, slug, None)?;
    let (token, hash) = new_token(ports, &extension.slug);
    extension.developer_token = hash;
    let other = ExtensionName::parse(extension.slug.as_str())?;
    let free = Write::Delete { key: keys::definition(&other), when: When::Absent };
    let writes = vec![put(&extension, When::Absent), free];
    match ports.store.commit(Commit { writes, ..Commit::default() }).await? {
        Committed::Done => Ok(Registered { extension, developer_token: token }),
        Committed::Lost { .. } => {
            let text = format!("the extension {} exists already", extension.slug);
            Err(Fault::new(Code::Conflict, text))
        }
    }
}

/// Changes an extension under its revision, until nobody else does so meanwhile.
async fn change(
    ports: &Ports,
    slug: &Slug,
    change: impl Fn(Extension) -> Outcome<Extension> + Send,
) -> Outcome<Extension> {
    loop {
        let (before, item) = load(ports, slug).await?.ok_or_else(|| unknown(slug))?;
        let extension = change(before)?;
        let writes = vec![put(&extension, When::Revision(item.revision))];
        let commit = Commit { writes, ..Commit::default() };
        if ports.store.commit(commit).await? == Committed::Done {
            return Ok(extension);
        }
    }
}

/// Replaces what the operator says of an extension. Its manifest and its developer token stay, and so does its password
/// where the username is the same and none is given.
pub async fn replace(ports: &Ports, input: ExtensionInput) -> Outcome<Extension> {
    let slug = Slug::parse(&input.name)?;
    change(ports, &slug, |before| input.clone().build(ports, slug.clone(), Some(&before))).await
}

/// Gives an extension a new developer token. The one before is worth nothing any more, at the latest after
/// [`crate::limits::RECENT_MAX`].
pub async fn new_developer_token(ports: &Ports, slug: &Slug) -> Outcome<Registered> {
    let (developer_token, hash) = new_token(ports, slug);
    let extension = change(ports, slug, |mut extension| {
        extension.developer_token.clone_from(&hash);
        extension.updated_at = ports.clock.now();
        Ok(extension)
    })
    .await?;
    Ok(Registered { extension, developer_token })
}

/// Reads a manifest that an extension sent, and merges it into what it declared before.
pub async fn sync(ports: &Ports, slug: &Slug, body: &[u8]) -> Outcome<Extension> {
    let said = manifest::read(slug, body)?;
    change(ports, slug, |mut extension| {
        extension.manifest = said.clone().apply(&extension.manifest)?;
        extension.updated_at = ports.clock.now();
        Ok(extension)
    })
    .await
}

/// Withdraws an extension. Its sessions stay, and calls of it are refused, until it is registered again.
pub async fn delete(ports: &Ports, slug: &Slug) -> Outcome<()> {
    let write = Write::Delete { key: keys::capability_extension(slug), when: When::Present };
    match ports.store.commit(Commit { writes: vec![write], ..Commit::default() }).await? {
        Committed::Done => Ok(()),
        Committed::Lost { .. } => Err(unknown(slug)),
    }
}

async fn load(ports: &Ports, slug: &Slug) -> Outcome<Option<(Extension, Item)>> {
    stored::load(ports, &keys::capability_extension(slug)).await
}

/// An extension; a fault where there is none.
pub async fn require(ports: &Ports, slug: &Slug) -> Outcome<Extension> {
    Ok(load(ports, slug).await?.ok_or_else(|| unknown(slug))?.0)
}

/// Every capability extension, by slug.
pub async fn list(ports: &Ports) -> Outcome<Vec<Extension>> {
    let found = stored::all(ports, keys::CAPABILITY_EXTENSIONS, "").await?;
    Ok(found.into_iter().map(|(_, extension)| extension).collect())
}

/// An extension as of at most [`crate::limits::RECENT_MAX`] ago, for what every call reads.
pub async fn recent(ports: &Ports, slug: &Slug) -> Outcome<Option<Extension>> {
    let key = keys::capability_extension(slug);
    let Some(item) = stored::recent(ports, &key, |_| true).await? else { return Ok(None) };
    Ok(Some(stored::read(&item, &key.sort)?))
}

/// A developer token that was shown: whose it would be, and what is stored of it. One that was replaced may count for
/// [`crate::limits::RECENT_MAX`] more; a new one counts at once.
pub(super) struct DeveloperToken {
    slug: Slug,
    hash: String,
}

impl DeveloperToken {
    /// Reads the text of a token; none where it cannot be one.
    pub(super) fn read(token: &str) -> Option<Self> {
        const BYTES_MAX: usize = TOKEN_PREFIX.len() + WORD_CHARS_MAX + 1 + TOKEN_SECRET_CHARS;
        if BYTES_MAX < token.len() {
            return None;
        }
        let (slug, secret) = token.strip_prefix(TOKEN_PREFIX)?.split_once('.')?;
        let slug = (secret.len() == TOKEN_SECRET_CHARS).then(|| Slug::parse(slug).ok())??;
        Some(Self { slug, hash: hash(token) })
    }

    /// The extension that it names.
    pub(super) fn slug(&self) -> &Slug {
        &self.slug
    }

    /// Whether it is the token of this extension.
    pub(super) fn is_of(&self, extension: &Extension) -> bool {
        let stored = extension.developer_token.as_bytes();
        verify_slices_are_equal(stored, self.hash.as_bytes()).is_ok()
    }
}

/// The Basic credentials of an extension: `<username>:<password>`; `None`: it has none.
pub fn credentials(
    ports: &Ports,
    extension: &Extension,
) -> Result<Option<Zeroizing<String>>, Outage> {
    let Some(credentials) = &extension.webhook else { return Ok(None) };
    let binding = binding(&extension.slug);
    let password = seal::open_text(&*ports.keyring, &binding, &credentials.password)?;
    Ok(Some(Zeroizing::new(format!("{}:{}", credentials.username, password.as_str()))))
}

/// The extension with its password sealed anew by the current key; `None` where that sealed it.
pub(crate) fn resealed(ports: &Ports, extension: &Extension) -> Result<Option<Extension>, Outage> {
    let Some(credentials) = &extension.webhook else { return Ok(None) };
    let binding = binding(&extension.slug);
    let sealed = seal::reseal(&*ports.keyring, &*ports.ids, &binding, &credentials.password)?;
    Ok(sealed.map(|password| {
        let username = credentials.username.clone();
        Extension { webhook: Some(Credentials { username, password }), ..extension.clone() }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_developer_token_names_its_extension_and_nothing_else_has_its_form() {
        let secret = "s".repeat(TOKEN_SECRET_CHARS);
        let check = |token: &str, slug: Option<&str>| {
            let read = DeveloperToken::read(token);
            assert_eq!(read.as_ref().map(|read| read.slug().as_str()), slug, "{token}");
        };
        check(&format!("axd.dice.{secret}"), Some("dice"));
        let long = "n".repeat(WORD_CHARS_MAX);
        check(&format!("axd.{long}.{secret}"), Some(&long));
        check(&format!("axd.{long}n.{secret}"), None);
        check(&format!("axd.dice.{secret}s"), None);
        check(&format!("axd.dice.{}", &secret[1..]), None);
        check(&format!("axd.lock.{secret}"), None);
        check(&format!("dice.{secret}"), None);
        check("", None);
    }

    #[test]
    fn members_that_are_unknown_or_stand_twice_are_refused_by_name() {
        let check = |json: &str, code: Code, text: &str| {
            let fault = ExtensionInput::parse(json.as_bytes()).err().unwrap();
            assert_eq!(fault.code, code, "{json}");
            assert!(fault.message.contains(text), "{}", fault.message);
        };
        check(r#"{"contract":"chaster","name":"a","secret":"x"}"#, Code::BadRequest, "`secret`");
        check(r#"{"contract":"chaster","name":"a","name":"b"}"#, Code::InvalidJson, "twice");
        check(r#"{"contract":"chaster"}"#, Code::BadRequest, "`name`");
        let doubled = r#"{"contract":"chaster","name":"a","webhook":{"username":"u","key":"k"}}"#;
        check(doubled, Code::BadRequest, "`key`");
    }
}
