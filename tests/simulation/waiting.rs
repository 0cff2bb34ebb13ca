//! Two listeners in one loop that has fewer slots than there are clients. The client that has
//! waited longest gets the next slot, however many connect to the other listener meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::ListenOptions;
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Loop};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Family, Fault, Host, Network, Script, Sim, Watched};

use crate::lines::Server;
use crate::stage::{self, Clients, PORT};

/// Slots for connections, beside those of the listeners.
const SLOTS: usize = 2;
const QUIET_PORT: u16 = 81;
/// How many clients may be accepted elsewhere while one waits: for each slot the one that waited
/// longer, and those accepted before the listener was notified of the waiting client.
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
    // Excludes faults that pause or remove a listener for other reasons.
    let excused = [Family::Accept, Family::Register, Family::Panic, Family::Crash];
    let faults = excused.into_iter().fold(sim.faults(), |faults, family| faults.without(family));
    // The host is busy, so events within a millisecond or two come in one turn: a connection that
    // ends, and a new one for the listener that is called before the waiting one. Each new
    // connection causes an event, as in kernels.
    let faults = faults.set(Fault::Gather, 1.0).set(Fault::SplitEdge, 1.0);
    sim.set_faults(faults.set(Fault::UnarmedEdgeLost, 0.0));
    sim.set_network(Network::new().draining(0.5));
    let server = serve(sim)?;
    sim.bound_waiting(server, PASSED_OVER_MAX);
    let mut busy = Clients::<SimTcpStream>::of(sim, server)?;
    // A few more clients come than can be served. So there always is a new client when a slot is
    // free, and a waiting one.
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
