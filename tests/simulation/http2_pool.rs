//! A pool whose connections use HTTP/2 with our server, under all faults, by prior knowledge and by
//! ALPN. The guarantees of HTTP/1.1 hold here too. The flow-control windows of both sides agree:
//! neither side sends more than the other allows, and none waits for window that it was given. When
//! nothing is in flight, both sides have the same values.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor::http::client::{self, ClientConfig};
use rotor::http::h2::Ledger;
use rotor::http::server::{self, HttpAccept, ServerConfig};
use rotor::net::Listener;
use rotor::tls::{Roots, TlsClient, TlsClientConfig, TlsServer, TlsServerConfig, TlsStream};
use rotor::{BoxError, Compose2};
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Check, Host, Sim};

use crate::ground::{Bytes, Ground, StreamOf};
use crate::http_pool::{self, AskSocket, Machines, ScenarioConfig, Serves};
use crate::stage::{self, PORT};
use crate::tls::identity;

/// On a network that carries 64 bytes in a fifth of a second, an acknowledgement may wait this long
/// behind the pages of other requests.
const SLOW: Duration = Duration::from_secs(100);

/// How many requests are held while the windows of both sides are compared.
const HELD: u32 = 8;

/// The smallest window of a connection, so that all of it is granted again and again.
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
    // The preface is in one TLS record with the output after it, up to 16 KiB, and is not seen
    // before the record is complete.
    let limits = http_pool::limits().head_timeout(SLOW);
    let counters = Arc::new(server::Counters::default());
    let counted = counters.clone();
    let config = move || {
        let limits = limits.clone();
        ServerConfig::new().limits(limits).http2(server.clone()).count_with(counted.clone())
    };
    // The head of a response may wait this long behind the bodies of others.
    let patient = http_pool::limits().response_timeout(3 * SLOW);
    (http_pool::client().limits(patient).http2(client), counters, config)
}

/// Checks that no side has broken the protocol, and that only HTTP/2 was used.
fn check(client: &client::Counters, server: &server::Counters) -> Result<(), BoxError> {
    let broken = client.protocol_errors() + server.protocol_errors();
    // A clock jump may end connections that have begun.
    let late = client.settings_timeouts() + server.settings_timeouts();
    if broken > late || client.http2_connections() == 0 {
        return Err(format!("{client:?}\n{server:?}").into());
    }
    if client.connections() != client.http2_connections() {
        return Err("a connection spoke HTTP/1.1".into());
    }
    Ok(())
}

/// Checks that, with nothing in flight, what one side may send equals what the other accepts, on
/// connections and on streams. Some streams are open: their bodies are held.
fn ledgers_agree<S: AskSocket, L: Listener>(
    sim: &mut Sim,
    clients: Host<Machines<S>>,
    server: Host<HttpAccept<Serves, L>>,
    target: S::Target,
) -> Result<(), BoxError> {
    http_pool::ask_held(sim, clients, target, HELD);
    // On a network that carries 64 bytes in a fifth of a second, all data in flight has arrived by
    // then.
    sim.run_for(SLOW.mul_f32(0.9))?;
    let asked = sim.machines(clients, |_, machine| match machine {
        Compose2::A(pooled) => pooled.ledger(),
        Compose2::B(_) => None,
    });
    let served = sim.machines(server, |_, machine| {
        let stream = machine.connection()?;
        Some((stream.peer_address()?, stream.protocol()?.ledger()?))
    });
    let of_clients: BTreeMap<SocketAddr, Ledger> = asked.into_iter().flatten().collect();
    let of_server: BTreeMap<SocketAddr, Ledger> =
        served.into_iter().flatten().map(|(peer, own)| (peer, own.mirrored())).collect();
    let streams: usize = of_clients.values().map(|ledger| ledger.sends.len() - 1).sum();
    if of_clients != of_server || streams != HELD as usize {
        return Err(format!("windows differ:\n{of_clients:?}\n{of_server:?}").into());
    }
    Ok(())
}

/// By prior knowledge, on plain connections.
pub(crate) fn plain<G: Ground>(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = http_pool::Ledger::default();
    let (client, served, config) = configs(true);
    let counters = (client.counters(), served);
    let server = http_pool::serving_of::<G, _>(sim, &ledger, config, |listener| listener)?;
    let address = SocketAddr::new(G::server_address(sim.address(server), sim.seed()), PORT);
    let demands = ScenarioConfig { ground: G::backend, ..ScenarioConfig::new(client) };
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    let look = |sim: &mut Sim, clients| ledgers_agree(sim, clients, server, address);
    let both = [address, address];
    http_pool::ask_both::<StreamOf<G>>(sim, both, &ledger, &demands, heal, &look)?;
    check(&counters.0, &counters.1)
}

/// By ALPN, over TLS.
fn over_tls(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = http_pool::Ledger::default();
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
    let demands = ScenarioConfig::new(client);
    let heal = |sim: &mut Sim| stage::heal(sim, server);
    let look = |sim: &mut Sim, clients| ledgers_agree(sim, clients, server, target.clone());
    let both = [target.clone(), target.clone()];
    http_pool::ask_both::<TlsStream<SimTcpStream>>(sim, both, &ledger, &demands, heal, &look)?;
    check(&counters.0, &counters.1)
}

#[test]
fn each_request_has_one_outcome_of_its_own_and_both_ledgers_agree() {
    stage::check(plain::<Bytes>);
}

#[test]
fn each_run_is_a_function_of_its_seed() {
    Check::new().seeds(20).twice().run(plain::<Bytes>);
}

#[test]
fn each_request_over_tls_has_one_outcome_of_its_own() {
    Check::new().seeds(20).twice().run(over_tls);
}
