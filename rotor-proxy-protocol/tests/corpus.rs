//! Runs the body of the fuzz target on its saved corpus, the seeds and past findings, without a
//! fuzzer.

mod fuzz_bodies;

use fuzz_bodies::TARGETS;
use rotor_test_kit::saved_inputs;

#[test]
fn the_saved_corpus_passes() {
    for (name, body) in TARGETS {
        saved_inputs(name).for_each(|input| body(&input));
    }
}
