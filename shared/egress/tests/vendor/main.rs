//! The client that vendors are called through, against real sockets on this machine.

mod answers;
mod connections;
mod forbidden;
mod network;
mod peer;
mod requests;
mod resend;
mod tls;
