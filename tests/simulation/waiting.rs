//! Two listeners in one loop that has fewer slots than there are clients: whoever has waited
//! longest has the next slot, however many come to the other listener meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::ListenOptions;
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Loop};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Family, Fault, Host, Network, Script, Sim, Watched};

use crate::lines::Server;
use crate::stage::{self, Clients, PORT};

/// For connections, beside those of the listeners.
const SLOTS: usize = 2;
const QUIET_PORT: u16 = 81;
/// How many may be accepted elsewhere while one waits: for each slot the one that waited longer,
/// and what came before the listener had heard of it.
const PASSED_OVER_MAX: u64 = 2 * SLOTS as u64;

fn serve(sim: &mut Sim) -> Result<Host<Watched<Server>>, BoxError> {
    let host = sim.host("server", |boot| {
        let config = boot.config().machines_max(SLOTS + 2);
        let mut creator = Loop::<Watched<Server>, _>::with_backend(boot.backend(), &config)?;
        for port in [PORT, QUIET_PORT] {
            let address = SocketAddr::new(boot.address(), port);
            creator.add_machine_with(|scope| {
                Watched::make(scope, |scope| {
                    Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
                })
            })?;
        }
        Ok(creator.instantiate(()))
    })?;
    Ok(host)
}

fn script(pause: Duration) -> Script {
    stage::persistent_script()
        .pause(pause)
        .send(b"a line\n")
        .expect(b"a line\n")
        .shutdown()
        .expect_end()
}

fn scenario(sim: &mut Sim) -> Result<u64, BoxError> {
    // What has a listener rest for a reason of its own, or takes one away.
    let excused = [Family::Accept, Family::Register, Family::Panic, Family::Crash];
    let faults = excused.into_iter().fold(sim.faults(), |faults, family| faults.without(family));
    // The host is busy, so that what happens within a millisecond or two comes in one turn: a
    // connection that ends, and a new one for the listener that is called before the one that
    // waits. And each that comes is told of, as kernels do.
    let faults = faults.set(Fault::Gather, 1.0).set(Fault::SplitEdge, 1.0);
    sim.set_faults(faults.set(Fault::UnarmedEdgeLost, 0.0));
    sim.set_network(Network::new().draining(0.5));
    let server = serve(sim)?;
    sim.bound_waiting(server, PASSED_OVER_MAX);
    let mut busy = Clients::<SimTcpStream>::of(sim, server)?;
    // A few more come than can be served, so that somebody comes whenever a slot is free, and
    // somebody waits.
    for number in 0..150 {
        busy.add(sim, script(Duration::from_micros(number * 300)));
    }
    let mut quiet = Clients::<SimTcpStream>::at(sim, server, QUIET_PORT)?;
    for number in 1..5 {
        quiet.add(sim, script(Duration::from_millis(number * 10)));
    }
    sim.run_for(stage::FAULTY)?;
    stage::heal(sim, server)?;
    busy.assert_all_complete(sim)?;
    quiet.assert_all_complete(sim)?;
    let most = sim.most_passed_over(server);
    stage::drain(sim, server)?;
    Ok(most)
}

#[test]
fn the_longest_waiting_client_gets_the_next_slot() {
    Check::new().seeds(stage::SEEDS).run(|sim| scenario(sim).map(drop));
}

#[test]
fn clients_do_wait_for_slots_in_a_calm_network() {
    Check::new().seeds(3).calm().run(|sim| {
        let most = scenario(sim)?;
        eprintln!("most {most}");
        if most == 0 { Err("nobody had to wait".into()) } else { Ok(()) }
    });
}
