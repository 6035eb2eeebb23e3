//! The Lambda function behind the `resume` queue.
//!
//! Trigger: the queue, in batches, with partial batch responses. The function feeds its own queue: the template sets its
//! recursion detection to `Allow`.

use std::sync::Arc;

use annex_aws::lambda;
use annex_core::ports::QueueName;
use resume::Resume;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let resume = Resume::new(lambda.calls().await?);
    lambda.run_queue(QueueName::Resume, Arc::new(resume)).await
}
