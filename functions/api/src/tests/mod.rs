//! The router, whole, on a platform in memory.

mod calls;
mod extensions;
mod hives;
mod hostile;
mod orgs;
mod platform;
mod rotation;
mod routes;
mod tokens;
