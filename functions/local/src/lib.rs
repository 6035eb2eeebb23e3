//! Every function of Annex in one process, and the command line.

pub mod cli;
mod deadline;
mod http;
pub mod platform;
mod ring;
pub mod serve;
mod stall;
