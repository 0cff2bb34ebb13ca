//! The chat.

#[path = "../../examples/line_chat/machine.rs"]
mod machine;

use std::time::Duration;

use machine::{Client, HasRoom, LINE_BYTES_MAX, LINE_TIME_MAX, PAUSE, Room, UNREAD_BYTES_MAX};
use rotor::Config;
use rotor::stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor::stream::{Stream, WithOutbox};

use crate::cuts;

#[derive(Default)]
struct Chat(Room);

impl HasRoom for Chat {
    fn room(&mut self) -> &mut Room {
        &mut self.0
    }
}

/// The default of `OutboxConfig::output_max`.
const OUTPUT_BYTES_MAX: usize = 32 * 1_024;

type Test = TestLoop<Stream<WithOutbox<Client<Chat>>, ScriptedSocket>>;

/// A chat of `members` whose sockets take `write_max` bytes at a time. All have received the join
/// notices.
fn chat(members: usize, write_max: usize) -> (Test, Vec<Peer>) {
    let mut test = Test::new(Chat::default());
    let mut peers = Vec::new();
    for _ in 0..members {
        let (socket, peer) = pair(test.world());
        peer.limit_writes(write_max);
        test.add(|scope| Stream::connected(socket, (), scope));
        peers.push(peer);
    }
    for (index, peer) in peers.iter().enumerate() {
        let mut expected = format!("* you are {}\n", index + 1);
        expected.extend((index + 2..=members).map(|number| format!("* {number} joined\n")));
        assert_eq!(String::from_utf8_lossy(&peer.take_received()), expected);
    }
    (test, peers)
}

#[test]
fn lines_arrive_whole_in_order_and_without_terminal_escapes() {
    let input = b"hello\n\nall \x1b[2Jof\r\ny\xc3\xb6u \xc2\x9b2J \x9b2J\nhalf";
    let expected = "2: hello\n2: \n2: all [2Jof\n2: y\u{f6}u 2J \u{fffd}2J\n* 2 left\n";
    for write_max in cuts::WRITES {
        for pieces in cuts::splits(input) {
            let (mut test, peers) = chat(3, write_max);
            for piece in &pieces {
                peers[1].send(piece);
                test.settle();
            }
            peers[1].end();
            test.advance(4 * PAUSE);
            let heard = [0, 1, 2]
                .map(|at| String::from_utf8_lossy(&peers[at].take_received()).into_owned());
            assert_eq!(heard, [expected, "", expected], "{pieces:?}, {write_max} bytes a write");
            assert!(peers[1].is_ended() && test.failures().is_empty());
            assert_eq!((test.machines(), test.context().0.len()), (2, 2));
        }
    }
}

#[test]
fn two_lines_sent_at_once_are_not_interleaved() {
    for first in cuts::splits(b"one\ntwo\n") {
        for second in cuts::splits(b"eins\nzwei\n") {
            let (mut test, peers) = chat(3, usize::MAX);
            for at in 0..first.len().max(second.len()) {
                for (peer, pieces) in peers.iter().zip([&first, &second]) {
                    if let Some(piece) = pieces.get(at) {
                        peer.send(piece);
                    }
                }
                test.settle();
            }
            test.advance(PAUSE);
            let heard = String::from_utf8_lossy(&peers[2].take_received()).into_owned();
            let of =
                |who: &str| heard.lines().filter(|line| line.starts_with(who)).collect::<Vec<_>>();
            assert_eq!(of("1: "), ["1: one", "1: two"], "{heard}");
            assert_eq!(of("2: "), ["2: eins", "2: zwei"], "{heard}");
            assert_eq!(heard.lines().count(), 4, "{heard}");
        }
    }
}

#[test]
fn the_longest_line_is_delivered_and_one_byte_more_ends_its_sender() {
    for (len, is_heard) in
        [(LINE_BYTES_MAX - 1, true), (LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)]
    {
        for chunk in [usize::MAX, 1] {
            let (mut test, peers) = chat(2, usize::MAX);
            let line = [vec![b'x'; len - 1], b"\n".to_vec()].concat();
            for piece in line.chunks(chunk.min(len)) {
                peers[1].send(piece);
                test.settle();
            }
            let expected =
                if is_heard { [b"2: ", &line[..]].concat() } else { b"* 2 left\n".to_vec() };
            assert!(peers[0].take_received() == expected, "{len} bytes, {chunk} at a time");
            assert_eq!(peers[1].is_ended(), !is_heard);
        }
    }
}

#[test]
fn a_dripped_line_has_a_deadline_and_an_idle_client_has_none() {
    let (mut test, peers) = chat(2, usize::MAX);
    test.advance(Duration::from_secs(100_000));
    assert_eq!(test.machines(), 2);
    let drips = LINE_TIME_MAX.as_secs() as u32 - 1;
    for _ in 0..drips {
        peers[1].send(b"x");
        test.settle();
        test.advance(Duration::from_secs(1));
    }
    assert_eq!(peers[0].take_received(), b"");
    peers[1].send(b"x");
    test.settle();
    test.advance(Duration::from_secs(1));
    assert_eq!(peers[0].take_received(), b"* 2 left\n");
    assert!(peers[1].is_ended());
}

#[test]
fn a_completed_line_clears_its_deadline() {
    let (mut test, peers) = chat(2, usize::MAX);
    for _ in 0..3 {
        peers[1].send(b"x");
        test.settle();
        test.advance(LINE_TIME_MAX - Duration::from_millis(1));
        peers[1].send(b"\n");
        test.settle();
        test.advance(LINE_TIME_MAX * 2);
        assert_eq!(peers[0].take_received(), b"2: x\n");
    }
}

#[test]
fn a_client_with_too_much_unread_output_is_dropped_alone() {
    let (mut test, peers) = chat(3, usize::MAX);
    peers[2].limit_room(0);
    let line = [vec![b'x'; LINE_BYTES_MAX - 1], b"\n".to_vec()].concat();
    let told = line.len() + "1: ".len();
    // What its output buffer holds, and what the outbox behind it holds.
    let said = OUTPUT_BYTES_MAX.div_ceil(told) + UNREAD_BYTES_MAX / told + 1;
    for number in 0..said {
        assert!(!peers[2].is_dropped(), "dropped after {number} lines of {said}");
        peers[0].send(&line);
        test.advance(PAUSE);
    }
    assert!(peers[2].is_dropped(), "{} bytes are unread", said * told);
    assert_eq!(test.failures().len(), 1);
    assert!(test.failures()[0].ends_with("its peer does not read what it is sent"));
    let heard = peers[1].take_received();
    let expected = [[b"1: ", &line[..]].concat().repeat(said), b"* 3 left\n".to_vec()].concat();
    assert!(heard == expected, "{} bytes instead of {}", heard.len(), expected.len());
    assert_eq!(peers[0].take_received(), b"* 3 left\n");
    assert_eq!(test.context().0.len(), 2);
}

#[test]
fn a_flood_from_one_client_gets_no_other_dropped() {
    let (mut test, peers) = chat(3, usize::MAX);
    // More than an outbox takes, and each with as few bytes as possible.
    const LINES: u32 = 3_000;
    peers[1].send(&b"\n".repeat(LINES as usize));
    test.settle();
    assert_eq!(peers[0].take_received(), b"2: \n", "the rest waits");
    test.advance(LINES * PAUSE);
    assert_eq!(peers[2].take_received(), b"2: \n".repeat(LINES as usize));
    assert_eq!(test.context().0.len(), 3);
}

#[test]
fn a_crowd_that_speaks_at_once_gets_nobody_dropped() {
    // More, in bytes, than an outbox takes by default.
    const CROWD: usize = 300;
    let (mut test, peers) = chat(CROWD, usize::MAX);
    let line = [vec![b'x'; LINE_BYTES_MAX - 1], b"\n".to_vec()].concat();
    for peer in &peers[1..] {
        peer.send(&line);
    }
    test.settle();
    let heard = peers[0].take_received();
    assert_eq!(heard.iter().filter(|byte| **byte == b'\n').count(), CROWD - 1);
    assert_eq!(test.context().0.len(), CROWD);
}

#[test]
fn a_crowd_that_leaves_at_once_gets_no_other_dropped() {
    // More than an outbox takes by default.
    const CROWD: usize = 1_005;
    let slots = Config::new().machines_max(1 + CROWD);
    let mut test = Test::with_config(Chat::default(), slots);
    let mut join = || {
        let (socket, peer) = pair(test.world());
        test.add(|scope| Stream::connected(socket, (), scope));
        peer
    };
    let first = join();
    let crowd: Vec<Peer> = (0..CROWD).map(|_| join()).collect();
    first.take_received();
    crowd.iter().for_each(Peer::end);
    test.settle();
    let heard = String::from_utf8(first.take_received()).expect("text");
    assert_eq!(heard.lines().filter(|line| line.ends_with(" left")).count(), CROWD);
    assert_eq!(test.context().0.len(), 1);
}

#[test]
fn a_reset_client_has_left_the_room() {
    let (mut test, peers) = chat(2, usize::MAX);
    peers[1].send(b"last\nhalf");
    peers[1].reset();
    test.advance(PAUSE);
    assert_eq!(String::from_utf8_lossy(&peers[0].take_received()), "2: last\n* 2 left\n");
    assert!(test.failures().is_empty());
}
