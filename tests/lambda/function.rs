//! A function as a process.

use std::path::PathBuf;
use std::process::Stdio;

use annex_aws::testing::Sandbox;
use annex_core::ports::QueueName;
use annex_tests::repository::root;
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use crate::runtime::{Endpoint, Outcome};

/// The functions.
const NAMES: [&str; 5] = ["api", "dispatch", "resume", "meter", "daily"];

/// A running function; killed when dropped.
pub(crate) struct Function {
    endpoint: Endpoint,
    _child: Child,
}

impl Function {
    /// Starts one over an account.
    pub(crate) async fn start(name: &str, sandbox: &Sandbox) -> Self {
        let endpoint = Endpoint::start().await;
        let mut command = command(name, sandbox).await;
        command.env("AWS_LAMBDA_RUNTIME_API", endpoint.address.to_string());
        let child = command.spawn().unwrap();
        Self { endpoint, _child: child }
    }

    /// Feeds it an event, and waits for what it does with it.
    pub(crate) async fn invoke(&mut self, event: impl Into<String>) -> Outcome {
        self.endpoint.invoke(event.into()).await
    }
}

/// A function's command, in the surroundings that the template gives it.
pub(crate) async fn command(name: &str, sandbox: &Sandbox) -> Command {
    let mut command = Command::new(programs().await.join(name));
    command.env_clear().kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null());
    let url = |queue| sandbox.queues.get(queue).unwrap().clone();
    for queue in QueueName::ALL {
        let (name, queue) = (queue.name().to_uppercase(), url(*queue));
        command.env(format!("ANNEX_{name}_QUEUE_URL"), queue.url);
        command.env(format!("ANNEX_{name}_DEAD_LETTERS_URL"), queue.dead_letters_url.unwrap());
    }
    command.envs([
        ("ANNEX_TABLE", sandbox.table.as_str()),
        ("ANNEX_BUCKET", &sandbox.bucket),
        ("ANNEX_KEYRING_SECRET", &sandbox.secret),
        ("ANNEX_DISPATCH_FUNCTION", "annex-dispatch"),
        ("ANNEX_PUBLIC_URL", "from-requests"),
        ("ANNEX_ALLOW_PRIVATE_NETWORKS", "true"),
        ("ANNEX_SLOW_RETRY_HOURS", "6"),
        ("ANNEX_TELEMETRY_DAYS", "30"),
        ("RUST_LOG", "error"),
        ("AWS_ACCESS_KEY_ID", sandbox.account()),
        ("AWS_SECRET_ACCESS_KEY", "sandbox"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &std::env::var("AWS_ENDPOINT_URL").unwrap()),
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
    ]);
    command
}

/// The folder of the functions' programs, which are built first: Cargo builds no other package's for a test.
async fn programs() -> &'static PathBuf {
    static PROGRAMS: OnceCell<PathBuf> = OnceCell::const_new();
    let build = async || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--bins"]).current_dir(root());
        cargo.args(NAMES.iter().flat_map(|name| ["--package", *name]));
        assert!(cargo.status().await.unwrap().success(), "the functions can be built");
        // This test lies in the folder `deps` beside them.
        let test = std::env::current_exe().unwrap();
        test.parent().and_then(|deps| deps.parent()).unwrap().to_owned()
    };
    PROGRAMS.get_or_init(build).await
}
