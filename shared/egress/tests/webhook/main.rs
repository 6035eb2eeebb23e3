//! The webhook client against real sockets on this machine.

mod bodies;
mod delivery;
mod network;
mod receiver;
mod tls;
mod vectors;
