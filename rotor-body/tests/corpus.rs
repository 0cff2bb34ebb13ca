//! Runs the body of the fuzz target on its saved corpus, without a fuzzer: the seeds and past
//! findings stay checked.

mod fuzz_bodies;

use rotor_test_kit::saved_inputs;

#[test]
fn every_saved_input_passes_whole_and_cut_at_every_point() {
    for (name, body) in fuzz_bodies::TARGETS {
        for input in saved_inputs(name) {
            (0..=input.len()).for_each(|cut| body(&input[..cut]));
        }
    }
}

#[test]
fn inputs_of_one_repeated_byte_pass() {
    for (_, body) in fuzz_bodies::TARGETS {
        (0..=255).for_each(|byte| body(&[byte; 60]));
    }
}
