//! What a failed request to AWS says in the log.

use annex_core::ports::Outage;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// An outage of a request that failed, named by what was tried. Its cause is told in words: the error itself holds the
/// whole answer, items of tenants included, and a log shows what an error holds.
pub(crate) fn outage<E, R>(what: &str, error: SdkError<E, R>) -> Outage
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let code = match error.code() {
        Some(code) => format!("{what}: {code}: {}", error.message().unwrap_or_default()),
        None => format!("{what}: {}", words(&error)),
    };
    Outage::new(code)
}

/// What an error and its causes say.
fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
