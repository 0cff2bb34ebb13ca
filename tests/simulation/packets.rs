//! Scenarios that run again with a stack on each host, so that faults strike packets.

use rotor::BoxError;
use rotor_sim::{Check, Family, Fault, Network, Sim};

use crate::ground::Packets;
use crate::{echo, http_pool, http2_pool, requests, resolver, stage, websocket};

/// The seeds of each scenario. Half of the swarms have a middlebox, and in each scenario one must
/// strike.
const SEEDS: u64 = 60;

/// How much more often than usual a middlebox strikes: these scenarios send few segments, and few
/// lookups use a connection at all.
const OFTENER: f64 = 20.0;

/// The longest packets of a network for IPv6, which does not allow 576 bytes.
const IPV6_MTUS: [usize; 4] = [1_280, 1_500, 9_000, 65_535];

/// Runs a scenario under the swarm of each seed. Packets are lost, duplicated, reordered and
/// corrupted, and connections reset, while clients wait.
#[track_caller]
fn check(scenario: impl Fn(&mut Sim) -> Result<(), BoxError>) {
    let faults = stage::faults(|family| matches!(family, Family::Packet | Family::MiddleBox));
    Check::new().seeds(SEEDS).must_strike(faults).run(|sim| {
        let rate = sim.faults().rate(Fault::MiddleBoxResets) * OFTENER;
        sim.set_faults(sim.faults().set(Fault::MiddleBoxResets, rate));
        let seed = sim.seed();
        if Packets::uses_ipv6(seed) {
            let mtu = IPV6_MTUS[(seed / 2 % 4) as usize];
            sim.set_network(Network::swarm(seed).mtu(mtu));
        }
        scenario(sim)
    });
}

#[test]
fn every_byte_is_echoed_once_the_network_heals() {
    check(echo::scenario::<Packets>);
}

#[test]
fn each_request_gets_its_own_answer_or_its_connection_ends() {
    check(requests::scenario::<Packets>);
}

#[test]
fn each_request_has_one_outcome_of_its_own_in_time_and_no_post_runs_twice() {
    check(http_pool::scenario::<Packets>);
}

#[test]
fn each_lookup_has_one_outcome_of_its_own_before_its_deadline() {
    check(resolver::scenario::<Packets>);
}

#[test]
fn messages_are_echoed_whole_in_order_and_at_most_once() {
    check(|sim| websocket::converse::<Packets>(sim, false));
}

#[test]
fn each_request_over_http2_has_one_outcome_of_its_own_and_both_ledgers_agree() {
    check(http2_pool::plain::<Packets>);
}
