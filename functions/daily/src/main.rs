//! The Lambda function behind the schedule.
//!
//! Trigger: the schedule, once a day; its event says which day it stands for.

use annex_aws::lambda;
use daily::Daily;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda::Error> {
    let lambda = lambda::start().await?;
    let daily = Daily::new(lambda.calls().await?);
    lambda.run_schedule(async move |day| daily.run_day(day).await).await
}
