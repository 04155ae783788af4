#![no_main]
#[allow(dead_code)]
#[path = "../../tests/support/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::parity_game(data));
