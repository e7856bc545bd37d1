//! Configuration files, profiles and presets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::config::check(data));
