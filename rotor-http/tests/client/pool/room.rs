//! An idle pooled connection makes room for others.

use rotor_core::{Response, Room};
use rotor_http::client::PoolConfig;

use super::{Machines, Requester, Test};
use crate::probe::seconds;

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
