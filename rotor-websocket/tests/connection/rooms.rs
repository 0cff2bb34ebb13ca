//! Rooms: one message for many members, and slow members.

use rotor_http::server::{Connection, HttpSeed, HttpStream, ServerConfig};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_websocket::{Room, RoomConfig, Slow, WebSocketConfig};

use crate::kit::{CLOSE, Seen, Site, TEXT, close_payload, frame, request, shown_frames};

type Machine = HttpStream<Site, Scripted<false>>;

struct RoomFixture {
    test: TestLoop<Machine>,
    peers: Vec<Peer>,
}

impl RoomFixture {
    /// A room with `count` members.
    fn with(config: RoomConfig, count: usize) -> RoomFixture {
        let room = Some(Room::new(config));
        let mut fixture = RoomFixture {
            test: TestLoop::new(Seen { room, ..Seen::default() }),
            peers: Vec::new(),
        };
        (0..count).for_each(|_| fixture.join());
        fixture
    }

    fn join(&mut self) {
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

    fn received(&mut self, member: usize) -> Vec<String> {
        shown_frames(&self.peers[member].take_received())
    }

    fn len(&self) -> usize {
        self.test.context().room.as_ref().expect("there is one").len()
    }
}

#[test]
fn members_get_all_messages_in_order_from_when_they_joined() {
    let mut fixture = RoomFixture::with(RoomConfig::new(), 3);
    fixture.say(0, "one");
    fixture.join();
    fixture.say(3, "two");
    for (member, expected) in [
        (0, vec!["text one", "text two"]),
        (2, vec!["text one", "text two"]),
        (3, vec!["text two"]),
    ] {
        assert_eq!(fixture.received(member), expected, "{member}");
    }
    assert_eq!(fixture.len(), 4);
}

#[test]
fn members_that_leave_or_are_lost_are_removed() {
    let mut fixture = RoomFixture::with(RoomConfig::new(), 4);
    fixture.peers[1].send(&frame(CLOSE, close_payload(1000, "")));
    fixture.peers[2].reset();
    fixture.peers[3].send(&frame(TEXT, "panic"));
    fixture.test.settle();
    fixture.say(0, "who is there");
    assert_eq!((fixture.received(0), fixture.len()), (vec!["text who is there".to_string()], 1));
}

#[test]
fn a_silent_room_removes_members_that_are_gone() {
    let mut fixture = RoomFixture::with(RoomConfig::new(), 40);
    for _ in 0..300 {
        fixture.join();
        let last = fixture.peers.pop().expect("who has just come in");
        last.send(&frame(TEXT, "panic"));
        fixture.test.settle();
    }
    assert!((40..=80).contains(&fixture.len()), "{} members", fixture.len());
    fixture.say(0, "who is there");
    assert_eq!((fixture.received(39), fixture.len()), (vec!["text who is there".to_string()], 40));
}

/// Sends so many messages that a member without room falls far behind, then gives it room for all.
fn fill(fixture: &mut RoomFixture, slow: usize) -> Vec<String> {
    fixture.peers[slow].limit_room(0);
    for number in 0..200 {
        fixture.say(0, &format!("{number} {}", "x".repeat(2_000)));
        // The room continues.
        assert_eq!(fixture.received(0).len(), 1, "{number}");
    }
    fixture.peers[slow].make_room(1 << 30);
    fixture.test.settle();
    let heard = fixture.received(slow);
    heard.iter().map(|text| text.split(' ').nth(1).expect("a number").to_string()).collect()
}

#[test]
fn a_slow_member_misses_dropped_messages() {
    let mut fixture = RoomFixture::with(RoomConfig::new().backlog_max(50).slow(Slow::Skip), 2);
    let heard = fill(&mut fixture, 1);
    // The messages already in flight to it, then the last fifty.
    assert!(heard.len() > 60 && heard.len() < 120, "{}", heard.len());
    assert_eq!(heard[heard.len() - 50..][0], "150");
    let mut sorted: Vec<u32> = heard.iter().map(|number| number.parse().unwrap()).collect();
    sorted.dedup();
    assert!(sorted.is_sorted() && sorted.len() == heard.len(), "in order, at most once");
    fixture.say(0, "next");
    assert_eq!(fixture.received(1), ["text next"]);
}

#[test]
fn a_slow_member_of_a_coalescing_room_gets_the_newest_message() {
    let mut fixture = RoomFixture::with(RoomConfig::new().slow(Slow::Coalesce), 2);
    let heard = fill(&mut fixture, 1);
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
    let mut fixture = RoomFixture::with(config, 3);
    let heard = fill(&mut fixture, 1);
    assert_eq!(heard.last().unwrap(), "1013");
    assert!((30..40).contains(&heard.len()), "{}", heard.len());
    // No other member has missed a message.
    assert_eq!(fixture.received(2).len(), 200);
    // The slow member does not answer the close frame either.
    fixture.test.advance(crate::kit::seconds(5));
    fixture.say(0, "who is there");
    assert_eq!(fixture.len(), 2, "it was forgotten when something was said");
}

#[test]
fn the_backlog_of_a_room_is_bounded_by_count_and_bytes() {
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
