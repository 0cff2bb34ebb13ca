//! Runs the body of every fuzz target on its saved corpus.
#![forbid(unsafe_code)]

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

/// Inputs that nobody chose, the same each time: a little of what a fuzzer does.
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
            // Small numbers make frames, great ones end them.
            let most = [256, 12, 130][next() as usize % 3];
            let input: Vec<u8> = (0..len).map(|_| (next() % most) as u8).collect();
            body(&input);
        }
    }
}
