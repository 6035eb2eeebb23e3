//! A platform in a process of its own, that can be stopped, killed and limited. Nothing is stopped but by its id.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::platform::Operator;

/// How long a process may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);

/// A running `annex serve`; killed when dropped.
pub struct Annex {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    log: PathBuf,
}

/// What a process said that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// The command `annex serve` on a folder and a free port, with nothing of this process's environment.
pub fn serve(program: &str, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--allow-private-networks", "--data"]);
    command.arg(data).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command that is to end by itself.
pub fn run(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    Ended { status: output.status, stderr: String::from_utf8(output.stderr).unwrap() }
}

impl Annex {
    /// Starts it with its own root key file; its log goes to a file beside the folder.
    pub fn start(program: &str, data: &Path) -> Self {
        Self::start_as(serve(program, data), data)
    }

    /// Starts a command of [`serve`].
    pub fn start_as(mut command: Command, data: &Path) -> Self {
        let log = data.with_extension("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("//").map(|(_, address)| address.parse().unwrap());
        let address = address.unwrap_or_else(|| {
            panic!("annex did not start: {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        Self { address, child, log }
    }

    /// Its operator, with the key of the root key file in the folder.
    pub async fn operator(&self, data: &Path) -> Operator {
        let key = std::fs::read_to_string(data.join("root-key")).unwrap();
        Operator::sign_in(&Client::new(self.address), key.trim()).await
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends it a signal by its name.
    pub fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Kills it (SIGKILL), and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal and waits until it has ended.
    pub async fn stop(self, signal: &str) -> ExitStatus {
        self.signal(signal);
        self.ended().await
    }

    /// Waits until it has ended.
    pub async fn ended(mut self) -> ExitStatus {
        let asked = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(asked.elapsed() < STOP_TIMEOUT, "annex did not stop: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Annex {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
