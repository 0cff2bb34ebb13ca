//! How fast simulations run: seeds a minute on one core, with 100 connections of 10 requests each.
//!
//! ```text
//! cargo bench -p rotor-sim --bench seeds              measures, and prints a table
//! cargo bench -p rotor-sim --bench seeds -- --test    runs every row once
//! ```
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::time::{Duration, Instant};

use rotor_core::BoxError;
use rotor_sim::{Faults, Network, Script, Sim, TranscriptHandle};

#[allow(dead_code, reason = "a bench uses a part of it")]
#[path = "../tests/machines/echo_sim.rs"]
mod echo_sim;

use echo_sim::{add_clients, add_server};

const CONNECTIONS: u8 = 100;
const REQUESTS: u32 = 10;

fn main() {
    // Cargo passes `--bench` from `cargo bench` and nothing from `cargo test`.
    let arguments: Vec<String> = std::env::args().collect();
    let is_smoke =
        !arguments.iter().any(|a| a == "--bench") || arguments.iter().any(|a| a == "--test");
    println!(
        "{:<28}{:>16}{:>14}{:>16}{:>16}",
        "faults", "seeds/minute", "steps/seed", "ns/step", "µs/request"
    );
    for (name, is_swarm) in [("none", false), ("swarm", true)] {
        let seeds = if is_smoke { 1 } else { 200 };
        let begun = now();
        let steps: u64 = (0..seeds).map(|seed| run(seed, is_swarm).expect("it passes")).sum();
        let took = begun.elapsed();
        let requests = seeds * u64::from(CONNECTIONS) * u64::from(REQUESTS);
        println!(
            "{name:<28}{:>16.0}{:>14}{:>16.0}{:>16.2}",
            60.0 * seeds as f64 / took.as_secs_f64(),
            steps / seeds,
            took.as_nanos() as f64 / steps as f64,
            took.as_micros() as f64 / requests as f64,
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// One run; answers its steps.
fn run(seed: u64, is_swarm: bool) -> Result<u64, BoxError> {
    let mut sim = Sim::new(seed);
    if is_swarm {
        sim.set_network(Network::swarm(seed));
        sim.set_faults(Faults::swarm(seed).set(rotor_sim::Fault::HandlerPanics, 0.0));
    }
    let server = add_server(&mut sim)?;
    let script = |_| {
        let script = Script::new().attempts(1000).patience(Duration::from_secs(20));
        (0..REQUESTS).fold(script, |script, _| {
            script.send(b"a request of a usual size, 50 bytes or thereabouts\n").receive(51)
        })
    };
    let (_, transcripts) = add_clients(&mut sim, server, CONNECTIONS, script)?;
    sim.run_for(Duration::from_secs(30))?;
    sim.eventually(Duration::from_secs(600), |_| {
        transcripts.iter().all(TranscriptHandle::has_ended)
    })?;
    Ok(sim.step())
}
