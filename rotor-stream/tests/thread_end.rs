//! What remains after a thread ends: none of the blocks that it cached for its buffers.
//!
//! Runs in its own process, with a counting allocator.
#![expect(clippy::disallowed_methods, reason = "the threads of this test have no loop")]

use std::alloc::System;
use std::cell::RefCell;
use std::thread;

use rotor_stream::Buf;
use rotor_stream::buf::BLOCK_BYTES;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

thread_local! {
    /// Dropped when the thread ends, before or after the thread's cached blocks.
    static LATE: RefCell<Vec<Buf>> = const { RefCell::new(Vec::new()) };
}

fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn filled_buffer() -> Buf {
    let mut buf = Buf::new();
    buf.extend(b"one block");
    buf
}

fn fill_late() {
    LATE.with(|late| late.borrow_mut().extend([filled_buffer(), filled_buffer()]));
}

fn fill_and_drop() {
    let some: Vec<Buf> = (0..10).map(|_| filled_buffer()).collect();
    drop(some);
}

#[test]
fn an_ending_thread_frees_its_blocks_and_those_of_its_buffers() {
    // What the first thread leaves for all later threads is no leak.
    thread::spawn(|| {}).join().expect("it ends");
    let before = live_bytes();
    // In both orders: the thread-local that is used first is dropped first on some systems, and
    // last on others.
    let uses: [&[fn()]; 3] =
        [&[fill_late, fill_and_drop], &[fill_and_drop, fill_late], &[fill_late]];
    for used in uses {
        thread::spawn(move || used.iter().for_each(|using| using())).join().expect("it ends");
        let left = live_bytes().saturating_sub(before);
        assert!(left < BLOCK_BYTES, "{left} bytes are left behind");
    }
}
