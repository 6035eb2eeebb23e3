//! Counts and disturbs requests on the wire.
