//! Runs the sample extension: `SCANNER_SECRET=… scanner --listen 127.0.0.1:9090`.

use std::env;
use std::io::Write;
use std::process::ExitCode;

use tokio::net::TcpListener;

const USAGE: &str = "\
A sample webhook extension for Annex.

Usage: SCANNER_SECRET=<shared secret> scanner [--listen ADDRESS]

  --listen ADDRESS   where to listen [default: 127.0.0.1:9090]; port 0 takes a free port

SCANNER_SECRET is the shared secret that the extension was registered with.";

#[tokio::main]
async fn main() -> ExitCode {
    let listen = match address(env::args().skip(1)) {
        Ok(listen) => listen,
        Err(text) => return usage(&text),
    };
    // Without a secret anybody could call: better not to start.
    let secret = match env::var("SCANNER_SECRET") {
        Ok(secret) if !secret.is_empty() => secret,
        _ => return usage("SCANNER_SECRET is not set"),
    };
    match run(&listen, &secret).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {listen}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(listen: &str, secret: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    // The one line on standard output: who started the process reads the port from it.
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    tokio::select! {
        ended = scanner::serve(listener, secret) => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted,
    }
}

/// The value of `--listen`, or its default.
fn address(mut args: impl Iterator<Item = String>) -> Result<String, String> {
    let mut listen = "127.0.0.1:9090".to_owned();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--listen" => listen = args.next().ok_or("--listen needs an address")?,
            _ => return Err(format!("unexpected argument: {arg}")),
        }
    }
    Ok(listen)
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("error: {problem}\n\n{USAGE}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: Result<&str, &str>) {
        let found = address(args.iter().map(ToString::to_string));
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn listen_is_read_and_has_a_default() {
        check(&[], Ok("127.0.0.1:9090"));
        check(&["--listen", "127.0.0.1:0"], Ok("127.0.0.1:0"));
    }

    #[test]
    fn arguments_that_mean_nothing_are_refused() {
        check(&["--listen"], Err("--listen needs an address"));
        check(&["--port"], Err("unexpected argument: --port"));
    }
}
