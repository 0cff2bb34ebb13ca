//! What it costs to lend memory to a reader that is not to see what is in it: the reads of sockets
//! that are not the kernel's.
//!
//! ```text
//! cargo bench -p rotor-stream --bench lending              measures, and prints a table
//! cargo bench -p rotor-stream --bench lending -- --test    runs every row once with little work
//! ```
//!
//! Rows are how much a read is lent and what it brings, columns are *ways*, which take turns within
//! each round. `as it is` shows the reader whatever is there; `filled` fills all that is lent with
//! zeros first; `scratch` lends zeros that are kept for it, copies what came, and makes that much
//! of the scratch zero again.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::time::Instant;

/// The memory at hand, at places that differ by a kilobyte within their pages: a copy between
/// places that are nearly the same there is many times as slow, which is not what is to be
/// measured.
struct Memory<'a> {
    source: &'a mut [u8],
    block: &'a mut [u8],
    scratch: &'a mut [u8],
}

const SIZE_MAX: usize = 65_536;
const PLACE: usize = SIZE_MAX + 1_024;

/// What a read is lent, and what it brings, in bytes.
type Row = (usize, usize);
type Way = fn(&mut Memory<'_>, Row);

const ROWS: [Row; 5] =
    [(4_096, 100), (16_384, 100), (4_096, 4_096), (16_384, 16_384), (65_536, 65_536)];
const WAYS: [(&str, Way); 3] = [("as it is", as_it_is), ("filled", filled), ("scratch", scratch)];

/// What the reader does.
fn read(source: &[u8], lent: &mut [u8], count: usize) {
    black_box(&mut lent[..count]).copy_from_slice(black_box(&source[..count]));
}

fn as_it_is(memory: &mut Memory<'_>, (lent, count): Row) {
    read(memory.source, &mut memory.block[..lent], count);
}

fn filled(memory: &mut Memory<'_>, (lent, count): Row) {
    let room = &mut memory.block[..lent];
    black_box(&mut *room).fill(0);
    read(memory.source, room, count);
}

fn scratch(memory: &mut Memory<'_>, (lent, count): Row) {
    read(memory.source, &mut memory.scratch[..lent], count);
    let came = &mut memory.scratch[..count];
    black_box(&mut memory.block[..count]).copy_from_slice(came);
    black_box(came).fill(0);
}

/// Nanoseconds for each read.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn measure(way: Way, row: Row, times: usize) -> f64 {
    let mut arena = vec![0; 3 * PLACE];
    let (source, rest) = arena.split_at_mut(PLACE);
    let (block, scratch) = rest.split_at_mut(PLACE);
    let mut memory = Memory { source, block, scratch };
    let begun = Instant::now();
    for _ in 0..times {
        way(&mut memory, row);
    }
    begun.elapsed().as_nanos() as f64 / times as f64
}

fn main() {
    // Cargo passes `--bench` from `cargo bench` and nothing from `cargo test`.
    let arguments: Vec<String> = std::env::args().collect();
    let is_smoke =
        !arguments.iter().any(|a| a == "--bench") || arguments.iter().any(|a| a == "--test");
    let rounds = if is_smoke { 1 } else { 31 };
    println!("ns per read; median of {rounds} rounds (lowest – highest)\n");
    print!("{:<20}", "lent, read");
    WAYS.iter().for_each(|(name, _)| print!("{name:>26}"));
    println!();
    for row in ROWS {
        let times = if is_smoke { 10 } else { 50_000_000 / row.0 };
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            for (figure, (_, way)) in figures.iter_mut().zip(WAYS) {
                figure.push(measure(way, row, times));
            }
        }
        print!("{:<20}", format!("{}, {}", row.0, row.1));
        for figure in &mut figures {
            figure.sort_by(f64::total_cmp);
            let text =
                format!("{:.0} ({:.0} – {:.0})", figure[rounds / 2], figure[0], figure[rounds - 1]);
            print!("{text:>26}");
        }
        println!();
    }
}
