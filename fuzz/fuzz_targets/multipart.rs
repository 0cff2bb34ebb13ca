#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rotor_fuzz::run("multipart", data));
