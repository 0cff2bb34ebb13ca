//! The end of a resolver, and of the queries that it leaves behind; of a query that makes room.

use std::time::Duration;

use rotor_core::Loop;
use rotor_dns::{ResolvConf, Resolver, ResolverConfig};
use rotor_sim::net::SimNet;
use rotor_sim::{Network, Sim};

use crate::machine::Served;
use crate::simulated::serving;
use crate::wire::{self, asked, truncated};
use crate::{SECOND, Stage, outcome, right_answer};

/// A server that is silent about IPv6 addresses, as some are. Lookups go on without them.
fn silent_about_ipv6() -> Served {
    Served::new(
        |query, _, _| {
            if asked(query).1 == wire::AAAA { vec![] } else { vec![right_answer(query)] }
        },
    )
}

#[test]
fn a_query_that_is_awaited_no_longer_ends_with_its_draining_resolver() {
    let mut stage = Stage::new(vec![silent_about_ipv6()], ResolvConf::default(), |config| config);
    let reply = stage.dns.addresses().ask_from_thread("www.example".into()).expect("room");
    stage.run_for(Duration::from_micros(50)); // both queries are in flight, and awaited
    let began = stage.sim.now();
    stage.sim.drain(stage.resolver, 60 * SECOND).expect("nothing is left");
    assert!(outcome(reply).is_ok(), "the IPv4 addresses are enough");
    assert!(stage.sim.now() - began < SECOND);
}

#[test]
fn a_query_ends_with_its_resolver_when_no_handle_is_left() {
    let mut sim = Sim::new(1);
    let server = serving(&mut sim, "server", &silent_about_ipv6()).expect("it starts");
    let address = (sim.address(server), 53).into();
    let config = ResolverConfig::new(ResolvConf::default()).servers(vec![address]);
    let (give, take) = std::sync::mpsc::channel();
    let resolver = sim.host("resolver", move |boot| {
        let mut creator =
            Loop::<Resolver<SimNet, ()>, _>::with_backend(boot.backend(), &boot.config())?;
        let dns = creator.add_part(|it| it, |scope| Ok(Resolver::new(config.clone(), scope)))?;
        give.send(dns)?;
        Ok(creator.instantiate(()))
    });
    let resolver = resolver.expect("it starts");
    let dns = take.recv().expect("it was sent");
    let reply = dns.addresses().ask_from_thread("www.example".into()).expect("there is room");
    drop(dns);
    sim.run_for(SECOND).expect("nothing goes wrong");
    assert!(outcome(reply).is_ok(), "the IPv4 addresses are enough");
    let machines = sim.machines(resolver, |_, machine| format!("{machine:?}"));
    assert!(machines.is_empty(), "{machines:?}");
}

/// Otherwise it would keep its place for the full time of a server once more.
#[test]
fn a_query_that_makes_room_has_no_more_time_for_a_further_step() {
    let server = Served::new(|query, is_tcp, _| match asked(query).0.as_str() {
        "slow.example" if is_tcp => vec![],
        "slow.example" => vec![truncated(query)],
        _ => vec![right_answer(query)],
    });
    let conf = ResolvConf::parse("options timeout:5 attempts:1");
    let mut stage = Stage::new(vec![server], conf, |config| config.queries_max(1));
    stage.sim.set_network(Network::new().latency(SECOND / 4..SECOND / 3));
    let given_up = stage.start_lookup("slow.example");
    stage.run_for(SECOND / 10);
    drop(given_up);
    let other = stage.start_lookup("other.example");
    stage.run_for(2 * SECOND);
    assert!(outcome(other).is_ok());
}
