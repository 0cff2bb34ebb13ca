//! What a pool does at its limits: of connections, of waiting requests, of time, of the slots of
//! the loop.

use std::time::Duration;

use rotor_core::{Config, Response};
use rotor_http::Limits;
#[cfg(feature = "http2")]
use rotor_http::client::ClientConfig;
use rotor_http::client::PoolConfig;
use rotor_stream::testing::Target;

#[cfg(feature = "http2")]
use super::cancel;
use super::{Machines, Requester, Test, address, end_in_next_turn};
#[cfg(feature = "http2")]
use crate::http2::server::{http2, page, settings};
use crate::probe::{Probe, seconds};

#[test]
fn concurrent_requests_get_connections_up_to_the_limit_then_queue() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(2));
    for name in ["/1", "/2", "/3", "/4", "/5"] {
        test.get(1, name);
    }
    assert_eq!(test.peers.len(), 2);
    assert_eq!([test.targets(0), test.targets(1)], [["/1"], ["/2"]]);
    test.answer(1);
    assert_eq!(test.targets(1), ["/3"]);
    test.answer(0);
    assert_eq!(test.targets(0), ["/4"]);
    test.answer(0);
    test.answer(0);
    test.answer(1);
    assert_eq!(
        test.outcomes(),
        ["/2: 200 hi", "/1: 200 hi", "/4: 200 hi", "/5: 200 hi", "/3: 200 hi"]
    );
    assert_eq!(test.peers.len(), 2);
}

#[test]
fn requests_beyond_the_waiting_limit_of_an_origin_are_rejected() {
    let config = PoolConfig::new().connections_per_origin_max(1).waiting_per_origin_max(2);
    let mut test = Test::new(config);
    for name in ["/1", "/2", "/3", "/4"] {
        test.get(1, name);
    }
    assert_eq!(test.outcomes(), ["/4: Here: Full"]);
    test.get(2, "/elsewhere");
    assert!(test.outcomes().is_empty());
    for _ in 0..3 {
        test.answer(0);
    }
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi", "/3: 200 hi"]);
}

#[test]
fn waiting_requests_for_all_origins_are_limited() {
    let mut test = Test::new(PoolConfig::new().waiting_max(3));
    for port in 1..=5 {
        test.test.world().target(address(port), Target::Hangs);
    }
    for (port, name) in (1..).zip(["/1", "/2", "/3", "/4", "/5"]) {
        test.get(port, name);
    }
    assert_eq!(test.outcomes(), ["/4: Here: Full", "/5: Here: Full"]);
    test.advance(seconds(11));
    assert_eq!(test.outcomes().len(), 3, "connecting has taken too long");
    test.test.world().target(address(5), Target::Accepts);
    test.get(5, "/5");
    test.answer(0);
    assert_eq!(test.outcomes(), ["/5: 200 hi"]);
}

#[test]
fn waiting_requests_are_limited_by_their_held_bytes() {
    // A handler, its future and its queue entry take far less than 100 KiB; the size of a body is
    // what its handler reports.
    for (held, expected) in [(95, ""), (105, "Here: Full")] {
        let mut test = Test::new(PoolConfig::new().waiting_bytes_max(200 << 10));
        test.test.world().target(address(1), Target::Hangs);
        test.ask(1, "/1", Probe { held: 95 << 10, ..Probe::get("/1") });
        test.ask(1, "/2", Probe { held: held << 10, ..Probe::get("/2") });
        let outcomes = test.outcomes();
        assert_eq!(outcomes.concat().trim_start_matches("/2: "), expected, "{held} KiB");
    }
}

#[test]
fn a_panic_in_held_bytes_fails_only_its_own_request() {
    let mut test = Test::new(PoolConfig::new());
    test.ask(1, "/1", Probe { panics_in: "weighed", ..Probe::get("/1") });
    assert_eq!(test.outcomes(), ["/1: Caller: Unsent(Panicked)"]);
    test.get(1, "/2");
    test.answer(0);
    assert_eq!(test.outcomes(), ["/2: 200 hi"]);
}

#[test]
fn a_panic_in_held_bytes_on_a_retry_fails_only_its_own_request() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.ask(1, "/2", Probe { panics_in: "weighed again", ..Probe::get("/2") });
    test.end(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: Caller: Panicked"]);
    test.get(1, "/3");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/3: 200 hi"]);
}

#[test]
fn a_deadline_covers_waiting_connecting_and_answering() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.test.world().target(address(2), Target::Hangs);
    let within = |name, time| Probe { deadline: time, ..Probe::get(name) };
    test.ask(1, "/answering", within("/answering", seconds(5)));
    test.ask(1, "/waiting", within("/waiting", seconds(3)));
    test.ask(2, "/connecting", within("/connecting", seconds(4)));
    test.advance(Duration::from_millis(2_990));
    assert!(test.outcomes().is_empty());
    test.advance(Duration::from_millis(20));
    assert_eq!(test.outcomes(), ["/waiting: Here: Deadline(Waiting)"]);
    test.advance(seconds(1));
    assert_eq!(test.outcomes(), ["/connecting: Here: Deadline(Waiting)"]);
    test.advance(seconds(1));
    assert_eq!(test.outcomes(), ["/answering: Peer: Deadline(Receiving)"]);
    assert!(test.peers[0].is_ended());
}

#[test]
fn a_request_without_a_deadline_gets_the_timeout_of_the_pool() {
    let mut test = Test::new(PoolConfig::new().request_timeout(seconds(2)));
    let pool = test.pool.clone().expect("there is a handle");
    test.test.add(|scope| {
        let future = pool.ask(address(1), Probe::get("/"), scope).ok();
        Response::ok(Machines::Requester(Requester { name: "/", future }))
    });
    test.settle();
    test.advance(Duration::from_millis(1_990));
    assert!(test.outcomes().is_empty());
    test.advance(Duration::from_millis(20));
    assert_eq!(test.outcomes(), ["/: Peer: Deadline(Receiving)"]);
}

#[test]
fn connecting_has_its_own_timeout() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.test.world().target(address(1), Target::Hangs);
    test.get(1, "/1");
    test.get(1, "/2");
    test.advance(seconds(11));
    assert_eq!(test.outcomes(), ["/1: Network: NotConnected(ConnectTimeout)"]);
    test.advance(seconds(11));
    assert_eq!(test.outcomes(), ["/2: Network: NotConnected(ConnectTimeout)"]);
}

#[test]
fn an_idle_connection_is_closed_for_another_server_at_the_total_limit() {
    let mut test = Test::new(PoolConfig::new().connections_max(1));
    test.get(1, "/1");
    test.get(2, "/2");
    assert_eq!(test.peers.len(), 1);
    test.answer(0);
    assert!(test.peers[0].is_ended());
    test.end(0);
    assert_eq!(test.targets(1), ["/2"]);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);
}

#[test]
fn a_busy_server_yields_a_connection_at_the_total_limit() {
    let mut test = Test::new(PoolConfig::new().connections_max(2));
    for target in ["/1", "/2", "/3", "/4"] {
        test.get(1, target);
    }
    test.get(2, "/other");
    assert_eq!(test.peers.len(), 2);
    test.answer(0);
    assert!(test.peers[0].is_ended());
    test.end(0);
    assert_eq!(test.targets(2), ["/other"]);
    // The connection that is left to the first server serves the waiting requests.
    for _ in 0..3 {
        test.answer(1);
    }
    test.answer(2);
    let outcomes = ["/1: 200 hi", "/2: 200 hi", "/3: 200 hi", "/4: 200 hi", "/other: 200 hi"];
    assert_eq!(test.outcomes(), outcomes);
}

#[test]
fn a_pool_without_a_slot_waits_for_one() {
    // The pool, two requesters, and one slot too few for the connections.
    let mut test = Test::with(PoolConfig::new(), Limits::new(), Config::new().machines_max(4));
    test.get(1, "/1");
    test.get(1, "/2");
    assert_eq!(test.peers.len(), 1);
    assert!(test.outcomes().is_empty());
    test.answer(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi"]);
    test.settle();
    let peer = test.peers.len() - 1;
    test.answer(peer);
    assert_eq!(test.outcomes(), ["/2: 200 hi"]);
}

#[test]
fn requests_beyond_the_queue_limit_of_the_pool_are_returned() {
    let mut test = Test::new(PoolConfig::new().asks_max(2));
    let pool = test.pool.clone().expect("there is a handle");
    let mut asked = Vec::new();
    test.test.add(|scope| {
        for _ in 0..3 {
            asked.push(pool.ask(address(1), Probe::get("/"), scope).is_ok());
        }
        Response::ok(Machines::Requester(Requester { name: "", future: None }))
    });
    assert_eq!(asked, [true, true, false]);
    test.settle();
    assert_eq!(test.prepared_count(), 0, "both were cancelled");
}

#[test]
fn an_idle_connection_to_another_server_is_closed_if_no_slot_is_free() {
    // The pool, a requester, and one connection.
    let mut test = Test::with(PoolConfig::new(), Limits::new(), Config::new().machines_max(3));
    test.get(1, "/1");
    test.answer(0);
    test.get(1, "/2");
    assert_eq!(test.targets(0), ["/1", "/2"], "one to the same server serves");
    test.answer(0);
    test.get(2, "/3");
    assert!(test.peers[0].is_ended());
    test.end(0);
    assert_eq!(test.targets(1), ["/3"]);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi", "/3: 200 hi"]);
}

/// A request that is cancelled before the server's settings arrive leaves the connection idle.
#[cfg(feature = "http2")]
#[test]
fn an_idle_connection_without_settings_yet_makes_room_or_serves() {
    let client = ClientConfig::new().http2(http2());
    let config = PoolConfig::new().connections_max(1);
    let mut test = Test::of(config, client, Config::new().machines_max(100));
    for name in ["/1", "/2"] {
        let given_up = test.get(1, name);
        cancel(&mut test, given_up);
    }
    assert_eq!((test.peers.len(), test.prepared_count()), (1, 2));
    test.get(2, "/3");
    assert!(test.peers[0].is_ended());
    test.end(0);
    test.peers[1].send(&[settings(&[]), page(1, "a")].concat());
    test.settle();
    assert_eq!(test.outcomes(), ["/3: 200 a"]);
}

#[cfg(feature = "http2")]
#[test]
fn a_pool_without_a_slot_has_learned_nothing_of_the_server() {
    let client = ClientConfig::new().http2(http2());
    // The pool, two squatters, and a requester.
    let mut test = Test::of(PoolConfig::new(), client, Config::new().machines_max(4));
    let idle = || Response::ok(Machines::Requester(Requester { name: "", future: None }));
    let squatters = [(); 2].map(|()| test.test.add(|_| idle()));
    let pool = test.pool.clone().expect("there is a handle");
    test.test.add(|scope| {
        let ask = |name| pool.ask(address(1), Probe::get(name), scope).ok();
        let (future, others) = (ask("/1"), [ask("/2"), ask("/3")]);
        scope.futures.extend(others.into_iter().flatten());
        Response::ok(Machines::Requester(Requester { name: "/1", future }))
    });
    test.settle();
    assert!(test.peers.is_empty(), "there is no slot");
    squatters.into_iter().for_each(|squatter| end_in_next_turn(&mut test, squatter));
    test.settle();
    assert_eq!(test.peers.len(), 1, "it may take all of them");
    test.peers[0].send(&settings(&[]));
    test.settle();
    assert_eq!((test.peers.len(), test.prepared_count()), (1, 3));
    test.peers[0].send(&page(1, "a"));
    test.settle();
    assert_eq!(test.outcomes(), ["/1: 200 a"]);
}

#[test]
fn a_slot_that_a_pool_waits_for_is_reserved_for_it() {
    let mut test = Test::with(PoolConfig::new(), Limits::new(), Config::new().machines_max(5));
    let squatter =
        test.test.add(|_| Response::ok(Machines::Requester(Requester { name: "", future: None })));
    test.get(1, "/1");
    test.get(2, "/2");
    assert_eq!(test.peers.len(), 1, "there is no slot for another");
    end_in_next_turn(&mut test, squatter);
    while test.test.machines() == 5 {
        assert!(test.test.turn(), "it is about to end");
    }
    // The slot is free, and the pool is about to be notified.
    let squat = test.test.instance().add_machine_with(|_| {
        Response::ok(Machines::Requester(Requester { name: "", future: None }))
    });
    assert!(squat.is_err(), "nobody is faster");
    test.settle();
    assert_eq!(test.peers.len(), 2);
    assert_eq!(test.targets(1), ["/2"]);
}
