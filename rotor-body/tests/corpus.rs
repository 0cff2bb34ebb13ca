//! Runs the body of the fuzz target on its saved corpus, and on each beginning of an input.

mod fuzz_bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn every_saved_input_passes_and_so_do_those_that_are_cut() {
    replay(&fuzz_bodies::TARGETS, |body, input| {
        (0..=input.len()).for_each(|cut| body(&input[..cut]));
    });
}

#[test]
fn no_input_at_all_is_an_input() {
    for (_, body) in fuzz_bodies::TARGETS {
        (0..=255).for_each(|byte| body(&[byte; 60]));
    }
}
