//! What a stream may conclude from a short read: the socket below is empty, but only if that read
//! emptied it.

mod kit;

use std::cell::RefCell;
use std::io::{ErrorKind, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kit::{Issuer, Log, RawClient};
use rotor_core::Scope;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};
use rotor_tls::{TlsServer, TlsStream};

type Test = TestLoop<Stream<Pauses, TlsStream<Scripted<true>>>>;

/// The capacity of the input's first block: a read of this many bytes is not short.
const BLOCK: usize = rotor_stream::buf::BLOCK_BYTES;

/// Takes a block, answers, ignores its input for a second, then takes what has arrived.
struct Pauses;

impl Protocol for Pauses {
    type Context = Log;
    type Seed = ();

    fn config(_: &()) -> Arc<StreamConfig> {
        StreamConfig::new().input_max(1 << 20).share()
    }

    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::of(Pauses).bytes(BLOCK).no_deadline()
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("{} bytes", matched.len()));
        let is_block = matched.len() == BLOCK;
        matched.consume(transport.input);
        if is_block {
            transport.output.write_all(b"ok\n").expect("it is open");
            return Intent::of(self).sleep().deadline(scope.now() + Duration::from_secs(1));
        }
        Intent::of(self).bytes(50).no_deadline()
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::of(self).bytes(50).no_deadline()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(rotor_core::with_causes(&error).to_string());
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(rotor_core::with_causes(&exception).to_string());
        Intent::done()
    }
}

/// A client that has completed the handshake with a server of [`Pauses`].
fn connected(
    test: &mut Test,
    config: rustls::ClientConfig,
    server: &TlsServer,
) -> (Peer, RawClient) {
    let (socket, peer) = pair(test.world());
    let socket = server.wrap(socket);
    test.add(|scope| Stream::connected(socket, (), scope));
    let mut client = RawClient::new(config, "localhost");
    client.talk(test, &peer);
    (peer, client)
}

#[test]
fn a_close_notify_found_during_a_write_ends_the_stream() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let issuer = Issuer::new();
        let mut test = Test::new(Log::new());
        let (peer, mut client) =
            connected(&mut test, issuer.raw_config_of(&[version]), &issuer.server());
        client.write(&[b'x'; BLOCK]);
        client.tls.send_close_notify();
        // The answer comes before the stream looks at what follows the block.
        client.talk(&mut test, &peer);
        assert_eq!(client.plain, b"ok\n");
        test.advance(Duration::from_secs(2));
        // The end is reported although the socket below stays open.
        assert_eq!(test.context()[1..], ["the peer has ended the stream"], "{version:?}");
    }
}

#[test]
fn a_bad_record_found_during_a_write_is_counted_and_alerted() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let issuer = Issuer::new();
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, issuer.raw_config_of(&[version]), &server);
        client.write(&[b'x'; BLOCK]);
        let first = client.take_records();
        client.write(&[b'y'; 50]);
        let mut second = client.take_records();
        *second.last_mut().expect("it is not empty") ^= 1;
        peer.send(&[first, second].concat());
        test.settle();
        client.receive(&peer.take_received());
        let alert = rustls::AlertDescription::BadRecordMac;
        assert_eq!(client.failure, Some(rustls::Error::AlertReceived(alert)), "{version:?}");
        assert_eq!(server.counters().broken(), 1);
        let log = test.context()[1..].join("\n");
        assert!(log.contains("the peer violated TLS"), "{log}");
    }
}

#[test]
fn bytes_that_arrive_while_decoded_ones_wait_are_read() {
    let issuer = Issuer::new();
    let mut test = Test::new(Log::new());
    let (peer, mut client) = connected(&mut test, issuer.raw_config(), &issuer.server());

    // One short read brings both records, of which the stream takes the first.
    client.write(&[b'x'; BLOCK]);
    client.write(&[b'y'; 50]);
    client.talk(&mut test, &peer);
    assert_eq!(*test.context(), [format!("{BLOCK} bytes")]);
    // An edge for these bytes, at a time when the stream does not read.
    client.write(&[b'z'; 50]);
    client.talk(&mut test, &peer);
    test.advance(Duration::from_secs(2));
    assert_eq!(test.context()[1..], ["50 bytes", "50 bytes"]);
}

/// A server's connection before its first event, on a socket whose short reads empty it.
fn add_server(test: &mut Test, server: &TlsServer) -> Peer {
    let (socket, peer) = pair(test.world());
    let socket = server.wrap(socket);
    test.add(|scope| Stream::connected(socket, (), scope));
    peer
}

#[test]
fn a_handshake_reads_once_for_each_flight() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let issuer = Issuer::new();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &issuer.server());
        test.settle();
        assert_eq!(peer.operations().reads, 0, "nobody has said that there is something");
        let mut client = RawClient::new(issuer.raw_config_of(&[version]), "localhost");
        client.talk(&mut test, &peer);
        assert!(!client.tls.is_handshaking());
        assert_eq!(peer.operations().reads, 2, "and none behind the tickets, {version:?}");
        peer.report_falsely();
        test.settle();
        client.write(&[b'x'; BLOCK]);
        client.talk(&mut test, &peer);
        assert_eq!(client.plain, b"ok\n");
    }
}

#[test]
fn an_end_reported_with_the_last_bytes_is_noticed() {
    let issuer = Issuer::new();
    let mut hello = RawClient::new(issuer.raw_config(), "localhost");
    let hello = hello.take_records();
    for sent in [0, 1, 5, 100, hello.len() - 1, hello.len()] {
        for is_known in [false, true] {
            let server = issuer.server();
            let mut test = Test::new(Log::new());
            let peer = add_server(&mut test, &server);
            if is_known {
                test.settle();
            }
            // One event reports both.
            peer.send(&hello[..sent]);
            peer.end();
            test.settle();
            assert!(peer.is_dropped(), "{sent} bytes of a hello");
            assert_eq!((server.counters().abandoned(), server.counters().handshakes_now()), (1, 0));
        }
    }
}

#[test]
fn an_end_after_the_last_flight_ends_the_stream() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    peer.send(&client.take_records());
    test.settle();
    client.receive(&peer.take_received());
    peer.send(&client.take_records());
    peer.end();
    test.settle();
    assert_eq!((server.counters().full(), server.counters().truncated()), (1, 1));
    assert_eq!(*test.context(), ["the connection was aborted before the peer ended the stream"]);
}

#[test]
fn bytes_after_an_urgent_byte_are_read() {
    let issuer = Issuer::new();
    let hello = RawClient::new(issuer.raw_config(), "localhost").take_records();
    for at in [0, 1, 5, 100, hello.len() - 2] {
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &issuer.server());
        // A read stops before the urgent byte and is short; one event reports everything.
        peer.send(&hello[..at]);
        peer.send_urgent(hello[at]);
        peer.send(&hello[at + 1..]);
        test.settle();
        assert!(peer.received_len() > 300, "the flight behind {at} bytes");
    }
}

#[test]
fn bytes_are_read_while_connections_wait_for_a_handshake_permit() {
    let issuer = Issuer::new();
    let server = issuer.server_with(|config| config.handshakes_max(1));
    let mut test = Test::new(Log::new());
    let [first, second, third] = [(); 3].map(|()| {
        let peer = add_server(&mut test, &server);
        peer.send(&RawClient::new(issuer.raw_config(), "localhost").take_records());
        test.settle();
        peer
    });
    // An unencrypted alert, with its own event, at a time when nobody reads.
    second.send(&[21, 3, 3, 0, 2, 2, 80]);
    test.settle();
    assert_eq!((second.received_len(), second.unread_len()), (0, 7));
    first.end();
    test.settle();
    assert_eq!(second.unread_len(), 0);
    assert_eq!(server.counters().refused_by_peer(), 1);
    // Nothing more has arrived for the third connection, and it still gets its flight.
    assert!(third.received_len() > 300);
}

/// Waits for input, and writes after a second. The function is called just before.
struct WritesLater(Box<dyn FnOnce()>);

impl Protocol for WritesLater {
    type Context = Log;
    type Seed = Box<dyn FnOnce()>;

    fn create(
        before: Box<dyn FnOnce()>,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        let deadline = scope.now() + Duration::from_secs(1);
        Intent::of(WritesLater(before)).bytes(1).deadline(deadline)
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(self, transport: &mut Transport<'_>, _: &mut Scope<'_, Log>) -> Intent<Self> {
        (self.0)();
        transport.output.write_all(b"late\n").expect("it is open");
        Intent::of(WritesLater(Box::new(|| ()))).bytes(1).no_deadline()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(rotor_core::with_causes(&error).to_string());
    }
}

#[test]
fn an_alert_found_after_a_failed_write_is_the_reason_of_the_loss() {
    for has_alert in [true, false] {
        let issuer = Issuer::new();
        let mut test = TestLoop::new(Log::new());
        let (socket, peer) = pair::<true>(test.world());
        let socket = issuer.server().wrap(socket);
        let (peer, alert) = (Rc::new(peer), Rc::new(RefCell::new(Vec::new())));
        // It arrives with a reset just before the write, which finds the reset first.
        let (of_before, sent) = (peer.clone(), alert.clone());
        let before: Box<dyn FnOnce()> = Box::new(move || {
            of_before.send(&sent.take());
            of_before.fail_writes(ErrorKind::BrokenPipe);
        });
        test.add(|scope| Stream::<WritesLater, _>::connected(socket, before, scope));
        let mut client = RawClient::new(issuer.raw_config(), "localhost");
        client.talk(&mut test, &peer);
        // A record that cannot be read makes the client send an alert.
        if has_alert {
            client.receive(&[23, 3, 3, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            *alert.borrow_mut() = client.take_records();
            assert!(!alert.borrow().is_empty());
        }
        test.advance(Duration::from_secs(2));
        let reason = match has_alert {
            true => "the connection broke: the peer refused the connection: alert BadRecordMac",
            false => "writing has failed: broken pipe",
        };
        assert_eq!(test.context()[..], [reason]);
    }
}

#[test]
fn an_alert_found_after_a_failed_write_is_the_reason_of_a_failed_handshake() {
    for (has_alert, expected) in [
        (true, "the handshake has failed: the peer refused the connection: alert BadCertificate"),
        (false, "the handshake has failed: broken pipe"),
    ] {
        let issuer = Issuer::new();
        let server = issuer.server();
        let mut test = kit::Test::new(Log::new());
        let peer = kit::add_server(&mut test, &server);
        let config = issuer.raw_config_of(&[&rustls::version::TLS12]);
        let mut client = RawClient::new(config, "localhost");
        // Not all of the server's flight is taken before the client leaves.
        peer.limit_room(100);
        peer.send(&client.take_records());
        test.settle();
        peer.fail_writes(ErrorKind::BrokenPipe);
        if has_alert {
            peer.send(&[21, 3, 3, 0, 2, 2, 42]);
        }
        peer.make_room(1);
        test.settle();
        assert_eq!(test.context()[..], [expected]);
        let counter = if has_alert { "refused_by_peer" } else { "abandoned" };
        assert!(kit::nonzero_counters(server.counters()).contains(&(counter, 1)));
    }
}
