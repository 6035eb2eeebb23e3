//! Published vectors of other people's implementations. They lie beside the repository, and are read where they are; where
//! they are absent, the cases in the sources carry the examples of the standards.

mod akamai_edgegrid;
mod aws_sigv4;
mod cookies;
mod hawk;
mod http_digest;
mod set;
