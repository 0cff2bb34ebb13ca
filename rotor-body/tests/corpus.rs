//! Runs the body of the fuzz target on its saved corpus: what it started from, and what fuzzing
//! found, stays checked without a fuzzer.

mod fuzz_bodies;

use rotor_test_kit::saved_inputs;

#[test]
fn every_saved_input_passes_and_so_do_those_that_are_cut() {
    for (name, body) in fuzz_bodies::TARGETS {
        for input in saved_inputs(name) {
            (0..=input.len()).for_each(|cut| body(&input[..cut]));
        }
    }
}

#[test]
fn no_input_at_all_is_an_input() {
    for (_, body) in fuzz_bodies::TARGETS {
        (0..=255).for_each(|byte| body(&[byte; 60]));
    }
}
