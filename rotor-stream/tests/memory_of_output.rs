//! The bytes pending in an output are counted. Its memory use is close to that count, whatever the
//! size of the pieces that it was given.
//!
//! Runs in its own process, with a counting allocator.

use std::alloc::System;
use std::io::Write;

use rotor_stream::{Block, Buf, Output};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes currently allocated.
fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Forwards input in pieces of this size, with `between` bytes written before each, until the
/// output holds `bytes`; returns the memory it uses. The thread is new, so it has no spare memory.
fn output_memory(piece: usize, between: usize, bytes: usize) -> usize {
    let fill = move || {
        let (mut output, mut input) = (Output::new(), Buf::new());
        let before = live_bytes();
        while output.len() < bytes {
            output.write_all(&vec![b'-'; between]).expect("open");
            input.extend(&vec![b'x'; piece]);
            output.push_block(Block::take_from(&mut input, piece)).expect("open");
        }
        (live_bytes() - before, output)
    };
    std::thread::scope(|threads| threads.spawn(fill).join().expect("it does not panic").0)
}

// A single test, so that no other test allocates in the meantime.
#[test]
fn an_output_holds_at_most_about_twice_the_memory_it_counts() {
    const BYTES: usize = 1 << 20;
    // For the first bytes, the list of segments, and the buffer that the last piece was taken from.
    const OVERHEAD: usize = 128 * 1024;
    for piece in
        [513, 600, 1_000, 2_048, 3_000, 4_096, 8_191, 8_192, 10_000, 16_384, 20_000, 40_000, 65_536]
    {
        for between in [0, 6, 70, 2_100, 5_000] {
            let held = output_memory(piece, between, BYTES);
            let most = 2 * BYTES + OVERHEAD;
            assert!(
                held <= most,
                "{held} bytes for {BYTES} in pieces of {piece}, with {between} before each"
            );
        }
    }
}
