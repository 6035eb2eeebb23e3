//! The ports of Annex on AWS.
