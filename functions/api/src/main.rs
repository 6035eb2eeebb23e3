//! The Lambda function that is the HTTP entry.
//!
//! Trigger: an HTTP API or a function URL, with payload format 2.0.

use std::sync::Arc;

use annex_aws::lambda;
use annex_core::telemetry::Telemetry;
use api::{App, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let calls = lambda.calls().await?;
    let ports = calls.ports().clone();
    let retention = lambda.settings().telemetry_retention;
    let telemetry = Telemetry::new(ports.clone(), calls.clone(), retention);
    let app = move |public_url| App {
        ports: ports.clone(),
        calls: calls.clone(),
        telemetry: telemetry.clone(),
        settings: Arc::new(Settings { public_url }),
    };
    lambda.run_http(move |public_url| api::router(app(public_url))).await
}
