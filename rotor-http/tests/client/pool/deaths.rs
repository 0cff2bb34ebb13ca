//! What happens to requests when connections cannot be opened, fail, or may not be used again, and
//! when a handler panics.

use std::io::ErrorKind;
use std::time::Duration;

use rotor_core::Config;
use rotor_http::client::{ClientConfig, PoolConfig};
use rotor_stream::testing::{Peer, Target};

use super::{Test, address};
use crate::probe::{BodyPlan, Probe, seconds};

#[test]
fn a_refused_connection_fails_the_request_it_was_made_for() {
    for at_once in [false, true] {
        let (config, client) =
            (PoolConfig::new().connections_per_origin_max(1), ClientConfig::new());
        let counters = client.counters();
        let mut test = Test::of(config, client, Config::new().machines_max(100));
        let refused = ErrorKind::ConnectionRefused;
        let target = if at_once { Target::FailsAtOnce(refused) } else { Target::Fails(refused) };
        test.test.world().target(address(1), target);
        test.get(1, "/1");
        let expected = "Network: NotConnected(Connect(Kind(ConnectionRefused)))";
        assert_eq!(test.outcomes(), [format!("/1: {expected}")], "at once: {at_once}");
        assert_eq!(counters.not_connected(), 1, "at once: {at_once}");
        test.test.world().target(address(1), Target::Accepts);
        test.get(1, "/2");
        test.answer(0);
        assert_eq!(test.outcomes(), ["/2: 200 hi"], "the next one tries anew");
    }
}

#[test]
fn a_request_on_a_lost_used_connection_is_retried_once_on_a_new_one() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.get(1, "/2");
    assert_eq!(test.targets(0), ["/1", "/2"]);
    test.end(0);
    assert_eq!(test.targets(1), ["/2"], "on a new connection");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);

    test.get(1, "/3");
    test.end(1);
    test.end(2);
    assert_eq!(test.outcomes(), ["/3: Peer: Closed"], "twice is enough");
    assert_eq!(test.peers.len(), 3);
}

#[test]
fn a_retried_request_keeps_its_deadline_while_it_waits() {
    let client = ClientConfig::new();
    let counters = client.counters();
    let mut test = Test::of(PoolConfig::new(), client, Config::new().machines_max(100));
    test.get(1, "/1");
    test.answer(0);
    test.ask(1, "/2", Probe { deadline: seconds(4), ..Probe::get("/2") });
    // While the request is under way, the pool does not track its deadline. The deadline of a
    // waiting request passes, and then none is left.
    test.test.world().target(address(2), Target::Hangs);
    test.ask(2, "/other", Probe { deadline: seconds(1), ..Probe::get("/other") });
    test.advance(seconds(2));
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/other: Here: Deadline(Waiting)"]);
    test.test.world().target(address(1), Target::Hangs);
    test.end(0);
    test.advance(Duration::from_millis(1_990));
    assert!(test.outcomes().is_empty(), "it waits for a new connection");
    test.advance(Duration::from_millis(20));
    // The server may have processed the request before its connection failed.
    assert_eq!(test.outcomes(), ["/2: Here: NotRepeated(Deadline(Waiting))"]);
    assert_eq!(counters.deadlines(), 2);
}

#[test]
fn a_failed_retry_reports_that_the_request_may_have_been_processed() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.get(1, "/2");
    test.test.world().target(address(1), Target::Fails(ErrorKind::ConnectionRefused));
    test.end(0);
    let outcomes = test.outcomes().concat();
    assert!(outcomes.contains("/2: Network: NotRepeated(NotConnected(Connect("), "{outcomes}");
}

#[test]
fn a_post_on_a_lost_used_connection_is_not_retried() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.ask(1, "/2", Probe::post(BodyPlan::Whole("x")));
    test.end(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: Peer: Closed"]);
    assert_eq!(test.peers.len(), 1);
}

#[test]
fn lost_connections_are_not_used_and_waiting_requests_get_new_ones() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.get(1, "/1");
    test.answer(0);
    test.end(0);
    test.get(1, "/2");
    test.get(1, "/3");
    assert_eq!(test.targets(1), ["/2"]);
    test.peers[1].reset();
    test.settle();
    assert_eq!(test.targets(2), ["/3"]);
    test.answer(2);
    let lost = "/2: Network: Lost(Reset(Kind(ConnectionReset)))";
    assert_eq!(test.outcomes(), ["/1: 200 hi", lost, "/3: 200 hi"]);
}

#[test]
fn a_request_on_a_stale_idle_connection_moves_to_a_new_one() {
    let happens: [fn(&Peer); 3] = [|peer| peer.send(b"x"), |peer| peer.end(), |peer| peer.reset()];
    for happens in happens {
        let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
        test.get(1, "/1");
        test.answer(0);
        test.peers[0].before_read(happens);
        test.ask(1, "/2", Probe::post(BodyPlan::Whole("x")));
        test.get(1, "/3");
        assert_eq!(test.targets(0), ["/1"]);
        assert_eq!(test.targets(1), ["/"], "the POST, and first");
        test.answer(1);
        assert_eq!(test.targets(1), ["/3"]);
        test.answer(1);
        assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi", "/3: 200 hi"]);
    }
}

#[test]
fn a_closing_connection_makes_room_for_the_next() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.get(1, "/1");
    test.get(1, "/2");
    test.peers[0].send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    test.settle();
    assert!(test.peers[0].is_ended() && !test.peers[0].is_dropped());
    assert_eq!(test.targets(1), ["/2"], "nobody waits for the server to end its side");
}

#[test]
fn a_handler_panic_fails_only_its_own_request() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.ask(1, "/1", Probe { panics_in: "head", ..Probe::get("/1") });
    test.get(1, "/2");
    test.answer(0);
    test.end(0);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: Caller: Panicked", "/2: 200 hi"]);
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.ask(1, "/1", Probe { panics_in: "bad", deadline: seconds(1), ..Probe::get("/1") });
    test.ask(1, "/2", Probe { panics_in: "bad", deadline: seconds(1), ..Probe::get("/2") });
    test.advance(seconds(2));
    let mut outcomes = test.outcomes();
    outcomes.sort();
    assert_eq!(outcomes, ["/1: Caller: Panicked", "/2: Caller: Unsent(Panicked)"]);
    test.end(0);
    test.get(1, "/3");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/3: 200 hi"]);
}
