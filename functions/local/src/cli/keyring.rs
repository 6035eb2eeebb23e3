//! `annex keyring`: the rotation of the root keys.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use annex_core::keyring::{RingFault, RootKeys};
use annex_core::limits::RING_BYTES_MAX;
use annex_core::ports::{Ids as _, Keyring as _};
use annex_embedded::{change_ring, read_ring};
use annex_entropy::SystemIds;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use super::error::Error;
use super::output::{self, Format};
use super::session::Session;

/// What can be done with the key ring.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show which keys a ring has, and which is the current one; never the keys
    Show(Place),
    /// Add a new key, which nothing uses until it is promoted
    #[command(after_help = "\
Examples:
  annex keyring add --file annex-data/root-key
  aws secretsmanager get-secret-value --secret-id ring --query SecretString --output text \\
    | annex keyring add --stdin > new && aws secretsmanager put-secret-value --secret-id ring --secret-string file://new")]
    Add(Place),
    /// Make a key the current one: new seals, tokens and API keys use it
    Promote {
        /// Its id
        id: u32,
        /// Where the ring is.
        #[command(flatten)]
        place: Place,
    },
    /// Remove an older key, once nothing needs it any more; asks the platform whether something does
    Retire {
        /// Its id
        id: u32,
        /// Ask nobody: what the key has sealed is lost
        #[arg(long)]
        force: bool,
        /// Where the ring is.
        #[command(flatten)]
        place: Place,
    },
    /// Seal anew, with the current key, what older keys have sealed; needs the root key
    Reseal {
        /// Only count
        #[arg(long)]
        dry_run: bool,
    },
}

/// Where a ring is.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// File of the ring, which is replaced whole; `annex serve` picks it up by itself
    #[arg(long, value_name = "PATH", default_value = "annex-data/root-key")]
    file: PathBuf,
    /// Read the ring from standard input, and write the changed one to standard output
    #[arg(long, conflicts_with = "file")]
    stdin: bool,
}

/// Does what was typed.
pub async fn run(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Show(place) => {
            let ring = if place.stdin { from_stdin()? } else { read_ring(&place.file)? };
            show(&ring, session)
        }
        Command::Add(place) => {
            let root = Zeroizing::new(SystemIds.secret());
            place.change("added a key", session, |ring| ring.added(&root).map(|(ring, _)| ring))
        }
        Command::Promote { id, place } => {
            place.change("promoted a key", session, |ring| ring.promoted(id))
        }
        Command::Retire { id, force, place } => {
            if !force {
                let walk = walk(session, true).await?;
                walk.check_unneeded(id)?;
            }
            place.change("retired a key", session, |ring| ring.without(id))
        }
        Command::Reseal { dry_run } => {
            let walk = walk(session, dry_run).await?;
            let answer = json!({
                "current": walk.current, "resealed": walk.resealed,
                "remaining_by_key": walk.remaining, "api_keys_by_key": walk.api_keys,
            });
            print(session, &answer)
        }
    }
}

fn print(session: &Session, answer: &serde_json::Value) -> Result<(), Error> {
    match session.format {
        Format::Json => output::line(&answer.to_string()),
        Format::Table => output::line(&output::record(answer)),
    }
}

fn show(ring: &RootKeys, session: &Session) -> Result<(), Error> {
    print(session, &json!({"current": ring.current(), "keys": ring.key_ids()}))
}

fn from_stdin() -> Result<RootKeys, Error> {
    let mut text = Zeroizing::new(String::with_capacity(RING_BYTES_MAX));
    std::io::stdin().lock().take(RING_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(RootKeys::parse(&text).map_err(annex_embedded::RootKeyError::from)?)
}

impl Place {
    /// Changes the ring. The keys of it go to standard output only where they came from standard input.
    fn change(
        &self,
        done: &str,
        session: &Session,
        change: impl FnOnce(&RootKeys) -> Result<RootKeys, RingFault>,
    ) -> Result<(), Error> {
        if !self.stdin {
            return show(&change_ring(&self.file, change)?, session);
        }
        let ring = change(&from_stdin()?).map_err(annex_embedded::RootKeyError::from)?;
        eprintln!("{done}: current {}, keys {:?}", ring.current(), ring.key_ids());
        output::line(&ring.text())
    }
}

/// What a whole walk came to.
#[derive(Default)]
struct Walk {
    current: u32,
    resealed: u64,
    remaining: BTreeMap<u32, u64>,
    api_keys: BTreeMap<u32, u64>,
}

#[derive(Deserialize)]
struct Page {
    current: u32,
    resealed: u64,
    remaining_by_key: BTreeMap<u32, u64>,
    api_keys_by_key: BTreeMap<u32, u64>,
    next: Option<String>,
}

async fn walk(session: &Session, dry_run: bool) -> Result<Walk, Error> {
    let mut walk = Walk::default();
    let mut cursor = String::new();
    loop {
        let fields =
            [("cursor", cursor.as_str()), ("dry_run", if dry_run { "true" } else { "false" })];
        let call = session.operator(Method::POST, &["keyring", "reseal"]);
        let answer = call.form(&fields).send("going over what is sealed").await?;
        let page: Page = serde_json::from_slice(&answer.body).map_err(|error| {
            Error::Local(format!("the platform answered something else: {error}"))
        })?;
        walk.current = page.current;
        walk.resealed += page.resealed;
        add(&mut walk.remaining, page.remaining_by_key);
        add(&mut walk.api_keys, page.api_keys_by_key);
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(walk),
        }
    }
}

fn add(sums: &mut BTreeMap<u32, u64>, counts: BTreeMap<u32, u64>) {
    for (key, count) in counts {
        *sums.entry(key).or_default() += count;
    }
}

impl Walk {
    fn check_unneeded(&self, id: u32) -> Result<(), Error> {
        let refuse = |text: String| {
            Err(Error::Refused {
                text: format!("{text}; --force retires it all the same"),
                code: "key-in-use".into(),
            })
        };
        if self.current == id {
            return refuse(format!("the platform still seals with key {id}"));
        }
        match self.remaining.get(&id) {
            None => Ok(()),
            Some(count) => {
                let keys = self.api_keys.get(&id).copied().unwrap_or_default();
                refuse(format!("key {id} is needed for {count} values, {keys} of them API keys"))
            }
        }
    }
}
