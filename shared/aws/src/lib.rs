//! The ports of Annex on AWS.

pub mod lambda;
mod launcher;

pub use self::launcher::LambdaLauncher;
