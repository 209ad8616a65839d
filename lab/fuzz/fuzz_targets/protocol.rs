//! libFuzzer entry point of the target `protocol`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| isolane_fuzz::target::protocol(input));
