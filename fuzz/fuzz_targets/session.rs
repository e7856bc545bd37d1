//! A file of events that is cut, torn or made up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::session::check(data));
