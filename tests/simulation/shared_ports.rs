//! Two listeners that share an address (`SO_REUSEPORT`), each with its own queue: no connection is
//! lost between them.

use std::net::SocketAddr;

use rotor::BoxError;
use rotor::net::ListenOptions;
use rotor::stream::{Accept, AcceptConfig};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Host, Sim, Watched};

use crate::lines::{self, Server};
use crate::stage::{self, Clients, PORT};

fn serve(sim: &mut Sim) -> Result<Host<Watched<Server>>, BoxError> {
    let host = sim.host("server", |boot| {
        let mut creator = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let options = ListenOptions::new().reuse_port(true);
        for _ in 0..2 {
            creator.add_machine_with(|scope| {
                Watched::make(scope, |scope| {
                    Accept::bind(&address, &options, (), AcceptConfig::new(), scope)
                })
            })?;
        }
        Ok(creator.instantiate(()))
    })?;
    Ok(host)
}

#[test]
fn every_line_is_echoed_by_either_listener() {
    stage::check(|sim| {
        let server = serve(sim)?;
        let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
        for number in 0..8 {
            clients.add(sim, lines::script(number));
        }
        stage::play(sim, server, &clients)
    });
}
