//! The command line: what an operator does, through the same HTTP API that everybody uses.
//!
//! [`args`] says what can be typed; a module for each noun does it.

use std::io::Write;
use std::process::ExitCode;

use annex_core::keyring::RootKeys;
use annex_core::ports::Keyring as _;
use clap::{CommandFactory, Parser};

pub mod args;
pub mod client;
pub mod config;
pub mod dead_letters;
pub mod definition;
pub mod diagnose;
pub mod error;
pub mod event;
pub mod extension;
pub mod filed;
pub mod hive;
pub mod input;
pub mod invocation;
pub mod key;
pub mod keyring;
pub mod lock;
mod lock_call;
pub mod lock_session;
pub mod org;
pub mod output;
pub mod progress;
pub mod request;
pub mod rotate;
pub mod rule;
pub mod secret;
pub mod session;
pub mod subscription;
pub mod usage;
pub mod vendor;

use args::{Cli, Command, Shell};
use client::Client;
use error::Error;
use session::Session;

/// Runs the command that the arguments name. The exit code is 0 when it was done, 1 when the platform refused or the
/// call failed, 2 when the arguments do not make sense, 3 when the platform was not reached.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(options) => return serve(options),
        Command::Completion { shell } => complete(shell),
        _ => on_this_thread(run(cli)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", output::printable(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve(options: crate::serve::ServeOptions) -> ExitCode {
    let served = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(crate::serve::run(options)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A command makes a few requests, one after the other: threads would only cost time to start.
fn on_this_thread(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn run(cli: Cli) -> Result<(), Error> {
    let secret = ["ANNEX_API_KEY", "ANNEX_ROOT_KEY"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
        .map(|value| sign_in_secret(value.trim()));
    let session = Session {
        client: Client::new(&cli.url, secret)?,
        oid: cli.oid.filter(|oid| !oid.is_empty()),
        format: cli.output,
    };
    match cli.command {
        Command::Serve(_) | Command::Completion { .. } => Ok(()),
        Command::Health => health(&session).await,
        Command::Org(command) => org::run(command, &session).await,
        Command::Key(command) => key::run(command, &session).await,
        Command::Extension(command) => extension::run(command, &session).await,
        Command::Subscription(command) => subscription::run(command, &session).await,
        Command::Subscribe { extension } => subscription::subscribe(&extension, &session).await,
        Command::Unsubscribe { extension } => subscription::unsubscribe(&extension, &session).await,
        Command::Config(command) => config::run(command, &session).await,
        Command::Request(options) => request::run(options, &session).await,
        Command::Invocation(command) => invocation::run(command, &session).await,
        Command::Error(command) => filed::run(command, &session).await,
        Command::Usage(options) => usage::run(options, &session).await,
        Command::Secret(command) => secret::run(command, &session).await,
        Command::Event(command) => event::run(command, &session).await,
        Command::Rule(command) => rule::run(command, &session).await,
        Command::DeadLetters(command) => dead_letters::run(command, &session).await,
        Command::Lock(command) => lock::run(command, &session).await,
        Command::Session(command) => lock_session::run(command, &session).await,
        Command::Keyring(command) => keyring::run(command, &session).await,
        Command::Http(options) => vendor::run(options).await,
    }
}

/// What is signed in with: the text itself, or of a whole key ring the current root key.
fn sign_in_secret(text: &str) -> String {
    let ring = text.starts_with('{').then(|| RootKeys::parse(text).ok()).flatten();
    let root = ring.and_then(|ring| ring.root_text(ring.current()));
    root.map_or_else(|| text.to_owned(), |root| root.to_string())
}

async fn health(session: &Session) -> Result<(), Error> {
    let call = session.client.call(http::Method::GET, &["healthz"], None);
    let answer = call.send("asking for health").await?;
    session.print_done(&answer, &format!("{} is up", session.client.base()))
}

fn complete(shell: Shell) -> Result<(), Error> {
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Cli::command(), "annex", &mut script);
    let mut out = std::io::stdout().lock();
    match out.write_all(&script).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
