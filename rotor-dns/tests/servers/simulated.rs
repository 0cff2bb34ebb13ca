//! The name server on a host of a simulation.

use std::io;
use std::net::SocketAddr;

use rotor_core::net::IpNet;
use rotor_core::{BoxError, Loop};
use rotor_sim::net::SimNet;
use rotor_sim::{Boot, Host, Sim, SimBackend};

use super::machine::{NameServer, Served};

/// A host that serves at port 53.
#[allow(dead_code, reason = "one of those who take this file in has others")]
pub(crate) fn serving(
    sim: &mut Sim,
    name: &str,
    served: &Served,
) -> Result<Host<NameServer<SimNet>>, BoxError> {
    serving_on::<SimNet>(sim, name, served, |boot| Ok(boot.backend()))
}

/// The same on a backend of this kind.
pub(crate) fn serving_on<N: IpNet + 'static>(
    sim: &mut Sim,
    name: &str,
    served: &Served,
    backend: fn(&Boot) -> io::Result<SimBackend>,
) -> Result<Host<NameServer<N>>, BoxError> {
    let served = served.clone();
    Ok(sim.host(name, move |boot| {
        let mut creator = Loop::<NameServer<N>, _>::with_backend(backend(boot)?, &boot.config())?;
        let address = SocketAddr::new(boot.address(), 53);
        creator.add_machine_with(|scope| NameServer::udp(&address, scope))?;
        creator.add_machine_with(|scope| NameServer::tcp(&address, scope))?;
        Ok(creator.instantiate(served.clone()))
    })?)
}
