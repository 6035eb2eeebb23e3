//! The two processes under measurement: the platform, and the extension that it calls.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::IN_FLIGHT;
use crate::http::{self, Connection};
use crate::load::Target;
use crate::process::Process;

/// The shared secret of the extension.
pub(crate) const SECRET: &str = "benchmark-secret-0123456789abcdef";

/// What the extension is asked to echo.
pub(crate) const DATA: &str = r#"{"message":"a message of some length","number":1}"#;

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// How long a start may take before it counts as failed.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// The sample extension.
pub(crate) struct Extension {
    /// `host:port`.
    pub(crate) address: String,
    _process: Process,
}

impl Extension {
    /// Starts it.
    pub(crate) fn start(program: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0"]).env("SCANNER_SECRET", SECRET);
        let (process, line) = Process::start_and_read(&mut command)?;
        let address = line.trim().rsplit_once("//").context("the extension printed no address")?.1;
        Ok(Self { address: address.to_owned(), _process: process })
    }
}

/// A platform with a store, an organization and a subscription.
pub(crate) struct Platform {
    program: PathBuf,
    data: PathBuf,
    address: String,
    process: Process,
    oid: String,
    token: String,
    /// The token of the platform's operator.
    pub(crate) operator: String,
}

impl Platform {
    /// Starts a platform on a new store in `folder`, and subscribes an organization to the extension.
    pub(crate) async fn set_up(
        program: &Path,
        folder: &Path,
        extension: &Extension,
    ) -> anyhow::Result<Self> {
        let data = folder.join("data");
        let address = free_address()?;
        let (process, _) = start(program, &data, &address).await?;
        let root = fs::read_to_string(data.join("root-key")).context("the root key")?;
        let mut platform = Self {
            program: program.to_owned(),
            data,
            address,
            process,
            oid: "-".to_owned(),
            token: String::new(),
            operator: String::new(),
        };
        platform.sign_in(root.trim()).await?;
        platform.operator.clone_from(&platform.token);
        let definition = json!({
            "name": "scanner", "url": format!("http://{}/", extension.address), "secret": SECRET,
            "permissions": [], "required_extensions": [], "flairs": [],
        });
        platform.post_json("/v1/extension/definition", &definition).await?;
        let made = platform.post("/v1/orgs/new", FORM, "name=bench&loc=auto".to_owned()).await?;
        let oid = made.pointer("/data/oid").and_then(Value::as_str);
        platform.oid = oid.context("no organization was made")?.to_owned();
        platform.sign_in(root.trim()).await?;
        let path = format!("/v1/orgs/{}/subscription/extension/scanner", platform.oid);
        platform.post(&path, FORM, String::new()).await?;
        Ok(platform)
    }

    async fn sign_in(&mut self, secret: &str) -> anyhow::Result<()> {
        let form = format!("secret={secret}&oid={}", self.oid);
        let answer = self.post("/jwt", FORM, form).await?;
        self.token = answer["jwt"].as_str().context("no token")?.to_owned();
        Ok(())
    }

    async fn post(&self, path: &str, media_type: &str, body: String) -> anyhow::Result<Value> {
        let mut request =
            Request::post(path).header("host", &self.address).header("content-type", media_type);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        http::once(&self.address, request.body(Full::new(Bytes::from(body)))?).await
    }

    /// Posts JSON as who owns the organization.
    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send_json("POST", path, &self.token, body).await
    }

    /// Sends JSON as who has a token.
    pub(crate) async fn send_json(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        let request = request.body(Full::new(Bytes::from(body.to_string())))?;
        http::once(&self.address, request).await
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The organization.
    pub(crate) fn oid(&self) -> &str {
        &self.oid
    }

    /// The call that the benchmark makes.
    pub(crate) fn target(&self) -> Target {
        // The data holds no character that a form must encode but quotes, braces, colons, commas and blanks.
        let data: String = DATA
            .bytes()
            .map(|byte| match byte {
                b' ' => "+".to_owned(),
                byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        Target {
            address: self.address.clone(),
            paths: vec!["/v1/extension/request/scanner".to_owned()],
            headers: vec![
                ("content-type", FORM.to_owned()),
                ("authorization", format!("Bearer {}", self.token)),
            ],
            body: Bytes::from(format!("oid={}&action=echo&data={data}", self.oid)),
            expected: "a message of some length",
        }
    }

    /// Stops and starts it this many times; says how long it took each time from the start of the process to the
    /// first answer that it is ready.
    pub(crate) async fn restart_times(&mut self, times: usize) -> anyhow::Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(times);
        for _ in 0..times {
            self.stop()?;
            let (process, ready) = start(&self.program, &self.data, &self.address).await?;
            self.process = process;
            took.push(ready);
        }
        Ok(took)
    }

    /// Processor time that it used since its start.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        self.process.cpu()
    }

    /// Memory that it holds, in MiB.
    pub(crate) fn rss_mib(&self) -> anyhow::Result<f64> {
        self.process.rss_mib()
    }

    /// Stops it cleanly.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        self.process.stop().context("stopping annex serve")
    }
}

/// Starts the platform, and says how long it took to be ready.
async fn start(program: &Path, data: &Path, address: &str) -> anyhow::Result<(Process, Duration)> {
    let mut command = Command::new(program);
    command.args(["serve", "--allow-private-networks", "--listen", address, "--data"]).arg(data);
    // As many calls of one extension as are in flight.
    command.arg("--partner-calls").arg(IN_FLIGHT.to_string()).env_remove("ANNEX_ROOT_KEY");
    let log = data.with_extension("log");
    let started = Instant::now();
    let mut process = Process::start(&mut command, &log)?;
    while !ready(address).await {
        if process.ended()? {
            let said = fs::read_to_string(&log).unwrap_or_default();
            bail!("annex serve ended before it was ready: {}", said.trim());
        }
        if READY_TIMEOUT < started.elapsed() {
            bail!("annex serve was not ready within {} seconds", READY_TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok((process, started.elapsed()))
}

async fn ready(address: &str) -> bool {
    let Ok(mut connection) = Connection::open(address).await else { return false };
    let request = Request::get("/healthz").header("host", address).body(Full::default());
    let Ok(request) = request else { return false };
    connection.call(request).await.is_ok_and(|(status, _)| status == 200)
}

/// An address of this machine that nobody listens on at the moment.
fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
