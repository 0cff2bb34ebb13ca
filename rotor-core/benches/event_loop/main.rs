//! What the loop itself costs: a wake-up, a spawn, an event, a machine that waits.
//!
//! ```text
//! cargo bench -p rotor-core --bench event_loop              measures, and prints a table
//! cargo bench -p rotor-core --bench event_loop -- --test    runs every row once with little work
//! cargo bench -p rotor-core --bench event_loop -- events    only rows whose names contain this
//! valgrind --tool=callgrind target/release/deps/event_loop-… --bench --wall events    counts instructions
//! ```
//!
//! Rows of one theme differ in one thing, and take turns within each round. Events come from a
//! backend that reports all machines in every wait and whose clock is a counter, so that no row
//! pays for the kernel; the rows about wake-ups and spawns run on the default backend, as a program
//! does.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench has threads of its own")]

mod bytes;
mod events;
#[path = "../measure/mod.rs"]
mod measure;
mod spawns;
mod wake_ups;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::bytes::bytes;
use crate::events::{KEPT, REARMED, events};
use crate::measure::{Effort, Figure};
use crate::spawns::spawns;
use crate::wake_ups::wake_ups;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let effort = Effort::from_arguments();
    let wanted =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut rows = wake_ups(effort);
    rows.extend(spawns(effort));
    rows.extend(events(effort));
    rows.retain(|row| row.name.contains(&wanted));
    for _ in 0..effort.rounds() {
        for row in &mut rows {
            let nanos = (row.round)();
            row.figure.push(nanos);
        }
    }
    println!("ns per operation, median of {} rounds (lowest – highest)\n", effort.rounds());
    println!("{:<58}{:>24}{:>10}", "", "ns", "target");
    for row in &rows {
        let target = row.target.map_or(String::new(), |target| format!("≤ {target}"));
        println!("{:<58}{:>24}{target:>10}", row.name, row.figure);
    }
    let median =
        |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.figure.median());
    if let (Some(armed), Some(kept)) = (median(REARMED), median(KEPT)) {
        println!(
            "{:<58}{:>24.1}{:>10}",
            "re-arming by itself: the difference of these",
            armed - kept,
            "≤ 8"
        );
    }
    if wanted.is_empty() {
        bytes(effort);
    }
}

/// One line of the table.
struct Row {
    name: &'static str,
    /// In nanoseconds: from the design's list of what to reach.
    target: Option<u32>,
    /// Measures once; answers nanoseconds per operation.
    round: Box<dyn FnMut() -> f64>,
    figure: Figure,
}

fn row(name: &'static str, target: Option<u32>, round: impl FnMut() -> f64 + 'static) -> Row {
    Row { name, target, round: Box::new(round), figure: Figure::default() }
}
