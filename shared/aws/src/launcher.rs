//! Hands calls whose caller waits to the function that runs them.

use std::time::Duration;

use annex_core::call::{Calls, Claimed, Launcher, Reply};
use annex_core::ports::Outage;
use async_trait::async_trait;
use aws_sdk_lambda::error::SdkError;
use aws_sdk_lambda::primitives::Blob;

use crate::Clients;
use crate::outage::outage;

/// Runs calls by invoking another Lambda function and waiting for its answer.
///
/// Lambda runs an invocation to its end whether or not somebody waits for it.
#[derive(Debug, Clone)]
pub struct LambdaLauncher {
    client: aws_sdk_lambda::Client,
    function: String,
}

impl LambdaLauncher {
    /// Invokes the function of this name or ARN.
    pub fn new(clients: &Clients, function: impl Into<String>) -> Self {
        Self { client: clients.lambda.clone(), function: function.into() }
    }

    /// Runs a call; `None`: nobody can say whether it still runs.
    async fn run(&self, text: String) -> Option<Result<String, Outage>> {
        let invoked = self
            .client
            .invoke()
            .function_name(&self.function)
            .payload(Blob::new(text))
            .send()
            .await;
        let answer = match invoked {
            Ok(answer) => answer,
            Err(error) if never_ran(&error) => {
                return Some(Err(outage("a call cannot be handed over", error)));
            }
            Err(error) => {
                let outage = outage("the answer of a run did not arrive", error);
                tracing::warn!(source = ?outage.source, "{outage}");
                return None;
            }
        };
        let payload = answer.payload.map(Blob::into_inner).unwrap_or_default();
        let payload = String::from_utf8_lossy(&payload).into_owned();
        Some(match answer.function_error {
            None => Ok(payload),
            // Its words are in that function's log, and may be those of a panic.
            Some(kind) => Err(Outage::new(format!("a run ended with an error, {kind}"))),
        })
    }
}

/// Whether an invocation that failed cannot have started the function: it was refused, or never sent.
fn never_ran<E>(error: &SdkError<E>) -> bool {
    match error {
        SdkError::ConstructionFailure(_) => true,
        SdkError::ServiceError(refused) => refused.raw().status().is_client_error(),
        _ => false,
    }
}

#[async_trait]
impl Launcher for LambdaLauncher {
    async fn launch(
        &self,
        calls: &Calls,
        claimed: Claimed,
        wait: Duration,
    ) -> Option<Result<Reply, Outage>> {
        let answer = tokio::time::timeout(wait, self.run(claimed.to_text())).await.ok()??;
        Some(match answer {
            Ok(text) => calls.reply_of(&claimed, &text).await,
            Err(outage) => Err(outage),
        })
    }
}
