//! An echo server and its clients, under all faults: each client gets its answer once the network heals.

use std::time::Duration;

use rotor_sim::{Check, Family, Fault, Faults, Sim, TranscriptHandle};

#[path = "machines/echo_sim.rs"]
mod echo_sim;

use echo_sim::{add_clients, add_server, scenario, script};

#[test]
fn every_client_is_answered_once_the_network_heals() {
    Check::new().seeds(20).run(scenario);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    Check::new().seeds(5).twice().run(scenario);
    let hashes: Vec<u64> = (0..5).map(run_once).collect();
    let mut different = hashes.clone();
    different.dedup();
    assert_eq!(hashes.len(), different.len(), "other seeds give other runs");
}

fn run_once(seed: u64) -> u64 {
    let mut sim = Sim::swarm(seed);
    scenario(&mut sim).expect("it passes");
    sim.hash()
}

#[test]
fn nothing_goes_wrong_without_faults() {
    Check::new().seeds(3).calm().run(|sim| {
        let server = add_server(sim)?;
        let once = |number| script(number).attempts(1);
        let (_, transcripts) = add_clients(sim, server, 20, once)?;
        sim.run_until(Duration::from_secs(5), |_| transcripts.iter().all(TranscriptHandle::is_done))?;
        assert_eq!(sim.faults(), Faults::none());
        Ok(())
    });
}

/// Each fault alone: it happens, and the echo server copes with it.
#[test]
fn each_fault_happens_and_is_survived() {
    for fault in Fault::ALL {
        let family = fault.family();
        if matches!(family, Family::Datagram | Family::Offload | Family::Panic) {
            continue; // not of byte streams: see `datagrams` and `loops`
        }
        let rate = if matches!(fault, Fault::OwedEdgesOnly | Fault::SmallSlab) { 1.0 } else { 0.1 };
        // What some faults need to happen at all.
        let company = match fault {
            Fault::Reorder | Fault::Withhold => Faults::none().set(Fault::Gather, 0.5),
            Fault::OwedEdgesOnly => Faults::none().set(Fault::Gather, 0.5).set(Fault::ShortWrite, 0.5),
            Fault::ResetDropsInput => Faults::none().set(Fault::Reset, 0.05),
            _ => Faults::none(),
        };
        let happened = std::cell::Cell::new(0);
        Check::new().seeds(5).calm().run(|sim| {
            sim.set_faults(company.clone().set(*fault, rate));
            scenario(sim)?;
            happened.set(happened.get() + sim.fault_count(*fault));
            Ok(())
        });
        assert!(happened.get() > 0, "{fault:?} never happened");
    }
}
