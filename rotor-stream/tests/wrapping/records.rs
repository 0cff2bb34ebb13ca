//! After the handshake: data held by a wrapper, key changes, and the end.

use std::time::Duration;

use rotor_stream::Stream;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};

use crate::negotiated_protocol::{Log, NegotiatedProtocol, Test, server, server_after_handshake};
use crate::record::{Kind, Record, encode};

#[test]
fn input_that_arrives_while_a_wrapper_holds_a_record_is_read() {
    let mut test = TestLoop::<Stream<NegotiatedProtocol, Record<Scripted<true>>>>::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).with_read_max(64), None, scope));
    peer.send(&encode(Kind::Hello, b"pause", 0x55));
    test.settle();
    // One short read returns both; the stream reads the first of them.
    peer.send(&[&b"one\n"[..], b"two\n"].map(|line| encode(Kind::Data, line, 0x55)).concat());
    test.settle();
    assert_eq!(*test.context(), ["one\n"]);
    // The edge for this comes at a time when the stream does not read.
    peer.send(&encode(Kind::Data, b"six\n", 0x55));
    test.advance(Duration::from_secs(2));
    assert_eq!(*test.context(), ["one\n", "two\n", "six\n"]);
}

#[test]
fn an_empty_wrapper_saves_the_read_that_would_block() {
    let mut test = TestLoop::<Stream<NegotiatedProtocol, Record<Scripted<true>>>>::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).with_read_max(64), None, scope));
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    peer.take_received();
    // A read that gets a record from the wrapper's buffer is followed by one that asks the socket.
    for (lines, expected) in [("one\n", 1), ("two\nsix\n", 2)] {
        let records =
            lines.split_inclusive('\n').map(|line| encode(Kind::Data, line.as_bytes(), 0x55));
        let reads = peer.operations().reads;
        peer.send(&records.collect::<Vec<_>>().concat());
        test.settle();
        assert_eq!(peer.take_received(), encode(Kind::Data, lines.as_bytes(), 0x55));
        assert_eq!(peer.operations().reads - reads, expected, "{lines:?}");
    }
    peer.send(&encode(Kind::Close, b"", 0x55));
    peer.end();
    test.settle();
    assert!(peer.is_dropped(), "the end behind a short read is read");
}

#[test]
fn a_change_of_key_is_answered_before_anything_else_is_read() {
    let mut test = Test::new(Log::new());
    let peer = server_after_handshake(&mut test);
    peer.limit_room(0);
    peer.send(&encode(Kind::NewKey, &[0x21], 0x55));
    peer.send(&encode(Kind::Data, b"new\n", 0x21));
    test.settle();
    assert_eq!(peer.received_len(), 0);
    peer.make_room(1);
    test.settle();
    assert_eq!(peer.take_received(), [Kind::KeyTaken as u8], "half an answer");
    peer.make_room(1000);
    test.settle();
    let mut expected = vec![0];
    expected.extend(encode(Kind::Data, b"new\n", 0x55));
    assert_eq!(peer.take_received(), expected, "the rest of it, then what was read after it");
}

#[test]
fn input_buffered_in_a_wrapper_is_found_after_its_write() {
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = server_after_handshake(&mut test);
    peer.limit_room(0);
    // The wrapper reads all seven bytes together; then it must write, and no edge will report the
    // input that it holds.
    peer.send(&encode(Kind::NewKey, &[0x21], 0x55));
    peer.send(&encode(Kind::Data, b"a\n", 0x21));
    test.settle();
    assert_eq!(peer.unread_len(), 0);
    peer.make_room(1000);
    test.settle();
    let expected = [encode(Kind::KeyTaken, b"", 0x55), encode(Kind::Data, b"a\n", 0x55)].concat();
    assert_eq!(peer.take_received(), expected);
}

#[test]
fn input_buffered_in_a_wrapper_is_found_after_a_write_of_more_output() {
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = server_after_handshake(&mut test);
    peer.limit_room(0);
    // The wrapper accepts the first answer, and the second one stays in the output.
    for line in [b"a\n", b"b\n"] {
        peer.send(&encode(Kind::Data, line, 0x55));
        test.settle();
    }
    peer.send(&encode(Kind::NewKey, &[0x21], 0x55));
    peer.send(&encode(Kind::Data, b"c\n", 0x21));
    test.settle();
    assert_eq!(peer.unread_len(), 0);
    // Writing the output makes the wrapper send the bytes that kept it from reading.
    peer.make_room(1000);
    test.settle();
    let data = |line: &[u8]| encode(Kind::Data, line, 0x55);
    let expected =
        [data(b"a\n"), encode(Kind::KeyTaken, b"", 0x55), data(b"b\n"), data(b"c\n")].concat();
    assert_eq!(peer.take_received(), expected);
}

#[test]
fn flushed_is_reported_only_after_the_wrapper_has_written() {
    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    peer.limit_room(25);
    peer.send(&encode(Kind::Hello, b"flush", 0x55));
    test.settle();
    assert!(test.context().is_empty(), "a byte of the second record is not written yet");
    peer.make_room(1);
    test.settle();
    assert_eq!(*test.context(), ["flushed"]);
}

/// A server that changes its key after its first record, in a world with narrow edges.
fn key_changer(test: &mut Test) -> Peer {
    test.world().narrow_edges();
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).change_key_after(0), None, scope));
    peer
}

#[test]
fn a_write_that_waits_for_input_resumes_when_it_arrives() {
    let mut test = Test::new(Log::new());
    let peer = key_changer(&mut test);
    peer.send(&encode(Kind::Hello, b"flush", 0x55));
    test.settle();
    assert_eq!(peer.take_received().len(), 2 + 12 + 3, "the welcome, a record, the new key");
    peer.send(&encode(Kind::KeyTaken, b"", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["flushed"]);
}

#[test]
fn a_write_that_waits_for_input_resumes_when_another_read_got_it() {
    let mut test = Test::new(Log::new());
    let peer = key_changer(&mut test);
    // The answer arrives after the write that waits for it, and before the read in the same pass
    // that finds it. That is the third read, after those of the handshake and of the write. When
    // its edge is delivered, nothing waits for it any more.
    peer.before_read(|peer| {
        peer.before_read(|peer| {
            peer.before_read(|peer| peer.send(&encode(Kind::KeyTaken, b"", 0x55)));
        });
    });
    peer.send(&encode(Kind::Hello, b"reads", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["flushed"]);
}

#[test]
fn a_write_that_waits_for_input_resumes_behind_input_that_is_not_wanted_yet() {
    let mut test = Test::new(Log::new());
    let peer = key_changer(&mut test);
    peer.send(&encode(Kind::Hello, b"flush", 0x55));
    test.settle();
    // The protocol waits for the flush alone, so nothing but the write reads what comes before the
    // answer.
    peer.send(&[encode(Kind::Data, b"y", 0x55), encode(Kind::KeyTaken, b"", 0x55)].concat());
    test.settle();
    assert_eq!(*test.context(), ["flushed"]);
}

#[test]
fn the_last_output_goes_on_when_discarding_input_finds_what_it_waits_for() {
    let mut test = Test::new(Log::new());
    let peer = key_changer(&mut test);
    peer.send(&encode(Kind::Hello, b"reads", 0x55));
    peer.send(&encode(Kind::Data, b"x", 0x55));
    test.settle();
    assert_eq!(peer.take_received().len(), 2 + 12 + 3, "the welcome, a record, the new key");
    // The protocol is done, and its second record waits for the answer. The input before that is
    // not for the write, so the read that discards it finds the answer.
    peer.send(&[encode(Kind::Data, b"y", 0x55), encode(Kind::KeyTaken, b"", 0x55)].concat());
    test.settle();
    let key = 0x55_u8.wrapping_mul(31).wrapping_add(7);
    let expected = [encode(Kind::Data, b"records, \n", key), encode(Kind::Close, b"", key)];
    assert_eq!(peer.take_received(), expected.concat());
    assert!(peer.is_ended());
}

#[test]
fn input_read_by_a_wrapper_during_a_write_is_found() {
    // After the answer that the write waits for, and without an answer.
    for has_answer in [true, false] {
        let mut test = Test::new(Log::new());
        test.world().narrow_edges();
        let (socket, peer) = pair(test.world());
        let socket = Record::server(socket).change_key_after(0).with_read_max(64);
        test.add(|scope| Stream::connected(socket, None, scope));
        peer.send(&encode(Kind::Hello, b"echo", 0x55));
        test.settle();
        peer.send(&encode(Kind::Data, b"a\n", 0x55));
        test.settle();
        peer.take_received();
        // It arrives after everything was read and before the write reads: when its edge is
        // delivered, there is nothing left to report.
        peer.before_read(move |peer| {
            peer.before_read(move |peer| {
                peer.before_read(move |peer| {
                    if has_answer {
                        peer.send(&encode(Kind::KeyTaken, b"", 0x55));
                    }
                    peer.send(&encode(Kind::Data, b"c\n", 0x55));
                });
            });
        });
        peer.send(&encode(Kind::Data, b"b\n", 0x55));
        test.settle();
        assert_eq!(peer.unread_len(), 0);
        if !has_answer {
            peer.send(&encode(Kind::KeyTaken, b"", 0x55));
            test.settle();
        }
        let key = 0x55_u8.wrapping_mul(31).wrapping_add(7);
        let got = peer.take_received();
        let lines = [&b"b\n"[..], b"c\n"].map(|line| encode(Kind::Data, line, key)).concat();
        let both = encode(Kind::Data, b"b\nc\n", key);
        assert!(got == lines || got == both, "answer: {has_answer}, {got:?}");
    }
}

#[test]
fn output_held_by_a_wrapper_is_flushed_before_the_end() {
    let mut test = Test::new(Log::new());
    let peer = server_after_handshake(&mut test);
    peer.limit_room(3);
    peer.send(&encode(Kind::Data, b"bye\n", 0x55));
    peer.send(&encode(Kind::Close, b"", 0x55));
    test.settle();
    assert_eq!(peer.received_len(), 3);
    assert!(!peer.is_ended(), "our side ends after the last record");
    let mut got = peer.take_received();
    for _ in 0..4 {
        peer.make_room(1);
        test.settle();
        got.extend(peer.take_received());
        assert!(!peer.is_ended() && !peer.is_dropped());
    }
    peer.make_room(1);
    test.settle();
    got.extend(peer.take_received());
    assert!(peer.is_dropped(), "both sides have ended");
    let mut expected = encode(Kind::Data, b"bye\n", 0x55);
    expected.extend(encode(Kind::Close, b"", 0x55));
    assert_eq!(got, expected);
}

#[test]
fn an_end_without_a_close_record_is_reported_as_an_abort() {
    let what_is_told = |bytes: &[u8]| {
        let mut test = Test::new(Log::new());
        let peer = server_after_handshake(&mut test);
        peer.send(bytes);
        peer.end();
        test.settle();
        assert!(peer.is_dropped(), "there is nothing to linger for");
        test.context().clone()
    };
    let cut = "the connection was aborted before the peer ended the stream";
    assert_eq!(what_is_told(b""), [cut]);
    assert_eq!(what_is_told(&encode(Kind::Data, b"cut", 0x55)[..3]), [cut]);
    let close = encode(Kind::Close, b"", 0x55);
    assert_eq!(what_is_told(&close), ["the peer has ended the stream"]);
    // The protocol waits on, and gets the same exception a second time.
    assert_eq!(what_is_told(&encode(Kind::Data, b"stay", 0x55)), [cut, cut]);
}

#[test]
fn an_end_without_a_close_record_is_an_abort_during_a_drain_too() {
    let mut test = Test::new(Log::new());
    let peer = server_after_handshake(&mut test);
    // Ends the connection before its event is delivered, so the drain does the read.
    peer.before_read(Peer::end);
    test.drain(Duration::from_secs(9));
    test.settle();
    assert_eq!(
        *test.context(),
        ["draining", "the connection was aborted before the peer ended the stream"]
    );
}

#[test]
fn output_held_by_a_wrapper_is_subject_to_the_flush_timeout() {
    let mut test = Test::new(Log::new());
    let peer = server_after_handshake(&mut test);
    peer.limit_room(1);
    peer.send(&encode(Kind::Data, b"x\n", 0x55));
    test.settle();
    test.advance(Duration::from_secs(31));
    assert_eq!(*test.context(), ["fatal: the peer does not read what is sent to it"]);
    assert!(peer.is_dropped());
}
