//! Rooms: one message for many, and those who are slow.

use rotor_http::server::{Connection, HttpSeed, HttpStream, ServerConfig};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_websocket::{Room, RoomConfig, Slow, WebSocketConfig};

use crate::kit::{CLOSE, Seen, Site, TEXT, closing, frame, request, told};

type Machine = HttpStream<Site, Scripted<false>>;

struct House {
    test: TestLoop<Machine>,
    peers: Vec<Peer>,
}

impl House {
    /// A room with so many members.
    fn with(config: RoomConfig, count: usize) -> House {
        let room = Some(Room::new(config));
        let mut house =
            House { test: TestLoop::new(Seen { room, ..Seen::default() }), peers: Vec::new() };
        (0..count).for_each(|_| house.come_in());
        house
    }

    fn come_in(&mut self) {
        let (socket, peer) = pair::<false>(self.test.world());
        let seed = HttpSeed::new(WebSocketConfig::new().share(), ServerConfig::new());
        self.test.add(|scope| Stream::<Connection<Site>, _>::connected(socket, seed, scope));
        peer.send(request("/join", "").as_bytes());
        self.test.settle();
        assert!(peer.take_received().starts_with(b"HTTP/1.1 101 "));
        self.peers.push(peer);
    }

    fn say(&mut self, speaker: usize, text: &str) {
        self.peers[speaker].send(&frame(TEXT, format!("say {text}")));
        self.test.settle();
    }

    fn heard(&mut self, member: usize) -> Vec<String> {
        told(&self.peers[member].take_received())
    }

    fn len(&self) -> usize {
        self.test.context().room.as_ref().expect("there is one").len()
    }
}

#[test]
fn all_hear_all_in_one_order_from_when_they_came() {
    let mut house = House::with(RoomConfig::new(), 3);
    house.say(0, "one");
    house.come_in();
    house.say(3, "two");
    for (member, expected) in [
        (0, vec!["text one", "text two"]),
        (2, vec!["text one", "text two"]),
        (3, vec!["text two"]),
    ] {
        assert_eq!(house.heard(member), expected, "{member}");
    }
    assert_eq!(house.len(), 4);
}

#[test]
fn those_who_leave_or_are_lost_are_forgotten() {
    let mut house = House::with(RoomConfig::new(), 4);
    house.peers[1].send(&frame(CLOSE, closing(1000, "")));
    house.peers[2].reset();
    house.peers[3].send(&frame(TEXT, "panic"));
    house.test.settle();
    house.say(0, "who is there");
    assert_eq!((house.heard(0), house.len()), (vec!["text who is there".to_string()], 1));
}

#[test]
fn a_room_where_nothing_is_said_does_not_keep_all_who_were_ever_there() {
    let mut house = House::with(RoomConfig::new(), 40);
    for _ in 0..300 {
        house.come_in();
        let last = house.peers.pop().expect("who has just come in");
        last.send(&frame(TEXT, "panic"));
        house.test.settle();
    }
    assert!((40..=80).contains(&house.len()), "{} members", house.len());
    house.say(0, "who is there");
    assert_eq!((house.heard(39), house.len()), (vec!["text who is there".to_string()], 40));
}

/// Says so much that a member that takes nothing is far behind, then has it take all.
fn fill(house: &mut House, slow: usize) -> Vec<String> {
    house.peers[slow].limit_room(0);
    for number in 0..200 {
        house.say(0, &format!("{number} {}", "x".repeat(2_000)));
        // The room goes on.
        assert_eq!(house.heard(0).len(), 1, "{number}");
    }
    house.peers[slow].make_room(1 << 30);
    house.test.settle();
    let heard = house.heard(slow);
    heard.iter().map(|text| text.split(' ').nth(1).expect("a number").to_string()).collect()
}

#[test]
fn a_slow_member_misses_what_the_room_does_not_keep() {
    let mut house = House::with(RoomConfig::new().backlog_max(50).slow(Slow::Skip), 2);
    let heard = fill(&mut house, 1);
    // What was on its way to it, then the last fifty.
    assert!(heard.len() > 60 && heard.len() < 120, "{}", heard.len());
    assert_eq!(heard[heard.len() - 50..][0], "150");
    let mut sorted: Vec<u32> = heard.iter().map(|number| number.parse().unwrap()).collect();
    sorted.dedup();
    assert!(sorted.is_sorted() && sorted.len() == heard.len(), "in order, at most once");
    house.say(0, "next");
    assert_eq!(house.heard(1), ["text next"]);
}

#[test]
fn a_slow_member_of_values_hears_the_newest_only() {
    let mut house = House::with(RoomConfig::new().slow(Slow::Coalesce), 2);
    let heard = fill(&mut house, 1);
    assert!((30..40).contains(&heard.len()), "{}", heard.len());
    assert_eq!(heard.last().unwrap(), "199");
    let gaps = heard
        .windows(2)
        .filter(|two| two[1].parse::<u32>().unwrap() != two[0].parse::<u32>().unwrap() + 1);
    assert_eq!(gaps.count(), 1);
}

#[test]
fn a_slow_member_of_a_strict_room_is_closed() {
    let config = RoomConfig::new().backlog_bytes_max(100_000).slow(Slow::Cut);
    let mut house = House::with(config, 3);
    let heard = fill(&mut house, 1);
    assert_eq!(heard.last().unwrap(), "1013");
    assert!((30..40).contains(&heard.len()), "{}", heard.len());
    // Nobody else has missed a thing.
    assert_eq!(house.heard(2).len(), 200);
    // It does not answer the close frame either.
    house.test.advance(crate::kit::seconds(5));
    house.say(0, "who is there");
    assert_eq!(house.len(), 2, "it was forgotten when something was said");
}

#[test]
fn what_a_room_keeps_is_bounded_by_count_and_bytes() {
    let config = RoomConfig::new().backlog_max(10).backlog_bytes_max(100);
    let mut room = Room::new(config);
    let lens = |room: &Room| room.backlog().map(|one| one.payload().len()).collect::<Vec<_>>();
    for _ in 0..20 {
        room.say(rotor_websocket::Prepared::text("x"));
    }
    assert_eq!(lens(&room), [1; 10]);
    room.say(rotor_websocket::Prepared::binary(&[0; 95]));
    assert_eq!(lens(&room), [1, 1, 1, 1, 1, 95]);
    room.say(rotor_websocket::Prepared::binary(&[0; 500]));
    assert_eq!(lens(&room), [500]);
}
