//! What a model sends as the arguments of a tool.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::arguments::check(data));
