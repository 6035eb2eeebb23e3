//! The command line of the pair.

use std::env;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;

use crate::Pair;
use crate::annex::Annex;
use crate::ledger::Ledger;
use crate::message::Credentials;

const USAGE: &str = "\
Two sample capability extensions for Annex: dice and ledger.

Usage:
  pair serve [ADDRESS]         declares both manifests and serves /dice and /ledger
                               [default: 127.0.0.1:9091]; port 0 takes a free port
  pair choices SESSION         what the ledger may choose from for a roll, on the lock of its session
  pair roll SESSION [SIDES]    has the ledger call dice.roll there, and prints the invocation record

Environment:
  ANNEX_URL       where the platform is [default: http://127.0.0.1:8080]
  DICE_TOKEN      the developer token of dice (serve)
  LEDGER_TOKEN    the developer token of ledger
  PAIR_PASSWORD   the webhook password of both, whose username is annex (serve)";

/// What can go wrong: 2 is a wrong command line, 1 is everything else.
type Failed = (u8, String);

/// Does what the arguments say; the exit code of the process.
pub async fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["serve"] => serve("127.0.0.1:9091").await,
        ["serve", address] => serve(address).await,
        ["choices", session] => choices(session).await,
        ["roll", session] => roll(session, None).await,
        ["roll", session, sides] => match sides.parse() {
            Ok(sides) => roll(session, Some(sides)).await,
            Err(_) => Err((2, format!("SIDES is no number\n\n{USAGE}"))),
        },
        _ => Err((2, format!("there is no such command\n\n{USAGE}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, text)) => {
            eprintln!("error: {text}");
            ExitCode::from(code)
        }
    }
}

fn variable(name: &str) -> Result<String, Failed> {
    let found = env::var(name).ok().filter(|value| !value.is_empty());
    found.ok_or_else(|| (2, format!("{name} is not set\n\n{USAGE}")))
}

/// The platform, for the extension whose developer token is in this variable.
fn annex(token: &str) -> Result<Annex, Failed> {
    let url = env::var("ANNEX_URL").ok().filter(|url| !url.is_empty());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    Ok(Annex::new(&url, &variable(token)?))
}

fn failed(error: impl std::fmt::Display) -> Failed {
    (1, error.to_string())
}

async fn serve(address: &str) -> Result<(), Failed> {
    let credentials = Credentials::new("annex", &variable("PAIR_PASSWORD")?);
    let pair = Arc::new(Pair::new(credentials, annex("DICE_TOKEN")?, annex("LEDGER_TOKEN")?));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let listening = listener.local_addr().map_err(failed)?;
    pair.declare().await.map_err(failed)?;
    // The one line on standard output: who started the process reads the port from it.
    writeln!(std::io::stdout(), "listening on http://{listening}").map_err(failed)?;
    tokio::select! {
        ended = crate::serve(listener, pair) => ended.map_err(failed),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed),
    }
}

async fn choices(session: &str) -> Result<(), Failed> {
    let options = annex("LEDGER_TOKEN")?.options(session, "dice.roll", "sides").await;
    print(&options.map_err(failed)?)
}

async fn roll(session: &str, sides: Option<u64>) -> Result<(), Failed> {
    let ledger = Ledger::new(annex("LEDGER_TOKEN")?);
    print(&ledger.roll(session, sides).await.map_err(failed)?)
}

fn print(value: &Value) -> Result<(), Failed> {
    writeln!(std::io::stdout(), "{value:#}").map_err(failed)
}
