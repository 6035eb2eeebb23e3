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

#[cfg(test)]
mod tests {
    use aws_config::{BehaviorVersion, Region};
    use aws_sdk_lambda::config::Credentials;
    use axum::Router;
    use axum::http::StatusCode;

    use super::*;

    /// What comes of a run where Lambda answers so; `None`: nobody can say.
    async fn run(
        answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
    ) -> Option<Result<String, String>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(async move || answer());
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let outcome = run_at(&url).await;
        server.abort();
        outcome
    }

    async fn run_at(url: &str) -> Option<Result<String, String>> {
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
            .endpoint_url(url)
            .load()
            .await;
        let launcher = LambdaLauncher::new(&Clients::from_config(&config), "dispatch");
        let outcome = launcher.run("{}".to_owned()).await;
        outcome.map(|ran| ran.map_err(|outage| outage.what))
    }

    type Response = (StatusCode, [(&'static str, &'static str); 1], &'static str);

    const PLAIN: [(&str, &str); 1] = [("x-amz-executed-version", "$LATEST")];

    #[tokio::test]
    async fn an_answer_is_handed_on_as_it_came() {
        let answered = run(|| (StatusCode::OK, PLAIN, r#"{"stored":null}"#)).await;
        assert_eq!(answered, Some(Ok(r#"{"stored":null}"#.to_owned())));
    }

    #[tokio::test]
    async fn a_run_that_failed_is_over_and_its_words_stay_in_its_own_log() {
        let failed = [("x-amz-function-error", "Unhandled")];
        let body = r#"{"errorMessage":"secret"}"#;
        let ran = run(move || (StatusCode::OK, failed, body)).await;
        assert_eq!(ran, Some(Err("a run ended with an error, Unhandled".to_owned())));
    }

    #[tokio::test]
    async fn an_invocation_that_was_refused_never_ran() {
        let refused = [("x-amzn-errortype", "TooManyRequestsException")];
        let body = r#"{"message":"Rate Exceeded."}"#;
        let ran = run(move || (StatusCode::TOO_MANY_REQUESTS, refused, body)).await;
        let why = "a call cannot be handed over: TooManyRequestsException: Rate Exceeded.";
        assert_eq!(ran, Some(Err(why.to_owned())));
    }

    #[tokio::test]
    async fn nobody_knows_of_a_run_whose_answer_is_lost() {
        let broken = [("x-amzn-errortype", "ServiceException")];
        assert_eq!(run(move || (StatusCode::INTERNAL_SERVER_ERROR, broken, "{}")).await, None);
        // The port was free a moment ago: nobody listens on it.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(run_at(&url).await, None);
    }
}
