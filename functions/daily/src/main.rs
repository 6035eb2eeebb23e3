//! The Lambda function behind the schedule.
//!
//! Trigger: the schedule, every minute or every few; its event says which moment it stands for.

use annex_aws::lambda;
use daily::Daily;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let daily = Daily::new(lambda.calls().await?);
    lambda.run_schedule(async move |_time| daily.tick().await).await
}
