//! Between a pool of clients and a server of ours, under all faults: each request has one outcome
//! before its deadline, either its own intact response or an error. No POST is served twice.
//! WebSocket messages come back complete, in order and at most once, with either version of HTTP on
//! each side.

use std::net::SocketAddr;

use rotor::http::client::PoolConfig;
use rotor::stream::AcceptConfig;
use rotor_sim::net::SimTcpStream;
use rotor_sim::{Fault, Sim};

use super::{passing_on, passing_on_by};
use crate::ground::Bytes;
use crate::http_pool::{self, Ledger, ScenarioConfig};
use crate::stage::{self, PORT};
use crate::websocket::{self, HttpVersions};

/// Each of two pools may repeat a request once if its method allows it, on a connection that had
/// been used before.
const REPEATS_MAX: u32 = 3;

/// A proxy may have only four slots. Then one of them is for a client, and one for a connection to
/// the server.
fn connections(sim: &Sim) -> usize {
    if sim.faults().rate(Fault::SmallSlab) > 0.0 { 1 } else { 3 }
}

#[test]
fn each_proxied_request_has_one_outcome_of_its_own_and_no_post_runs_twice() {
    stage::check(|sim| {
        let ledger = Ledger::default();
        let server = http_pool::serving(sim, &ledger)?;
        let upstream = SocketAddr::new(sim.address(server), PORT);
        let connections = connections(sim);
        let clients = AcceptConfig::new().connections_max(connections);
        let config = PoolConfig::new().connections_per_origin_max(4).waiting_per_origin_max(100);
        let proxy = passing_on(sim, upstream, clients, config)?;
        let address = SocketAddr::new(sim.address(proxy), PORT);
        let demands = ScenarioConfig {
            repeats_max: REPEATS_MAX,
            connections,
            ..ScenarioConfig::new(http_pool::client())
        };
        http_pool::ask::<SimTcpStream>(sim, address, &ledger, &demands, |sim| {
            stage::heal(sim, server)?;
            stage::heal(sim, proxy)
        })
    });
}

/// WebSockets through the proxy, with these versions of HTTP.
fn tunnels(client_has_http2: bool, upstream_has_http2: bool) {
    stage::check(|sim| {
        let has_http2 = client_has_http2 || upstream_has_http2;
        let server = websocket::serving::<Bytes>(sim, has_http2)?;
        let upstream = SocketAddr::new(sim.address(server), PORT);
        let clients = AcceptConfig::new().connections_max(connections(sim));
        let config = PoolConfig::new().connections_per_origin_max(4).waiting_per_origin_max(100);
        let proxy = passing_on_by(sim, upstream, clients, config, upstream_has_http2)?;
        let address = SocketAddr::new(sim.address(proxy), PORT);
        let way = HttpVersions { asks_by_http2: client_has_http2, has_http2 };
        websocket::converse_with::<Bytes>(sim, address, way, |sim| {
            stage::heal(sim, server)?;
            stage::heal(sim, proxy)
        })
    });
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_on_both_sides() {
    tunnels(true, true);
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_at_the_client() {
    tunnels(true, false);
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_at_the_upstream() {
    tunnels(false, true);
}
