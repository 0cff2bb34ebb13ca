//! The proxy between a client and an upstream, both in the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rotor_bench::process::resident_bytes;
use rotor_bench::server::Server;

use crate::certificates::Certificates;
use crate::support::{PATIENCE, again, connect, example};

/// Bytes in which every gap and every swap is noticed.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|index| ((seed + index) % 251) as u8).collect()
}

fn start_proxy(upstream: SocketAddr) -> Server {
    start_proxy_with(&upstream.to_string(), |command| command)
}

fn start_proxy_with(upstream: &str, change: impl FnOnce(Command) -> Command) -> Server {
    start_telling(upstream, "none", change)
}

fn start_telling(upstream: &str, header: &str, change: impl FnOnce(Command) -> Command) -> Server {
    let mut command = Command::new("sh");
    // `Server::start` appends the address to listen at, but the program wants it first.
    command.args(["-c", "exec \"$0\" \"$3\" \"$1\" \"$2\""]);
    command.arg(example("tcp_proxy").get_program()).args([upstream, header]);
    Server::start(change(command), PATIENCE).expect("it starts")
}

struct Proxied {
    proxy: Server,
    upstream: TcpListener,
}

impl Proxied {
    fn start() -> Proxied {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = start_proxy(upstream.local_addr().expect("it is bound"));
        Proxied { proxy, upstream }
    }

    /// Connects through the proxy. Returns the client's and the upstream's sockets.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let client = connect(self.proxy.address());
        let (upstream, _) = self.upstream.accept().expect("the proxy connects");
        upstream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        upstream.set_write_timeout(Some(PATIENCE)).expect("not zero");
        (client, upstream)
    }
}

fn read_to_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).expect("a good end");
    bytes
}

/// Sends the bytes and shuts down, while the other end reads up to EOF.
fn assert_carries(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    let mut sender = from.try_clone().expect("a descriptor is left");
    let received = thread::scope(|scope| {
        scope.spawn(move || {
            sender.write_all(bytes).expect("the proxy takes it");
            sender.shutdown(Shutdown::Write).expect("it is connected");
        });
        read_to_end(to)
    });
    assert!(received == bytes, "{} bytes became {}", bytes.len(), received.len());
}

#[test]
fn the_proxy_prints_where_it_listens_and_what_to_try() {
    let Proxied { proxy, upstream } = Proxied::start();
    let (here, there) = (proxy.address(), upstream.local_addr().expect("it is bound"));
    assert_eq!(proxy.next_line(PATIENCE), Some(format!("passing on to {there}")));
    let try_this =
        format!("try: nc -l 127.0.0.1 {}, then nc 127.0.0.1 {}", there.port(), here.port());
    assert_eq!(proxy.next_line(PATIENCE), Some(try_this));
}

#[test]
fn small_pieces_pass_in_both_directions() {
    let proxied = Proxied::start();
    let (mut client, mut upstream) = proxied.connect();
    for number in 0..100_u8 {
        let mut byte = [0];
        client.write_all(&[number]).expect("the proxy takes it");
        upstream.read_exact(&mut byte).expect("it arrives");
        upstream.write_all(&[byte[0], byte[0]]).expect("the proxy takes it");
        let mut answer = [0; 2];
        client.read_exact(&mut answer).expect("it arrives");
        assert_eq!(answer, [number; 2]);
    }
}

#[test]
fn an_end_is_forwarded_and_the_other_direction_stays_open() {
    let proxied = Proxied::start();
    for len in [0, 1, 16 * 1024, 1_000_000] {
        let (mut client, mut upstream) = proxied.connect();
        assert_carries(&mut client, &mut upstream, &pattern(1, len));
        assert_carries(&mut upstream, &mut client, &pattern(2, len));
        let (mut client, mut upstream) = proxied.connect();
        assert_carries(&mut upstream, &mut client, &pattern(3, len));
        assert_carries(&mut client, &mut upstream, &pattern(4, len));
    }
}

#[test]
fn simultaneous_directions_do_not_mix() {
    let proxied = Proxied::start();
    let (up, down) = (pattern(0, 8 << 20), pattern(100, 8 << 20));
    let (client, upstream) = proxied.connect();
    let clone = |socket: &TcpStream| socket.try_clone().expect("a descriptor is left");
    let (mut client_reads, mut upstream_reads) = (clone(&client), clone(&upstream));
    thread::scope(|scope| {
        for (mut socket, bytes) in [(client, &up), (upstream, &down)] {
            scope.spawn(move || {
                socket.write_all(bytes).expect("the proxy takes it");
                socket.shutdown(Shutdown::Write).expect("it is connected");
            });
        }
        let received = scope.spawn(move || read_to_end(&mut client_reads));
        assert!(read_to_end(&mut upstream_reads) == up, "what went up differs");
        assert!(received.join().expect("it reads") == down, "what came down differs");
    });
}

#[test]
fn a_side_that_does_not_read_stops_the_other_without_filling_memory() {
    const LEN: usize = 128 << 20;
    /// More than the kernel's buffers on both sides of the proxy, by far.
    const TAKEN_MAX: usize = 64 << 20;
    const GROWTH_MAX: u64 = 4 << 20;
    let proxied = Proxied::start();
    let (mut client, mut upstream) = proxied.connect();
    let before = resident_bytes(proxied.proxy.pid()).unwrap_or(0);
    let bytes = pattern(0, LEN);
    // If no write succeeds for this time, the data has stopped moving. On a busy machine it may be
    // too short; then the writing stops earlier, and the test checks less.
    client.set_write_timeout(Some(Duration::from_millis(300))).expect("not zero");
    let mut taken = 0;
    loop {
        match again(|| client.write(&bytes[taken..])) {
            Ok(count) => taken += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(taken < TAKEN_MAX, "{taken} bytes were taken that nobody reads");
    }
    let grown = resident_bytes(proxied.proxy.pid()).unwrap_or(0).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "the proxy has grown by {grown} bytes");
    client.set_write_timeout(Some(PATIENCE)).expect("not zero");
    // A concurrent connection is not delayed.
    let (mut other_client, mut other_upstream) = proxied.connect();
    assert_carries(&mut other_client, &mut other_upstream, b"meanwhile");
    let sender = thread::spawn(move || {
        client.write_all(&bytes[taken..TAKEN_MAX]).expect("the proxy takes it");
        client.shutdown(Shutdown::Write).expect("it is connected");
        bytes
    });
    let received = read_to_end(&mut upstream);
    let bytes = sender.join().expect("it sends");
    assert!(received == bytes[..TAKEN_MAX], "{TAKEN_MAX} bytes became {}", received.len());
    let grown = resident_bytes(proxied.proxy.pid()).unwrap_or(0).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "the proxy has grown by {grown} bytes");
}

#[test]
fn a_refused_upstream_ends_the_client_and_the_next_client_is_tried_anew() {
    // The local port of a connected socket: it is in use, but nobody listens there.
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = connect(elsewhere.local_addr().expect("it is bound"));
    let proxy = start_proxy(taken.local_addr().expect("it is bound"));
    for _ in 0..3 {
        let mut client = connect(proxy.address());
        assert_eq!(again(|| client.read(&mut [0])).expect("an end, in order"), 0);
    }
    assert!(proxy.terminate(PATIENCE).expect("it ends").success());
}

#[test]
fn a_reset_of_one_side_resets_the_other() {
    let proxied = Proxied::start();
    let gone = |result: std::io::Result<usize>| {
        assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    };
    let (client, mut upstream) = proxied.connect();
    // Closing a connection with unread input resets it.
    upstream.write_all(b"unread").expect("the proxy takes it");
    again(|| client.peek(&mut [0])).expect("it arrives");
    drop(client);
    gone(again(|| upstream.read(&mut [0])));
    let (mut client, upstream) = proxied.connect();
    client.write_all(b"unread").expect("the proxy takes it");
    again(|| upstream.peek(&mut [0])).expect("it arrives");
    drop(upstream);
    gone(again(|| client.read(&mut [0])));
    // Other connections are not affected.
    let (mut client, mut upstream) = proxied.connect();
    assert_carries(&mut client, &mut upstream, b"still here");
}

/// One proxy adds TLS and another removes it. Between them are handshakes, records, and the end of
/// both sides by `close_notify`.
#[test]
fn tls_is_added_and_removed_transparently() {
    let ours = Certificates::for_names(&["localhost"]);
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = upstream.local_addr().expect("it is bound").to_string();
    let inner = start_proxy_with(&address, |command| ours.shown_by(command));
    let tls = format!("tls://localhost:{}", inner.address().port());
    let proxy = start_proxy_with(&tls, |command| ours.trusted_by(command));
    let proxied = Proxied { proxy, upstream };
    for len in [0, 1, 100_000, 5_000_000] {
        let (mut client, mut upstream) = proxied.connect();
        assert_carries(&mut client, &mut upstream, &pattern(1, len));
        assert_carries(&mut upstream, &mut client, &pattern(2, len));
    }
    // Nothing gets through to a server that is not trusted.
    let others = Certificates::for_names(&["localhost"]);
    let proxy = start_proxy_with(&tls, |command| others.trusted_by(command));
    let mut client = connect(proxy.address());
    client.write_all(b"a secret").expect("it is taken");
    assert!(matches!(again(|| client.read(&mut [0; 1])), Ok(0) | Err(_)));
}

/// The header in version 1 that a proxy sends for this client, if it is told to send one.
fn line(client: &TcpStream) -> String {
    let (from, to) = (client.local_addr().expect("it has one"), client.peer_addr().expect("here"));
    format!("PROXY TCP4 {} {} {} {}\r\n", from.ip(), to.ip(), from.port(), to.port())
}

/// The same in version 2: the signature, PROXY over TCP and IPv4, 12 bytes of addresses.
fn binary(client: &TcpStream) -> Vec<u8> {
    let (from, to) = (client.local_addr().expect("it has one"), client.peer_addr().expect("here"));
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01".to_vec();
    header.extend(from.port().to_be_bytes());
    header.extend(to.port().to_be_bytes());
    header
}

#[test]
fn the_proxy_header_names_the_client_before_any_other_byte() {
    for header in ["send-proxy", "send-proxy-v2"] {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = upstream.local_addr().expect("it is bound").to_string();
        let proxied =
            Proxied { proxy: start_telling(&address, header, |command| command), upstream };
        // It makes no difference which side sends first.
        for client_is_first in [false, true] {
            let (mut client, mut upstream) = proxied.connect();
            if client_is_first {
                client.write_all(b"hello").expect("it is taken");
            }
            let expected = match header {
                "send-proxy" => line(&client).into_bytes(),
                _ => binary(&client),
            };
            let mut said = vec![0; expected.len()];
            upstream.read_exact(&mut said).expect("a header");
            assert_eq!(said, expected, "{header}");
            if client_is_first {
                let mut said = [0; 5];
                upstream.read_exact(&mut said).expect("what comes behind it");
                assert_eq!(&said, b"hello");
            }
            assert_carries(&mut upstream, &mut client, &pattern(2, 100_000));
            assert_carries(&mut client, &mut upstream, &pattern(1, 100_000));
        }
    }
}

/// The listener of the proxy that removes TLS knows no header, so the test reads the connection
/// itself: the header comes before the first record.
#[test]
fn the_proxy_header_precedes_tls() {
    let ours = Certificates::for_names(&["localhost"]);
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let tls = format!("tls://localhost:{}", upstream.local_addr().expect("it is bound").port());
    let proxy = start_telling(&tls, "send-proxy", |command| ours.trusted_by(command));
    let proxied = Proxied { proxy, upstream };
    let (client, mut upstream) = proxied.connect();
    let expected = line(&client);
    let mut said = vec![0; expected.len() + 1];
    upstream.read_exact(&mut said).expect("a header, and the type of a record");
    assert_eq!(said, [expected.as_bytes(), &[22]].concat(), "a handshake's record behind it");
}
