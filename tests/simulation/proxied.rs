//! HTTP behind a load balancer: a pool of connections, each with a PROXY header, under all faults.
//! The guarantees are the same as without the header, and no fault of the network makes a header
//! invalid.

use std::net::SocketAddr;

use rotor::BoxError;
use rotor::proxy_protocol::{
    ProxyHeader, ProxyProtocol, ProxyProtocolConfig, ProxyStream, ProxyTarget, Version,
};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Sim};

use crate::http_pool::{self, Ledger, ScenarioConfig};
use crate::stage::{self, PORT};

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = Ledger::default();
    let config = ProxyProtocolConfig::new(["0.0.0.0/0".parse()?, "::/0".parse()?]);
    let behind = ProxyProtocol::new(config);
    let counters = behind.counters().clone();
    let server = http_pool::serving_over(sim, &ledger, move |listener| behind.over(listener))?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let (source, destination) = (([192, 0, 2, 1], 5).into(), ([198, 51, 100, 1], 443).into());
    let header = ProxyHeader::proxied(Version::V2, source, destination);
    let first = ProxyTarget::new(address, header.with_checksum()?);
    let second = ProxyTarget::new(address, ProxyHeader::proxied(Version::V1, source, destination));
    let demands = ScenarioConfig::new(http_pool::client());
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    http_pool::ask_both::<ProxyStream<SimTcpStream>>(
        sim,
        [first, second],
        &ledger,
        &demands,
        heal,
        &|_, _| Ok(()),
    )?;
    // A network fault may truncate a header, but nothing else.
    let wrong = counters
        .iter()
        .filter(|(name, count)| *count > 0 && !matches!(*name, "proxied" | "abandoned" | "late"));
    let wrong: Vec<_> = wrong.collect();
    if !wrong.is_empty() || counters.proxied() == 0 {
        return Err(format!("{wrong:?} of {counters:?}").into());
    }
    Ok(())
}

#[test]
fn each_request_with_a_proxy_header_has_one_outcome_and_its_own_header() {
    Check::new().seeds(30).twice().run(scenario);
}
