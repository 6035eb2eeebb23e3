//! What a failed request to AWS says in the log.

use annex_core::ports::Outage;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// An outage of a request that failed, named by what was tried.
pub(crate) fn outage<E, R>(what: &str, error: SdkError<E, R>) -> Outage
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let code = match error.code() {
        Some(code) => format!("{what}: {code}: {}", error.message().unwrap_or_default()),
        None => format!("{what}: {}", DisplayErrorContext(&error)),
    };
    Outage::caused(code, error)
}
