//! Runs the body of the fuzz target on its saved corpus and on random bytes, without a fuzzer.
#![forbid(unsafe_code)]

mod fuzz_bodies;

use fuzz_bodies::TARGETS;
use rotor_test_kit::saved_inputs;

#[test]
fn the_saved_corpus_passes() {
    for (name, body) in TARGETS {
        saved_inputs(name).for_each(|input| body(&input));
    }
}

/// A short version of what fuzzing does for hours: random bytes from seeds.
#[test]
fn any_bytes_pass() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = vec![0; random.usize(0..600)];
        random.fill(&mut bytes);
        // Half of the inputs are mostly segments, which reach deeper code.
        if seed % 2 == 0 {
            bytes.iter_mut().skip(1).step_by(7).for_each(|byte| *byte = *byte & !3 | 1);
        }
        eprintln!("seed {seed}");
        for (_, body) in TARGETS {
            body(&bytes);
        }
    }
}
