//! An echo server and its clients under all faults: each client gets its answer once the network
//! heals.

use std::time::Duration;

use rotor_sim::{Check, Family, Fault, Faults, Network, Sim, TranscriptHandle};

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
fn every_client_is_answered_at_the_first_attempt_without_faults() {
    Check::new().seeds(3).calm().run(|sim| {
        let server = add_server(sim)?;
        let once = |number| script(number).attempts(1);
        let (_, transcripts) = add_clients(sim, server, 20, once)?;
        sim.run_until(Duration::from_secs(5), |_| {
            transcripts.iter().all(TranscriptHandle::is_done)
        })?;
        assert_eq!(sim.faults(), Faults::none());
        Ok(())
    });
}

/// Each fault alone: it strikes while a client waits, and the echo server survives it.
#[test]
fn each_fault_strikes_busy_clients_and_is_survived() {
    for fault in Fault::ALL {
        let family = fault.family();
        if matches!(
            family,
            Family::Datagram | Family::Offload | Family::Panic | Family::Packet | Family::MiddleBox
        ) {
            continue; // does not affect byte streams: see `datagrams` and `loops`
        }
        if *fault == Fault::ResetOvertakes {
            continue; // nobody here closes a connection with unread input: see `sockets`
        }
        let rate = match fault {
            Fault::UnarmedEdgeLost | Fault::SmallSlab | Fault::SplitEdge => 1.0,
            // Checked ten times a second, while the clients take a second or two.
            Fault::Partition
            | Fault::Crash
            | Fault::ClockJump
            | Fault::WallStep
            | Fault::SlowHost => 0.3,
            _ => 0.1,
        };
        // Further faults that some faults need in order to strike at all.
        let company = match fault {
            Fault::Reorder | Fault::Withhold | Fault::SplitEdge => {
                Faults::none().set(Fault::Gather, 0.5)
            }
            Fault::UnarmedEdgeLost => {
                Faults::none().set(Fault::Gather, 0.5).set(Fault::ShortWrite, 0.5)
            }
            Fault::ResetDropsInput | Fault::LossTimesOut => Faults::none().set(Fault::Reset, 0.05),
            // Clients wait when a host starts only if the host restarts.
            Fault::SmallSlab => Faults::none().set(Fault::Crash, 0.5),
            _ => Faults::none(),
        };
        Check::new().seeds(10).calm().must_strike([*fault]).run(|sim| {
            // A latency during which clients spend much of their time waiting.
            sim.set_network(
                Network::new().latency(Duration::from_millis(5)..Duration::from_millis(20)),
            );
            sim.set_faults(company.clone().set(*fault, rate));
            scenario(sim)
        });
    }
}
