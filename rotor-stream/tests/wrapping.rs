//! Streams on a wrapping socket: handshake, records, changes of key, closing; whole and byte by
//! byte.

mod record;

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as StdUnix;
use std::sync::mpsc;
use std::time::Duration;

use record::{Kind, Record, encode};
use rotor_core::net::UnixStream;
use rotor_core::{Config, Loop, Machine, Response, Scope, Time};
use rotor_stream::testing::{Peer, Scripted, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, Transport};

type Log = Vec<String>;

/// What the handshake has chosen.
enum Chosen {
    /// A server: each line back, as it is or in capitals.
    Echo { in_capitals: bool },
    /// A server: two records, then a note when they are with the peer. It may look at its input
    /// after the first.
    Flushes,
    /// A server: notes each line, and looks at nothing for a second after the first.
    Pauses { is_first: bool },
    /// A client: sends lines, one after the answer to the other, then ends.
    Client { left: usize },
}

const LINE: &[u8] = b"a line that is longer than two records\n";

impl Chosen {
    fn send_line(left: usize, transport: &mut Transport<'_>) -> Intent<Chosen> {
        if left == 0 {
            return Intent::done();
        }
        transport.output.write_all(LINE).expect("open");
        Intent::of(Chosen::Client { left: left - 1 }).delimiter(b"\n", 1024).keep_deadline()
    }
}

impl Protocol for Chosen {
    type Context = Log;
    /// How many lines to send, for a client.
    type Seed = Option<usize>;

    fn create(
        lines: Option<usize>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let name = String::from_utf8_lossy(transport.negotiated().unwrap_or_default()).into_owned();
        match lines {
            Some(lines) => Chosen::send_line(lines, transport),
            None if name == "flush" || name == "reads" => {
                transport.output.write_all(b"two whole records, \n").expect("open");
                let left = if name == "reads" { 10 } else { 0 };
                Intent::of(Chosen::Flushes).flush(left).no_deadline()
            }
            None if name == "pause" => {
                Intent::of(Chosen::Pauses { is_first: true }).delimiter(b"\n", 1024).no_deadline()
            }
            None => {
                let in_capitals = name == "upper";
                scope.push(format!("serves {name}"));
                Intent::of(Chosen::Echo { in_capitals }).delimiter(b"\n", 1024).no_deadline()
            }
        }
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let mut text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        match self {
            Chosen::Echo { in_capitals } => {
                if in_capitals {
                    text.make_ascii_uppercase();
                }
                transport.output.write_all(&text).expect("open");
                Intent::of(self).keep().keep_deadline()
            }
            Chosen::Flushes => Intent::done(),
            Chosen::Pauses { is_first } => {
                scope.push(String::from_utf8_lossy(&text).into_owned());
                let next = Intent::of(Chosen::Pauses { is_first: false });
                match is_first {
                    true => next.sleep().deadline(scope.now() + Duration::from_secs(1)),
                    false => next.delimiter(b"\n", 1024).no_deadline(),
                }
            }
            Chosen::Client { left } => {
                scope.push(String::from_utf8_lossy(&text).into_owned());
                Chosen::send_line(left, transport)
            }
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        if !transport.output.is_empty() {
            return Intent::of(self).bytes(1).or_flush(0).no_deadline();
        }
        scope.push("flushed".to_string());
        Intent::of(self).sleep().no_deadline()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::of(self).delimiter(b"\n", 1024).no_deadline()
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        scope.push("draining".to_string());
        Intent::of(self).keep().keep_deadline()
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("{exception}"));
        if transport.input.starts_with(b"stay") {
            transport.input.clear();
            return Intent::of(self).keep().keep_deadline();
        }
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {error}"));
    }

    fn not_connected(_: Option<usize>, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("not connected: {error}"));
    }
}

type Test = TestLoop<Stream<Chosen, Record<ScriptedSocket>>>;

fn server(test: &mut Test) -> Peer {
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket), None, scope));
    peer
}

/// Carries bytes from one end to the other, so many at a time; whether there were any.
fn carry<M: Machine>(test: &mut TestLoop<M>, from: &Peer, to: &Peer, at_a_time: usize) -> bool {
    let bytes = from.take_received();
    for piece in bytes.chunks(at_a_time) {
        to.send(piece);
        test.settle();
    }
    !bytes.is_empty()
}

/// How much passes at once.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    carried: usize,
    written: usize,
    /// By a wrapper, of the socket inside.
    read: usize,
}

/// Has a client and a server talk; what the log says.
fn talk<const D: bool>(
    pieces: Pieces,
    has_narrow_edges: bool,
    key_after: [Option<usize>; 2],
) -> Log {
    let mut test = TestLoop::<Stream<Chosen, Record<Scripted<D>>>>::new(Log::new());
    if has_narrow_edges {
        test.world().narrow_edges();
    }
    let (socket, peer) = pair(test.world());
    let (client_socket, client) = pair(test.world());
    for end in [&peer, &client] {
        end.limit_writes(pieces.written);
    }
    let wrap = |record: Record<Scripted<D>>, after: Option<usize>| match after {
        Some(after) => record.reading(pieces.read).change_key_after(after),
        None => record.reading(pieces.read),
    };
    let server = wrap(Record::server(socket), key_after[0]);
    let wrapped = wrap(Record::client(client_socket, b"upper"), key_after[1]);
    test.add(|scope| Stream::connected(server, None, scope));
    test.add(|scope| Stream::connected(wrapped, Some(5), scope));
    loop {
        let mut moved = carry(&mut test, &client, &peer, pieces.carried);
        moved |= carry(&mut test, &peer, &client, pieces.carried);
        for (end, other) in [(&client, &peer), (&peer, &client)] {
            if end.is_ended() && end.received_len() == 0 {
                other.end();
            }
        }
        test.settle();
        if !moved {
            break;
        }
    }
    assert_eq!(test.failures(), Vec::<String>::new());
    assert_eq!(test.machines(), 0, "both have closed in order: {:?}", test.context());
    test.context().clone()
}

#[test]
fn a_conversation_is_the_same_however_it_is_cut() {
    let mut expected = vec!["serves upper".to_string()];
    expected.extend(vec![String::from_utf8_lossy(LINE).to_uppercase(); 5]);
    expected.push("the peer has ended the stream".to_string());
    for key_after in [[None, None], [Some(1), None], [None, Some(1)], [Some(0), Some(2)]] {
        for (carried, read) in
            [(usize::MAX, 7), (usize::MAX, 64), (1, 7), (2, 7), (3, 1), (11, 7), (11, 64)]
        {
            for (written, has_narrow_edges) in
                [(usize::MAX, false), (1, false), (5, true), (1, true)]
            {
                let pieces = Pieces { carried, written, read };
                for talk in [talk::<false>, talk::<true>] {
                    assert_eq!(
                        talk(pieces, has_narrow_edges, key_after),
                        expected,
                        "{pieces:?}, narrow edges {has_narrow_edges}, keys {key_after:?}"
                    );
                }
            }
        }
    }
}

/// A hello and a line behind it.
fn hello_and_line() -> Vec<u8> {
    [encode(Kind::Hello, b"upper", 0x55), encode(Kind::Data, b"hi\n", 0x55)].concat()
}

/// What a server answers to that.
fn welcome_and_line() -> Vec<u8> {
    [encode(Kind::Welcome, b"", 0x55), encode(Kind::Data, b"HI\n", 0x55)].concat()
}

#[test]
fn what_a_wrapper_reads_beyond_its_handshake_is_found_without_an_event() {
    for has_narrow_edges in [false, true] {
        let mut test = Test::new(Log::new());
        if has_narrow_edges {
            test.world().narrow_edges();
        }
        let (socket, peer) = pair(test.world());
        // All is there before the machine is, and the handshake reads it before the first event.
        peer.send(&hello_and_line());
        test.add(|scope| Stream::connected(Record::server(socket).reading(64), None, scope));
        assert_eq!(peer.take_received(), welcome_and_line(), "narrow edges: {has_narrow_edges}");
    }
}

/// What a server says to some bytes, on the kernel's sockets; read once more behind its end.
fn answer_on_real_sockets(
    bytes: &[u8],
    answer_len: usize,
    wrap: impl FnOnce(Record<UnixStream>) -> Record<UnixStream>,
    once_it_waits: impl FnOnce(),
) -> io::Result<Vec<u8>> {
    let (mut client, server) = StdUnix::pair()?;
    client.set_nonblocking(true)?;
    client.write_all(bytes)?;
    let creator = Loop::<Stream<Chosen, Record<UnixStream>>>::new(&Config::new())?;
    let mut instance = creator.instantiate(Log::new());
    let made = instance.add_machine_with(|scope| match UnixStream::from_std(server, scope) {
        Ok(server) => Stream::connected(wrap(Record::server(server)), None, scope),
        Err(error) => Response::error(error),
    });
    made.expect("it is of this backend");
    // The events of the registration, and whatever follows from them.
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO))?;
    }
    once_it_waits();
    let mut got = Vec::new();
    for _ in 0..1_000 {
        if got.len() >= answer_len {
            break;
        }
        instance.turn(Some(Duration::from_millis(10)))?;
        if let Err(error) = client.read_to_end(&mut got) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }
    Ok(got)
}

#[test]
fn what_a_wrapper_reads_beyond_its_handshake_is_found_on_the_kernel_s_sockets() -> io::Result<()> {
    let answer = answer_on_real_sockets(
        &hello_and_line(),
        welcome_and_line().len(),
        |server| server.reading(64),
        || (),
    )?;
    assert_eq!(answer, welcome_and_line());
    Ok(())
}

#[test]
fn a_handshake_that_waits_for_another_thread_goes_on_when_that_is_done() -> io::Result<()> {
    let (release, released) = mpsc::channel();
    let job = move || released.recv().expect("the test lets it go on");
    // By then no event of the socket is due any more.
    let let_go = move || release.send(()).expect("the job waits");
    let answer = answer_on_real_sockets(
        &hello_and_line(),
        welcome_and_line().len(),
        |server| server.reading(64).with_job(job),
        let_go,
    )?;
    assert_eq!(answer, welcome_and_line());
    Ok(())
}

#[test]
fn what_comes_while_a_wrapper_holds_a_record_is_read() {
    let mut test = TestLoop::<Stream<Chosen, Record<Scripted<true>>>>::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).reading(64), None, scope));
    peer.send(&encode(Kind::Hello, b"pause", 0x55));
    test.settle();
    // One short read brings both, of which the stream takes the first.
    peer.send(&[&b"one\n"[..], b"two\n"].map(|line| encode(Kind::Data, line, 0x55)).concat());
    test.settle();
    assert_eq!(*test.context(), ["one\n"]);
    // An edge for this, at a time at which the stream does not look.
    peer.send(&encode(Kind::Data, b"six\n", 0x55));
    test.advance(Duration::from_secs(2));
    assert_eq!(*test.context(), ["one\n", "two\n", "six\n"]);
}

#[test]
fn a_wrapper_that_holds_nothing_spares_the_read_that_would_find_nothing() {
    let mut test = TestLoop::<Stream<Chosen, Record<Scripted<true>>>>::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).reading(64), None, scope));
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    peer.take_received();
    // Where a read gets a record that was there already, the one behind it asks the socket.
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
fn the_handshake_chooses_the_protocol() {
    for (name, answer) in [("upper", "HI\n"), ("plain", "hi\n")] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        for byte in encode(Kind::Hello, name.as_bytes(), 0x55) {
            assert!(test.context().is_empty(), "no protocol before the handshake");
            peer.send(&[byte]);
            test.settle();
        }
        assert_eq!(*test.context(), [format!("serves {name}")]);
        assert_eq!(peer.take_received(), encode(Kind::Welcome, b"", 0x55));
        peer.send(&encode(Kind::Data, b"hi\n", 0x55));
        test.settle();
        assert_eq!(peer.take_received(), encode(Kind::Data, answer.as_bytes(), 0x55));
    }
}

#[test]
fn a_handshake_has_its_own_deadline_and_may_fail() {
    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    peer.send(&[Kind::Hello as u8, 200]);
    for _ in 0..9 {
        peer.send(b"x");
        test.advance(Duration::from_secs(1));
        assert!(!peer.is_dropped() && test.context().is_empty());
    }
    test.advance(Duration::from_secs(2));
    assert_eq!(*test.context(), ["not connected: the handshake took too long"]);
    assert!(peer.is_ended());

    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    peer.end();
    test.settle();
    assert_eq!(*test.context(), ["not connected: the handshake has failed"]);
    assert!(peer.is_dropped(), "nobody is left who could be told why");
}

/// What a server says to whoever does not greet it.
fn alert() -> Vec<u8> {
    encode(Kind::Alert, b"no hello", 0x55)
}

#[test]
fn a_peer_is_told_why_its_handshake_has_failed() {
    for room in [usize::MAX, 0, 3] {
        let mut test = Test::new(Log::new());
        test.world().narrow_edges();
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Data, &[b'x'; 100], 0x55));
        test.settle();
        assert_eq!(*test.context(), ["not connected: the handshake has failed"]);
        assert_eq!(peer.is_ended(), room == usize::MAX, "not before the alert");
        peer.make_room(1000);
        test.settle();
        assert_eq!(peer.take_received(), alert());
        assert!(peer.is_ended() && !peer.is_dropped());
        assert_eq!(peer.unread_len(), 0, "or a reset might overtake it");
        peer.send(b"whatever");
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
        assert_eq!(test.context().len(), 1, "told once");
    }
}

#[test]
fn a_peer_that_does_not_end_after_a_failed_handshake_is_dropped_in_time() {
    for (room, seconds) in [(usize::MAX, 2), (0, 30)] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Data, b"", 0x55));
        test.advance(Duration::from_millis(seconds * 1000 - 100));
        assert!(!peer.is_dropped());
        test.advance(Duration::from_millis(200));
        assert!(peer.is_dropped(), "room {room}");
    }
}

#[test]
fn who_is_late_with_a_handshake_that_it_has_begun_hears_of_it() {
    for (sent, room) in [(0, usize::MAX), (1, usize::MAX), (1, 3)] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Hello, b"plain", 0x55)[..sent]);
        test.advance(Duration::from_millis(9_900));
        assert!(test.context().is_empty() && !peer.is_ended());
        test.advance(Duration::from_millis(200));
        assert_eq!(*test.context(), ["not connected: the handshake took too long"]);
        assert_eq!(peer.is_dropped(), sent == 0, "nobody waits for who has said nothing");
        if sent == 0 {
            assert_eq!(peer.take_received(), b"");
            continue;
        }
        assert_eq!(peer.is_ended(), room == usize::MAX, "not before the alert");
        peer.make_room(1000);
        test.settle();
        assert_eq!(peer.take_received(), encode(Kind::Alert, b"late", 0x55));
        assert!(peer.is_ended() && !peer.is_dropped());
        test.advance(Duration::from_millis(2_100));
        assert!(peer.is_dropped(), "as long as it lingers, and no longer");
        assert_eq!(test.context().len(), 1, "told once");
    }
}

#[test]
fn a_failed_handshake_does_not_reset_the_connection() -> io::Result<()> {
    let bytes = encode(Kind::Data, &[b'x'; 100], 0x55);
    assert_eq!(answer_on_real_sockets(&bytes, alert().len(), |server| server, || ())?, alert());
    Ok(())
}

#[test]
fn a_drain_that_begins_in_the_handshake_is_told_after_it() {
    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    test.drain(Duration::from_secs(9));
    assert!(test.context().is_empty(), "there is nobody to tell yet");
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["serves plain", "draining"]);
}

#[test]
fn signals_hold_up_neither_the_handshake_nor_the_end() {
    let mut test = Test::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).with_signals(), None, scope));
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["serves plain"]);
    peer.send(&encode(Kind::Close, b"", 0x55));
    test.settle();
    assert!(peer.is_ended() && peer.is_dropped(), "nothing is left that could cause an event");
}

fn shaken(test: &mut Test) -> Peer {
    let peer = server(test);
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    test.context_mut().clear();
    peer.take_received();
    peer
}

#[test]
fn a_change_of_key_is_answered_before_anything_else_is_read() {
    let mut test = Test::new(Log::new());
    let peer = shaken(&mut test);
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
fn what_a_wrapper_has_read_already_is_found_when_it_has_written() {
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = shaken(&mut test);
    peer.limit_room(0);
    // Seven bytes, which the wrapper reads at once; then it must write, and no edge will tell of
    // what it holds.
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
fn nothing_is_flushed_before_the_wrapper_has_written_it() {
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

/// A server that changes its key after the first record, in a world of narrow edges.
fn key_changer(test: &mut Test) -> Peer {
    test.world().narrow_edges();
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).change_key_after(0), None, scope));
    peer
}

#[test]
fn writing_that_waits_for_something_to_read_goes_on_when_it_comes() {
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
fn writing_that_waits_for_something_to_read_goes_on_when_it_was_read_in_passing() {
    let mut test = Test::new(Log::new());
    let peer = key_changer(&mut test);
    // The answer comes after the write that waits for it, and before the read in the same pass that
    // finds it: the third read, after those of the handshake and of the write. When its edge is
    // delivered, nothing waits for it any more.
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
fn output_that_a_wrapper_holds_is_flushed_before_the_end() {
    let mut test = Test::new(Log::new());
    let peer = shaken(&mut test);
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
fn an_end_without_a_close_record_is_told_apart_from_an_end() {
    let what_is_told = |bytes: &[u8]| {
        let mut test = Test::new(Log::new());
        let peer = shaken(&mut test);
        peer.send(bytes);
        peer.end();
        test.settle();
        assert!(peer.is_dropped(), "there is nothing to linger for");
        test.context().clone()
    };
    let cut = "the stream has ended without the peer's saying so";
    assert_eq!(what_is_told(b""), [cut]);
    assert_eq!(what_is_told(&encode(Kind::Data, b"cut", 0x55)[..3]), [cut]);
    let close = encode(Kind::Close, b"", 0x55);
    assert_eq!(what_is_told(&close), ["the peer has ended the stream"]);
    // It waits on, and is told once more what it was told before.
    assert_eq!(what_is_told(&encode(Kind::Data, b"stay", 0x55)), [cut, cut]);
}

#[test]
fn an_end_without_a_close_record_is_told_as_such_where_a_drain_has_found_it() {
    let mut test = Test::new(Log::new());
    let peer = shaken(&mut test);
    // Before its event is delivered, so that it is the drain that reads.
    peer.before_read(Peer::end);
    test.drain(Duration::from_secs(9));
    test.settle();
    assert_eq!(*test.context(), ["draining", "the stream has ended without the peer's saying so"]);
}

#[test]
fn a_peer_that_takes_nothing_of_what_a_wrapper_holds_meets_the_flush_timeout() {
    let mut test = Test::new(Log::new());
    let peer = shaken(&mut test);
    peer.limit_room(1);
    peer.send(&encode(Kind::Data, b"x\n", 0x55));
    test.settle();
    test.advance(Duration::from_secs(31));
    assert_eq!(*test.context(), ["fatal: the peer does not take what is sent to it"]);
    assert!(peer.is_dropped());
    peer.fail_writes(ErrorKind::BrokenPipe);
}
