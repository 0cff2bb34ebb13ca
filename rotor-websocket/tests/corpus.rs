//! Runs the body of every fuzz target on its saved corpus, without a fuzzer: the seeds and past
//! findings stay checked.
#![forbid(unsafe_code)]

mod fuzz_bodies;

use rotor_test_kit::saved_inputs;

/// Corpora are small, since the repository contains them.
const BYTES_MAX: usize = 1 << 18;

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

/// Random inputs, the same in each run: a small part of what a fuzzer does.
#[test]
fn arbitrary_inputs_pass() {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32
    };
    for (_, body) in fuzz_bodies::TARGETS {
        for _ in 0..300 {
            let len = next() as usize % 200;
            // Small values make frames; large ones end them.
            let most = [256, 12, 130][next() as usize % 3];
            let input: Vec<u8> = (0..len).map(|_| (next() % most) as u8).collect();
            body(&input);
        }
    }
}
