//! Upgrade requests on an HTTP/2 connection that does not offer them, and requests that a server
//! answers only over HTTP/1.1: both are sent over HTTP/1.1, which is a separate origin.

use rotor_core::Config;
use rotor_http::client::{ClientConfig, PoolConfig};
use rotor_stream::testing::Target;

use super::{HTTP1_ALTERNATIVE, HTTP1_ELSEWHERE, Test, address, cancel};
use crate::http2::server::{go_away, headers, http2, page, reset, settings};
use crate::probe::{BodyPlan, Probe, seconds};

fn upgrade_request(name: &'static str) -> Probe {
    Probe { upgrade: Some("shout"), ..Probe::get(name) }
}

/// A pool with an HTTP/2 connection to a server that offers no upgrade there, and that cannot be
/// reached over HTTP/1.1 for now.
fn connected_pool(config: PoolConfig) -> Test {
    let client = ClientConfig::new().http2(http2());
    let mut test = Test::of(config, client, Config::new().machines_max(100));
    test.test.world().target(address(HTTP1_ALTERNATIVE), Target::Hangs);
    test.get(HTTP1_ELSEWHERE, "/first");
    test.peers[0].send(&settings(&[]));
    test.settle();
    test
}

#[test]
fn requests_passed_on_to_http1_wait_within_the_limit_of_an_origin() {
    let mut test = connected_pool(PoolConfig::new().waiting_per_origin_max(2));
    for name in ["/1", "/2", "/3", "/4"] {
        test.ask(HTTP1_ELSEWHERE, name, upgrade_request(name));
    }
    assert_eq!(test.outcomes(), ["/3: Here: Full", "/4: Here: Full"]);
    test.get(HTTP1_ELSEWHERE, "/plain");
    assert!(test.outcomes().is_empty(), "the connection goes on");
}

#[test]
fn a_request_passed_on_to_http1_can_be_cancelled_and_can_expire() {
    let mut test = connected_pool(PoolConfig::new().waiting_per_origin_max(1));
    let given_up = test.ask(HTTP1_ELSEWHERE, "/1", upgrade_request("/1"));
    cancel(&mut test, given_up);
    let late = Probe { deadline: seconds(2), ..upgrade_request("/2") };
    test.ask(HTTP1_ELSEWHERE, "/2", late);
    assert!(test.outcomes().is_empty(), "its place is free");
    test.advance(seconds(3));
    assert_eq!(test.outcomes(), ["/2: Here: Deadline(Waiting)"]);
}

/// RFC 9113 §7. These sockets negotiate no protocol, so the alternative speaks HTTP/2 as well.
#[test]
fn a_request_required_over_http1_is_retried_there() {
    const REQUIRED: u32 = 0xd;
    let mut test = connected_pool(PoolConfig::new());
    test.test.world().target(address(HTTP1_ALTERNATIVE), Target::Accepts);
    test.peers[0].send(&reset(1, REQUIRED));
    test.settle();
    assert_eq!((test.peers.len(), test.outcomes()), (2, vec![]));
    test.peers[1].send(&[settings(&[]), page(1, "there")].concat());
    test.settle();
    assert_eq!(test.outcomes(), ["/first: 200 there"]);
    // Not retried if the server may have processed the request, or if there is no further
    // alternative.
    test.ask(HTTP1_ELSEWHERE, "/post", Probe::post(BodyPlan::Whole("x")));
    test.peers[0].send(&reset(3, REQUIRED));
    test.get(HTTP1_ELSEWHERE, "/begun");
    test.peers[0].send(&[headers(5, &[(":status", "103")], false), reset(5, REQUIRED)].concat());
    test.get(HTTP1_ALTERNATIVE, "/there");
    test.peers[1].send(&reset(3, REQUIRED));
    test.settle();
    let expected = ["/post", "/begun", "/there"].map(|name| format!("{name}: Peer: Reset(13)"));
    assert_eq!(test.outcomes(), expected);
    assert_eq!(test.peers.len(), 2);
}

#[test]
fn a_sent_request_without_room_over_http1_may_have_been_processed() {
    let mut test = connected_pool(PoolConfig::new().waiting_per_origin_max(1));
    test.ask(HTTP1_ELSEWHERE, "/up", upgrade_request("/up"));
    test.peers[0].send(&reset(1, 0xd));
    test.settle();
    assert_eq!(test.outcomes(), ["/first: Here: NotRepeated(Full)"]);
}

#[test]
fn requests_beyond_a_goaway_that_requires_http1_are_sent_there() {
    let mut test = connected_pool(PoolConfig::new());
    test.test.world().target(address(HTTP1_ALTERNATIVE), Target::Accepts);
    test.ask(HTTP1_ELSEWHERE, "/post", Probe::post(BodyPlan::Whole("x")));
    test.test.world().target(address(HTTP1_ELSEWHERE), Target::Hangs);
    test.peers[0].send(&go_away(1, 0xd));
    test.settle();
    assert_eq!((test.peers.len(), test.outcomes()), (2, vec![]));
    test.peers[1].send(&[settings(&[]), page(1, "there")].concat());
    test.peers[0].send(&page(1, "here"));
    test.settle();
    assert_eq!(test.outcomes(), ["/post: 200 there", "/first: 200 here"]);
}
