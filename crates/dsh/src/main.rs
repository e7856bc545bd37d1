//! The `dsh` binary.

fn main() {}
