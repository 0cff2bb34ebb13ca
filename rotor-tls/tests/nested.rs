//! TLS within TLS, as to a server behind a proxy that is itself asked over TLS: whole, byte by byte,
//! much at once, and an end of each kind after each piece.

mod kit;

use std::io::ErrorKind;
use std::time::Duration;

use kit::{Issuer, Lines, Log, RawClient};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor_tls::{TlsClient, TlsServer, TlsStream};

type Nested = TlsStream<TlsStream<ScriptedSocket>>;
type Test = TestLoop<Stream<Lines, Nested>>;

/// The outer and the inner one.
struct Ends {
    servers: [TlsServer; 2],
    clients: [TlsClient; 2],
    issuers: [Issuer; 2],
}

impl Ends {
    fn new() -> Ends {
        let issuers = [Issuer::new(), Issuer::new()];
        Ends {
            servers: [issuers[0].server(), issuers[1].server()],
            clients: [issuers[0].client(), issuers[1].client()],
            issuers,
        }
    }

    fn add_server(&self, test: &mut Test) -> Peer {
        let (socket, peer) = pair(test.world());
        let socket = self.servers[1].wrap(self.servers[0].wrap(socket));
        test.add(|scope| Stream::connected(socket, None, scope));
        peer
    }

    /// A server, and a client that sends two lines.
    fn connect(&self, test: &mut Test, len: usize) -> Wire {
        let server = self.add_server(test);
        Wire::new(server, self.add_client(test), len)
    }

    fn add_client(&self, test: &mut Test) -> Peer {
        let (socket, peer) = pair(test.world());
        let to = |client: &TlsClient| client.to((), "localhost").expect("it is a name");
        let outer = TlsStream::client(socket, &to(&self.clients[0]));
        let socket = TlsStream::client(outer, &to(&self.clients[1]));
        test.add(|scope| Stream::connected(socket, Some(2), scope));
        peer
    }
}

/// What carries bytes between a server and a client.
struct Wire {
    server: Peer,
    client: Peer,
    /// The maximum length of a piece.
    len: usize,
    waiting: [Vec<u8>; 2],
    ended: [bool; 2],
}

impl Wire {
    fn new(server: Peer, client: Peer, len: usize) -> Wire {
        Wire { server, client, len, waiting: Default::default(), ended: [false; 2] }
    }

    /// Carries at most this many pieces. Returns how many there were.
    fn carry(&mut self, test: &mut Test, pieces: usize) -> usize {
        let mut count = 0;
        loop {
            test.settle();
            let before = count;
            for at in [0, 1] {
                if count == pieces {
                    return count;
                }
                let [from, to] = match at {
                    0 => [&self.server, &self.client],
                    _ => [&self.client, &self.server],
                };
                let waiting = &mut self.waiting[at];
                waiting.extend(from.take_received());
                let piece: Vec<u8> = waiting.drain(..self.len.min(waiting.len())).collect();
                if !piece.is_empty() {
                    to.send(&piece);
                    count += 1;
                } else if from.is_ended() && !self.ended[at] {
                    self.ended[at] = true;
                    to.end();
                    count += 1;
                }
                test.settle();
            }
            if before == count {
                return count;
            }
        }
    }

    fn is_dropped(&self) -> bool {
        self.server.is_dropped() && self.client.is_dropped()
    }
}

#[test]
fn a_client_and_a_server_exchange_lines() {
    for len in [usize::MAX, 1, 7, 100, 5_000] {
        let ends = Ends::new();
        let mut test = Test::new(Log::new());
        let mut wire = ends.connect(&mut test, len);
        wire.carry(&mut test, usize::MAX);
        let mut log = std::mem::take(test.context_mut());
        log.sort();
        let session = "Tls13 lines localhost";
        let expected = ["LINE 1", "LINE 2", session, session, "the peer has ended the stream"];
        assert_eq!(log, expected, "by {len}");
        assert!(wire.is_dropped(), "by {len}");
        for (server, client) in ends.servers.iter().zip(&ends.clients) {
            assert_eq!((server.counters().full(), client.counters().full()), (1, 1));
        }
    }
}

/// A client of rustls within one of rustls.
struct Raw {
    outer: RawClient,
    inner: RawClient,
    read: usize,
}

impl Raw {
    /// Exchanges what both have, as far as there is room.
    fn talk(&mut self, test: &mut Test, peer: &Peer) {
        loop {
            let records = self.inner.take_records();
            self.outer.write(&records);
            let records = self.outer.take_records();
            let is_quiet = records.is_empty();
            if !is_quiet {
                peer.send(&records);
            }
            test.settle();
            let records = peer.take_received();
            if is_quiet && records.is_empty() {
                return;
            }
            self.outer.receive(&records);
            let plain = self.outer.plain.split_off(self.read);
            self.inner.receive(&plain);
            self.read = self.outer.plain.len();
        }
    }
}

#[test]
fn long_lines_pass_whole_whatever_the_socket_takes_at_once() {
    let line = [&vec![b'x'; 300_000][..], b"\n"].concat();
    for (room, reads) in [(usize::MAX, usize::MAX), (3_000, usize::MAX), (50_000, 700)] {
        let ends = Ends::new();
        let mut test = Test::new(Log::new());
        let peer = ends.add_server(&mut test);
        let [outer, inner] =
            ends.issuers.each_ref().map(|issuer| RawClient::new(issuer.raw_config(), "localhost"));
        let mut raw = Raw { outer, inner, read: 0 };
        raw.talk(&mut test, &peer);
        peer.limit_room(room);
        peer.limit_reads(reads);
        raw.inner.write(&line);
        raw.inner.write(&line);
        raw.inner.tls.send_close_notify();
        for _ in 0..1_000 {
            raw.talk(&mut test, &peer);
            if raw.inner.is_closed {
                break;
            }
            peer.make_room(room);
        }
        let upper = line.to_ascii_uppercase();
        assert!(raw.inner.plain == [&upper[..], &upper].concat(), "{room}, {reads}");
        // The end of the inner one comes before that of the outer one.
        assert!(raw.inner.is_closed && raw.outer.is_closed, "{room}, {reads}");
        assert_eq!(
            test.context().last().map(String::as_str),
            Some("the peer has ended the stream")
        );
    }
}

#[test]
fn an_end_of_any_kind_after_any_piece_leaves_nothing() {
    type Event = fn(&mut Test, &Peer, &Peer);
    let events: [(&str, Event); 7] = [
        ("reset", |_, a, b| {
            a.reset();
            b.reset();
        }),
        ("end", |_, a, b| {
            a.end();
            b.end();
        }),
        ("end of one side", |_, a, _| a.end()),
        ("garbage", |_, a, _| a.send(&[0xff; 100])),
        ("failed writes", |_, a, _| a.fail_writes(ErrorKind::BrokenPipe)),
        ("drain", |test, _, _| test.drain(Duration::from_secs(60))),
        ("nothing", |_, _, _| {}),
    ];
    let ends = Ends::new();
    let all = {
        let mut test = Test::new(Log::new());
        ends.connect(&mut test, 100).carry(&mut test, usize::MAX)
    };
    assert!(all > 30, "only {all}");
    for (name, happen) in events {
        for pieces in 0..=all {
            let mut test = Test::new(Log::new());
            let mut wire = ends.connect(&mut test, 100);
            wire.carry(&mut test, pieces);
            happen(&mut test, &wire.server, &wire.client);
            for _ in 0..20 {
                wire.carry(&mut test, usize::MAX);
                if test.advance_to_deadline().is_none() {
                    break;
                }
            }
            let case = format!("{name} after {pieces} of {all}: {:?}", test.context());
            assert_eq!(test.failures(), [""; 0], "{case}");
            assert!(wire.is_dropped(), "{case}");
            for (server, client) in ends.servers.iter().zip(&ends.clients) {
                assert_eq!(server.counters().handshakes_now(), 0, "{case}");
                assert_eq!(client.counters().handshakes_now(), 0, "{case}");
            }
        }
    }
}
