//! The HTTP entry of Annex: one router for every contract.
