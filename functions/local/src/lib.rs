//! Every function of Annex in one process.
