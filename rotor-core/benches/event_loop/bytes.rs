//! What a machine takes of memory that waits.

use std::time::Duration;

use rotor_core::{Config, Loop, Response};

use crate::ALLOCATOR;
use crate::events::Counts;
use crate::measure::Effort;

/// Bytes that the allocator has given out for a machine of 64 bytes that waits for its deadline, by
/// a line through several sizes; and what they are made of.
pub(crate) fn bytes(effort: Effort) {
    let sizes: [usize; 4] =
        effort.pick([10_000, 100_000, 400_000, 1_000_000], [100, 200, 300, 400]);
    let points = sizes.map(|machines| (machines as f64, bytes_of_loop(machines)));
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (mean_machines, mean_bytes) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = points.iter().map(|(m, b)| (m - mean_machines) * (b - mean_bytes)).sum();
    let square: f64 = points.iter().map(|(m, _)| (m - mean_machines).powi(2)).sum();
    println!("\nbytes, all bookkeeping included; a line through {sizes:?} machines\n");
    println!(
        "{:<58}{:>24.1}{:>10}",
        "idle machine of 64 bytes with a deadline",
        along / square,
        "≤ 104"
    );
    println!("{:<58}{:>24.0}", "the loop itself", mean_bytes - along / square * mean_machines);
    println!(
        "\n64 the machine + 8 its slot + 8 its wake-ups and generation + 24 its deadline = 104"
    );
}

fn bytes_of_loop(machines: usize) -> f64 {
    let live = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
    };
    let before = live();
    let config = Config::new().machines_max(machines);
    let creator = Loop::<Counts<8, true>>::new(&config).expect("there are descriptors");
    let mut instance = creator.instantiate(0);
    for index in 0..machines {
        let made = instance.add_machine_with(|scope| {
            let deadline = scope.now() + Duration::from_micros(index as u64);
            Response::ok(Counts { state: [0; 8] }).deadline(deadline + Duration::from_secs(10))
        });
        made.expect("there is room");
    }
    live() - before
}
