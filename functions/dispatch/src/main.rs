//! The Lambda function behind the `dispatch` queue, and behind calls whose caller waits.
//!
//! Trigger: the queue, in batches, with partial batch responses; and direct invocations by the HTTP entry.

use std::sync::Arc;

use annex_aws::lambda;
use annex_core::ports::QueueName;
use dispatch::Dispatch;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let calls = lambda.calls().await?;
    let dispatch = Arc::new(Dispatch::new(calls.clone()));
    lambda.run_queue_and_calls(QueueName::Dispatch, dispatch, calls).await
}
