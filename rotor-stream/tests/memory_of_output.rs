//! What waits in an output is counted by its bytes. Its memory is about that, whatever pieces it
//! came in.
//!
//! A process of its own, whose allocator counts.

use std::alloc::System;
use std::io::Write;

use rotor_stream::{Block, Buf, Output};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that are allocated now.
fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Passes on what comes in such pieces, with something written before each, until so many bytes
/// wait; answers the memory that they hold. The thread is new, so it has no spare memory.
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

// One test, so that no other allocates meanwhile.
#[test]
fn an_output_holds_at_most_about_twice_the_memory_it_counts() {
    const BYTES: usize = 1 << 20;
    // Of the first bytes, of the list of segments, and of the buffer that a last piece was taken
    // from.
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
