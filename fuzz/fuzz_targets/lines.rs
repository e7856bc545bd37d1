//! What an MCP client sends, in any pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::lines::check(data));
