//! The body of a model's answer, in any pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::answer::check(data));
