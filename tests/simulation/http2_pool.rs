//! A pool whose connections speak HTTP/2 against a server of ours, under all faults, by prior
//! knowledge and by the handshake of TLS: what holds on HTTP/1.1 holds here, and both ledgers of the
//! windows agree: neither side sends beyond what the other allows, and none waits for room that it was
//! given.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor::BoxError;
use rotor::http::client::{self, ClientConfig};
use rotor::http::server::{self, ServerConfig};
use rotor::tls::{Roots, TlsClient, TlsClientConfig, TlsServer, TlsServerConfig, TlsStream};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Sim};

use crate::http_pool::{self, Demands, Ledger};
use crate::stage::{self, PORT};
use crate::tls::identity;

/// On a network that passes 64 octets in a fifth of a second, an acknowledgement may wait for so long
/// behind the pages of others.
const SLOW: Duration = Duration::from_secs(100);

/// The smallest windows of connections, so that all of them are given again and again.
const WINDOW: u32 = 65_535;

fn configs(
    prior_knowledge: bool,
) -> (ClientConfig, Arc<server::Counters>, impl Fn() -> ServerConfig + 'static) {
    let client = client::Http2Config::new()
        .prior_knowledge(prior_knowledge)
        .connection_window(WINDOW)
        .settings_timeout(SLOW)
        .ping_timeout(SLOW);
    let server = server::Http2Config::new()
        .prior_knowledge(prior_knowledge)
        .connection_window(WINDOW)
        .streams_max(7)
        .settings_timeout(SLOW);
    let limits = http_pool::limits();
    let counters = Arc::new(server::Counters::default());
    let counted = counters.clone();
    let config = move || {
        let limits = limits.clone();
        ServerConfig::new().limits(limits).http2(server.clone()).count_with(counted.clone())
    };
    // The head of a response may wait as long behind the bodies of others.
    let patient = http_pool::limits().response_timeout(3 * SLOW);
    (http_pool::client().limits(patient).http2(client), counters, config)
}

/// Nobody has broken the protocol, and all of it was HTTP/2.
fn check(client: &client::Counters, server: &server::Counters) -> Result<(), BoxError> {
    let broken = client.protocol_errors() + server.protocol_errors();
    // A clock that jumps may be the end of those that have begun.
    let late = client.settings_timeouts() + server.settings_timeouts();
    if broken > late || client.http2_connections() == 0 {
        return Err(format!("{client:?}\n{server:?}").into());
    }
    if client.connections() != client.http2_connections() {
        return Err("a connection spoke HTTP/1.1".into());
    }
    Ok(())
}

fn plain(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = Ledger::default();
    let (client, served, config) = configs(true);
    let counters = (client.counters(), served);
    let server = http_pool::serving_with(sim, &ledger, config, |listener| listener)?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let demands = Demands { repeats_max: 1, connections: 3, client };
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    http_pool::ask::<SimTcpStream>(sim, address, &ledger, &demands, heal)?;
    check(&counters.0, &counters.1)
}

fn over_tls(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = Ledger::default();
    let (client, served, config) = configs(false);
    let counters = (client.counters(), served);
    let (identity, certificate) = identity();
    let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let tls = TlsServer::new(TlsServerConfig::new(identity.clone()).alpn(&protocols))?;
    let roots = Roots::none().der(certificate.clone())?;
    let tls_client = TlsClient::new(TlsClientConfig::new(roots).alpn(&protocols))?;
    let over = move |listener| tls.over(listener);
    let server = http_pool::serving_with(sim, &ledger, config, over)?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let target = tls_client.to(address, "server")?;
    let demands = Demands { repeats_max: 1, connections: 3, client };
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    http_pool::ask::<TlsStream<SimTcpStream>>(sim, target, &ledger, &demands, heal)?;
    check(&counters.0, &counters.1)
}

#[test]
fn each_request_has_one_outcome_its_own_and_both_ledgers_agree() {
    stage::check(plain);
}

#[test]
fn each_run_is_a_function_of_its_seed() {
    Check::new().seeds(20).twice().run(plain);
}

#[test]
fn over_tls_it_is_the_same() {
    Check::new().seeds(20).twice().run(over_tls);
}
