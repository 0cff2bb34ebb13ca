//! Runs the body of every fuzz target on its saved corpus.

mod fuzz_bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn every_saved_input_passes() {
    replay(&fuzz_bodies::TARGETS, |body, input| body(input));
}

#[test]
fn no_input_at_all_is_an_input() {
    for (_, body) in fuzz_bodies::TARGETS {
        body(b"");
        (0..=255).for_each(|byte| body(&[byte; 40]));
    }
}
