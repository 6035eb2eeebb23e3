//! `annex http`: what a request of an extension looks like on the wire, line by line.
//!
//! For whoever integrates a vendor, and for tests. Every line of standard input is one request with the install it is made
//! for; every line of standard output says what went out, byte for byte, and what the extension would get. With `answers`
//! nothing touches the network; without, the request is sent.

mod line;
mod recorder;

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use annex_core::json;
use annex_egress::call::{Binding, Call, Outside, Transport};
use annex_egress::nonces::{FreshNonces, GivenNonces};
use annex_egress::vendor::VendorClient;
use annex_egress::{Policy, SystemResolver};
use clap::Args;
use clap::builder::FalseyValueParser;
use jiff::Timestamp;

use self::line::Line;
use self::recorder::Recorder;
use super::error::Error;

/// Bytes of a line: a largest request, and a largest answer in base64.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Whose requests they are. Nothing is shared with another tenant, as there is none.
const TENANT: &str = "annex-http";

/// What `annex http` is told.
#[derive(Debug, Args)]
pub struct Options {
    /// Let requests reach private networks and plain http, as on a runner that allows them
    #[arg(
        long,
        env = "APP_RUNNER_ALLOW_PRIVATE_NETWORKS",
        hide_env = true,
        value_parser = FalseyValueParser::new()
    )]
    allow_private_networks: bool,
}

/// Answers every line of standard input, until there is no more.
pub(super) async fn run(options: Options) -> Result<(), Error> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut tool = Tool { allow_private_networks: options.allow_private_networks, client: None };
    let mut line = Vec::new();
    while let Some(whole) = read_line(&mut input, &mut line)? {
        if line.trim_ascii().is_empty() && whole {
            continue;
        }
        let answered = if whole { tool.answer(&line).await } else { refusal("line is too long") };
        match writeln!(output, "{answered}").and_then(|()| output.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
    Ok(())
}

/// The next line without its end; whether it is whole, or was cut as too long. `None`: there is no more.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let mut any = false;
    let mut whole = true;
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = piece.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        whole &= line.len() + taken <= LINE_BYTES_MAX;
        if whole {
            line.extend_from_slice(&piece[..taken]);
        }
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

struct Tool {
    allow_private_networks: bool,
    /// Made with the first request that is really sent; keeps connections from line to line.
    client: Option<Arc<VendorClient>>,
}

impl Tool {
    async fn answer(&mut self, line: &[u8]) -> String {
        let line = match Line::read(line) {
            Ok(line) => line,
            Err(fault) => return refusal(&fault.to_string()),
        };
        let recorder = match line.answers {
            Some(answers) => Recorder::scripted(answers),
            None => match self.client() {
                Ok(client) => Recorder::sending(client),
                Err(error) => return refusal(&error),
            },
        };
        let recorder = Arc::new(recorder);
        let at = line.at;
        let outside = Outside {
            transport: Arc::clone(&recorder) as Arc<dyn Transport>,
            now: Arc::new(move || at.unwrap_or_else(Timestamp::now)),
            nonces: match line.nonces {
                Some(values) => Arc::new(GivenNonces::new(values)),
                None => Arc::new(FreshNonces),
            },
            documents: None,
        };
        let binding = Binding {
            tenant: TENANT.to_owned(),
            hosts: line.hosts,
            secrets: line.secrets,
            allow_private_networks: self.allow_private_networks,
            time_left: Call::TIME_MAX,
        };
        let call = Call::new(binding, outside);
        let answer = call.http_request(line.request.as_bytes()).await;
        format!("{{\"sent\":[{}],\"answer\":{answer}}}", recorder.sent().join(","))
    }

    fn client(&mut self) -> Result<Arc<VendorClient>, String> {
        if let Some(client) = &self.client {
            return Ok(Arc::clone(client));
        }
        let policy =
            Policy { allow_private_networks: self.allow_private_networks, extra_roots: Vec::new() };
        let client =
            VendorClient::new(policy, Arc::new(SystemResolver::new()), VendorClient::KEEPALIVE)
                .map_err(|fault| fault.to_string())?;
        let client = Arc::new(client);
        self.client = Some(Arc::clone(&client));
        Ok(client)
    }
}

/// The answer to a line of which nothing was sent.
fn refusal(text: &str) -> String {
    format!("{{\"sent\":[],\"answer\":{{\"error\":{}}}}}", json::quote(text))
}
