//! Checks that the loop that delivers input byte by byte does so.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

mod backend;
#[path = "../../examples/ws_echo/machine.rs"]
mod echo;
mod socket;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rotor::http::server::{self, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};
use rotor::websocket::{Deflate, WebSocketConfig};
use rotor::{Backend, Config, EarlyScope, Loop, Machine, Mio, Response, Scope};

use self::backend::ByteByByte;
use self::echo::Site;
use self::socket::OneByOneListener;

/// How long a turn waits.
const WAIT: Duration = Duration::from_millis(10);

/// How long a peer waits for a response, so that a lost one does not block the test forever.
const PATIENCE: Duration = Duration::from_secs(120);

/// The length of the input of [`Watcher`].
const WATCHED: usize = 1000;

/// Consumes nothing, waits for more input than there is, and records how much there was.
struct Watcher;

impl Watcher {
    fn wait_for_more(self, len: usize) -> Intent<Watcher> {
        if len < WATCHED { Intent::of(self).bytes(len + 1).no_deadline() } else { Intent::done() }
    }
}

impl Protocol for Watcher {
    type Context = Vec<usize>;
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, Vec<usize>>) -> Intent<Self> {
        Watcher.wait_for_more(0)
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Vec<usize>>,
    ) -> Intent<Self> {
        let len = transport.input.len();
        scope.push(len);
        self.wait_for_more(len)
    }
}

/// What a machine sent back for input sent in one piece, what it recorded, and how many turns it
/// took.
struct TalkResult<C> {
    answer: Vec<u8>,
    noted: C,
    turns: u64,
}

fn talk<M: Machine + 'static, L: Listener<Address = SocketAddr>, B: Backend>(
    backend: B,
    noted: M::Context,
    listen: impl FnOnce(L, &mut EarlyScope<'_>) -> Response<M>,
    input: Vec<u8>,
) -> TalkResult<M::Context> {
    let mut creator = Loop::<M, B>::with_backend(backend, &Config::new()).expect("there is room");
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = L::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(listen(listener, scope))
        })
    });
    listening.expect("a port is free");
    let peer = thread::spawn(move || {
        let mut socket = std::net::TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("it can be");
        let mut answer = Vec::new();
        socket.write_all(&input).expect("it takes all");
        socket.read_to_end(&mut answer).expect("it ends in order");
        answer
    });
    let mut instance = creator.instantiate(noted);
    while !peer.is_finished() {
        instance.turn(Some(WAIT)).expect("the loop goes on");
    }
    let turns = instance.stats().read().turns;
    let answer = peer.join().expect("it was answered");
    TalkResult { answer, noted: instance.into_context(), turns }
}

fn run_watcher<L: Listener<Address = SocketAddr>>(backend: impl Backend) -> TalkResult<Vec<usize>> {
    let listen = |listener, scope: &mut EarlyScope<'_>| {
        Accept::<Stream<Watcher, L::Socket>, L>::listen(listener, (), AcceptConfig::new(), scope)
    };
    talk(backend, Vec::new(), listen, vec![b'x'; WATCHED])
}

#[test]
fn a_machine_is_called_after_each_byte_in_a_separate_turn() {
    let backend = ByteByByte::around(Mio::new(64).expect("descriptors are left"));
    let bytes = backend.bytes();
    let TalkResult { noted, turns, .. } = run_watcher::<OneByOneListener<TcpListener>>(backend);
    assert_eq!(noted, Vec::from_iter(1..=WATCHED));
    assert_eq!(bytes.taken(), WATCHED as u64);
    assert!(turns >= WATCHED as u64, "{turns}");
    // Without the wrapper the same input comes in large pieces.
    let plain = run_watcher::<TcpListener>(Mio::new(64).expect("descriptors are left"));
    assert!(plain.noted.len() < 10, "{:?}", plain.noted);
}

/// A frame of a client. Its masking key is `mask`.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = *b"mask";
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len @ 126..=0xffff => frame.extend([&[0xfe][..], &(len as u16).to_be_bytes()].concat()),
        len => frame.extend([&[0xff][..], &(len as u64).to_be_bytes()].concat()),
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n\r\n";

/// What an echo sends after the head of its response.
fn echoed<L: Listener<Address = SocketAddr>>(backend: impl Backend, frames: &[u8]) -> Vec<u8> {
    let config = WebSocketConfig::new().deflate(Deflate::new()).share();
    let seed = HttpSeed::<Site<()>>::new(config, ServerConfig::new());
    let input = [REQUEST, frames].concat();
    let talk = talk(backend, (), |listener: L, scope| server::listen(listener, seed, scope), input);
    let answer = talk.answer;
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", answer.escape_ascii());
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("it has an end");
    // The head contains the current date.
    answer[head..].to_vec()
}

#[test]
fn an_echo_does_not_depend_on_how_bytes_arrive() {
    let long: Vec<u8> = (0..100_000_u32).map(|byte| (byte % 251) as u8).collect();
    // The echo compresses its messages; "Hello" is from RFC 7692, 7.2.3.1.
    let good = [
        frame(0x01, "κόσ".as_bytes()),
        frame(0x89, b"?"),
        frame(0x80, "με".as_bytes()),
        frame(0xc1, &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]),
        frame(0x82, &long),
    ];
    let ends = [
        frame(0x88, &[&1000_u16.to_be_bytes()[..], b"done"].concat()),
        frame(0x91, b"reserved"),
        frame(0x80, b"of nothing"),
        frame(0x81, b"\xce\xba\xed\xa0\x80"),
        frame(0xc2, &[0xff; 5]),
        frame(0x09, b"half a ping"),
    ];
    for end in ends {
        let frames = [&good.concat()[..], &end].concat();
        let backend = ByteByByte::around(Mio::new(64).expect("descriptors are left"));
        let bytes = backend.bytes();
        let by_one = echoed::<OneByOneListener<TcpListener>>(backend, &frames);
        let plain = echoed::<TcpListener>(Mio::new(64).expect("descriptors are left"), &frames);
        assert!(by_one == plain, "{}", end.escape_ascii());
        // The echo may close after any byte of `end`, and leave the rest unread.
        let (least, most) = (frames.len() - end.len(), frames.len());
        let taken = bytes.taken() as usize - REQUEST.len();
        assert!((least..=most).contains(&taken), "{least} {taken} {most}");
    }
}
