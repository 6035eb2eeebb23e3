//! The SDK clients, built once per process from the standard AWS configuration.

use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_sdk_lambda::config::StalledStreamProtectionConfig;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;

/// Longest to wait for a connection; the SDK's own default.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(3_100);

/// Longest that one attempt of a data request may take. Without it, a connection that died silently would hold a call
/// until the function's own timeout.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// The clients of every service that the platform uses. Cloning is cheap: clones share connections.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Items.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Messages.
    pub sqs: aws_sdk_sqs::Client,
    /// Blobs.
    pub s3: aws_sdk_s3::Client,
    /// The key ring.
    pub secrets: aws_sdk_secretsmanager::Client,
    /// Other functions. It never sends an invocation twice, and waits for its answer as long as its caller does.
    pub lambda: aws_sdk_lambda::Client,
}

impl Clients {
    /// Clients of the standard configuration: region, credentials, endpoint and retries from the environment.
    pub async fn load() -> Self {
        Self::from_config(&loader().load().await)
    }

    /// The same over another HTTP client: what counts or disturbs requests.
    pub async fn with_http_client(client: SharedHttpClient) -> Self {
        Self::from_config(&loader().http_client(client).load().await)
    }

    /// Clients of a given configuration.
    pub fn from_config(config: &SdkConfig) -> Self {
        // A custom endpoint is an emulator or a gateway, which has no name of its own for each bucket.
        let s3 = aws_sdk_s3::config::Builder::from(config)
            .force_path_style(config.endpoint_url().is_some());
        // An invocation that is sent twice runs a call twice, and a call may take as long as its caller waits.
        let waiting = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .disable_read_timeout()
            .disable_operation_timeout()
            .disable_operation_attempt_timeout()
            .build();
        let lambda = aws_sdk_lambda::config::Builder::from(config)
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(waiting);
        Self {
            dynamodb: aws_sdk_dynamodb::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            s3: aws_sdk_s3::Client::from_conf(s3.build()),
            secrets: aws_sdk_secretsmanager::Client::new(config),
            lambda: aws_sdk_lambda::Client::from_conf(lambda.build()),
        }
    }
}

fn loader() -> ConfigLoader {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .build();
    aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts)
}
