//! Runs the body of the fuzz target on its saved corpus.

mod fuzz_bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_saved_corpus_passes() {
    replay(&fuzz_bodies::TARGETS, |body, input| body(input));
}
