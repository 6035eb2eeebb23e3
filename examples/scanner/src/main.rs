//! A sample webhook extension.

fn main() {}
