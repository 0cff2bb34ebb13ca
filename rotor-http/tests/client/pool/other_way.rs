//! Requests for another protocol, which a connection of HTTP/2 does not have: they are made over
//! HTTP/1.1 alone, which is an origin by itself.

use rotor_core::Config;
use rotor_http::client::{ClientConfig, PoolConfig};
use rotor_stream::testing::Target;

use super::{HAS_OTHER_WAY, OTHER_WAY, Test, address, cancel};
use crate::http2::server::{http2, settings};
use crate::probe::{Probe, seconds};

fn upgrade(name: &'static str) -> Probe {
    Probe { upgrade: Some("shout"), ..Probe::get(name) }
}

/// A pool with a connection of HTTP/2 to a server that has no other protocols there, and to which
/// nobody gets over HTTP/1.1 for now.
fn connected(config: PoolConfig) -> Test {
    let client = ClientConfig::new().http2(http2());
    let mut test = Test::of(config, client, Config::new().machines_max(100));
    test.test.world().target(address(OTHER_WAY), Target::Hangs);
    test.get(HAS_OTHER_WAY, "/first");
    test.peers[0].send(&settings(&[]));
    test.settle();
    test
}

#[test]
fn those_that_pass_through_a_connection_wait_within_the_bound_of_an_origin() {
    let mut test = connected(PoolConfig::new().waiting_per_origin_max(2));
    for name in ["/1", "/2", "/3", "/4"] {
        test.ask(HAS_OTHER_WAY, name, upgrade(name));
    }
    assert_eq!(test.outcomes(), ["/3: Here: Full", "/4: Here: Full"]);
    test.get(HAS_OTHER_WAY, "/plain");
    assert!(test.outcomes().is_empty(), "the connection goes on");
}

#[test]
fn one_that_waits_there_is_given_up_and_has_its_deadline() {
    let mut test = connected(PoolConfig::new().waiting_per_origin_max(1));
    let given_up = test.ask(HAS_OTHER_WAY, "/1", upgrade("/1"));
    cancel(&mut test, given_up);
    let late = Probe { deadline: seconds(2), ..upgrade("/2") };
    test.ask(HAS_OTHER_WAY, "/2", late);
    assert!(test.outcomes().is_empty(), "its place is free");
    test.advance(seconds(3));
    assert_eq!(test.outcomes(), ["/2: Here: Deadline(Waiting)"]);
}
