//! Build automation.

fn main() {}
