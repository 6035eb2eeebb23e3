//! Every function of Annex in one process, and the command line.

pub mod cli;
pub mod serve;
