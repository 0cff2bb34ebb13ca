//! Runs the body of the fuzz target on its saved corpus, and packets of every kind of nonsense on a
//! host that goes on to serve. Without a fuzzer.
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

/// What fuzzing does for hours, for a moment: any bytes, from seeds.
#[test]
fn any_bytes_pass() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = vec![0; random.usize(0..600)];
        random.fill(&mut bytes);
        // Half of them mostly segments, which go deeper.
        if seed % 2 == 0 {
            bytes.iter_mut().skip(1).step_by(7).for_each(|byte| *byte = *byte & !3 | 1);
        }
        eprintln!("seed {seed}");
        for (_, body) in TARGETS {
            body(&bytes);
        }
    }
}
