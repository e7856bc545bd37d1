//! What commands write, and what is shown of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::output::check(data));
