//! Runs the body of every fuzz target on its saved corpus, which contains the seeds and the
//! findings of earlier fuzzing. So they stay tested without a fuzzer.

mod fuzz_bodies;

use rotor_test_kit::saved_inputs;

/// Corpora are small, since the repository contains them.
const BYTES_MAX: usize = 1 << 20;

#[test]
fn every_saved_input_passes() {
    let mut bytes = 0;
    for (name, body) in fuzz_bodies::TARGETS {
        for input in saved_inputs(name) {
            bytes += input.len();
            body(&input);
        }
    }
    assert!(bytes < BYTES_MAX, "{bytes} bytes of corpora");
}

#[test]
fn empty_and_uniform_inputs_pass() {
    for (_, body) in fuzz_bodies::TARGETS {
        body(b"");
        (0..=255).for_each(|byte| body(&[byte; 40]));
    }
}
