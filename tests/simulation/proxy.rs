//! The example `tcp_proxy` between clients and a server of the line protocol: no client notices it.

use std::net::SocketAddr;

use rotor::BoxError;
use rotor::stream::Accept;
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Host, Script, Sim, Watched};

use crate::examples::tcp_proxy::{Proxy, Route};
use crate::lines;
use crate::stage::{self, Clients, PORT};

type Proxies = Accept<Proxy<SimTcpStream, SimTcpStream, ()>, SimTcpListener>;

fn serve(sim: &mut Sim, upstream: SocketAddr) -> Result<Host<Watched<Proxies>>, BoxError> {
    stage::serve(sim, "proxy", move |address, scope| {
        stage::accept(&address, Route::new(move |_, _| upstream), scope)
    })
}

/// Adds clients. Each plays the script for its number.
fn play(sim: &mut Sim, clients: u32, script: fn(u32) -> Script) -> Result<(), BoxError> {
    let server = lines::serve(sim, "server")?;
    let upstream = SocketAddr::new(sim.address(server), PORT);
    let proxy = serve(sim, upstream)?;
    let mut at_the_proxy = Clients::<SimTcpStream>::of(sim, proxy)?;
    for number in 0..clients {
        at_the_proxy.add(sim, script(number));
    }
    sim.run_for(stage::FAULTY)?;
    stage::heal(sim, server)?;
    stage::heal(sim, proxy)?;
    at_the_proxy.assert_all_complete(sim)?;
    stage::drain(sim, proxy)?;
    stage::drain(sim, server)
}

#[test]
fn every_line_is_echoed_through_the_proxy_once_the_network_heals() {
    stage::check(|sim| play(sim, 8, lines::script));
}
