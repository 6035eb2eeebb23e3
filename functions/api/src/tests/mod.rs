//! The router, whole, on a platform in memory.

mod calls;
mod capability;
mod deletion;
mod extensions;
mod hives;
mod hostile;
mod keyring;
mod operations;
mod orgs;
mod platform;
mod rotation;
mod routes;
mod slow;
mod strangers;
mod tokens;
