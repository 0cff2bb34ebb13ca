//! An idle pooled connection makes room for others.

#[cfg(feature = "http2")]
use rotor_core::Config;
use rotor_core::{Response, Room};
#[cfg(feature = "http2")]
use rotor_http::client::ClientConfig;
use rotor_http::client::PoolConfig;

use super::{Machines, Requester, Test};
#[cfg(feature = "http2")]
use crate::http2::server::{http2, page, settings};
use crate::probe::{Probe, seconds};

impl Test {
    /// Asks for room, as a listener does that cannot accept a connection.
    fn ask_for_room(&mut self) {
        self.test.add(|scope| {
            scope.ask_for_room(Room::new());
            Response::ok(Machines::Requester(Requester { name: "listener", future: None }))
        });
        self.settle();
    }
}

#[test]
fn an_unused_connection_makes_room_and_the_next_request_gets_a_new_one() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.ask_for_room();
    assert!(!test.peers[0].is_dropped(), "a request is under way");
    test.advance(seconds(3));
    test.answer(0);
    test.ask_for_room();
    assert!(!test.peers[0].is_dropped(), "it was in use a moment ago");
    test.advance(seconds(2));
    test.ask_for_room();
    assert!(test.peers[0].is_ended() && test.peers[0].is_dropped());
    assert_eq!(test.test.instance().stats().read().made_room, 1);
    test.get(1, "/2");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);
}

#[cfg(feature = "http2")]
#[test]
fn an_http2_connection_that_makes_room_sends_goaway() {
    let client = ClientConfig::new().http2(http2());
    let mut test = Test::of(PoolConfig::new(), client, Config::new().machines_max(100));
    test.get(1, "/1");
    test.peers[0].send(&[settings(&[]), page(1, "a")].concat());
    test.settle();
    assert!(!test.peers[0].take_received().is_empty());
    test.advance(seconds(5));
    test.ask_for_room();
    assert!(test.peers[0].is_dropped());
    // GOAWAY, without an error.
    assert_eq!(test.peers[0].take_received(), [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn the_new_protocol_may_write_why_it_makes_room() {
    let mut test = Test::new(PoolConfig::new());
    test.ask(1, "/1", Probe { upgrade: Some("shout"), ..Probe::get("/1") });
    let switch = b"HTTP/1.1 101 S\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\n";
    test.peers[0].send(switch);
    test.settle();
    assert!(!test.peers[0].take_received().is_empty());
    test.advance(seconds(5));
    test.ask_for_room();
    assert_eq!(test.peers[0].take_received(), b"ROOM");
    assert!(test.peers[0].is_dropped());
}
