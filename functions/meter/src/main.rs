//! The Lambda function behind the `meter` queue.
//!
//! Trigger: the queue, in batches, with partial batch responses.

use std::sync::Arc;

use annex_aws::lambda;
use annex_core::ports::QueueName;
use meter::Meter;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let meter = Meter::new(lambda.store());
    lambda.run_queue(QueueName::Meter, Arc::new(meter)).await
}
