//! Behavior of a connection beyond reading from and writing to its socket.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use rotor_stream::Buf;
use rotor_stream::testing::{World, pair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

use super::{Connection, Handshake};
use crate::clock::{self, LoopClock};
use crate::counters::HandshakeGuard;
use crate::engine::{Engine, EngineState, FRAGMENT_BYTES_MAX};
use crate::incoming::Incoming;
use crate::provider::provider;
use crate::sealed::WRITE_BYTES_MAX;

/// The configurations of a client and a server that trust each other.
fn configs() -> (ClientConfig, ServerConfig) {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
    params.not_before = rcgen::date_time_ymd(1970, 1, 1);
    let certificate = params.self_signed(&key).expect("it signs").der().to_vec();
    let certificate = CertificateDer::from(certificate);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("it is well made");
    let client = ClientConfig::builder_with_details(provider(), Arc::new(LoopClock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("it is a version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    server.ticketer = crate::provider::new_ticketer().expect("there is randomness");
    (client, server)
}

fn deliver(from: &mut Buf, to: &mut ServerConnection) {
    let mut records = &from[..];
    while !records.is_empty() {
        to.read_tls(&mut records).expect("a slice gives all");
        to.process_new_packets().expect("they are right");
    }
    from.clear();
}

/// Decrypts records at a server.
fn read(by: &mut ServerConnection, mut records: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    while !records.is_empty() {
        by.read_tls(&mut records).expect("a slice gives all");
        let state = by.process_new_packets().expect("they are right");
        let start = plain.len();
        plain.resize(start + state.plaintext_bytes_to_read(), 0);
        by.reader().read_exact(&mut plain[start..]).expect("it is there");
    }
    plain
}

/// Takes the records that a server has to send.
fn take_output(by: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while by.wants_write() {
        by.write_tls(&mut records).expect("a vector takes all");
    }
    records
}

/// A client that has completed the handshake, and its server, which has not sent its tickets yet.
fn connected() -> (Box<Connection>, ServerConnection) {
    let (client, server) = configs();
    let mut server = ServerConnection::new(Arc::new(server)).expect("it is well made");
    clock::set(SystemTime::UNIX_EPOCH + Duration::from_secs(100));
    let name = ServerName::try_from("localhost").expect("it is a name");
    let engine = Engine::client(Arc::new(client), name).expect("it is well made");
    let handshake = Handshake {
        guard: HandshakeGuard::begin(Arc::default()),
        _permit: None,
        is_slow: false,
        requires_certificate: false,
        session_began: None,
    };
    let mut connection = Connection::new(engine, None, Incoming::default(), handshake);
    assert!(connection.advance().is_ok());
    deliver(&mut connection.outgoing, &mut server);
    connection.incoming.bytes.extend(&take_output(&mut server));
    assert!(connection.advance().is_ok());
    deliver(&mut connection.outgoing, &mut server);
    drop(connection.end_handshake());
    (connection, server)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another thread is what it is about")]
fn a_ticket_is_processed_on_a_thread_without_a_handshake() {
    let (mut connection, mut server) = connected();
    connection.incoming.bytes.extend(&take_output(&mut server));
    assert!(connection.incoming.has_record(), "the tickets");
    let elsewhere = move || {
        connection.decode(&mut []).map(|(_, state)| state).map_err(|error| error.to_string())
    };
    let state = std::thread::spawn(elsewhere).join().expect("it does not panic");
    assert_eq!(state, Ok(EngineState::NeedsInput));
}

#[test]
fn at_most_one_write_waits() {
    let (mut connection, mut server) = connected();
    let (mut socket, peer) = pair::<true>(&World::new());
    peer.limit_room(0);
    assert_eq!(connection.write(&mut socket, &[IoSlice::new(b"one")]).ok(), Some(3));
    // Repeated attempts fail too.
    for _ in 0..3 {
        let two = connection.write(&mut socket, &[IoSlice::new(b"two")]);
        assert_eq!(two.expect_err("one waits already").kind(), ErrorKind::WouldBlock);
    }
    peer.make_room(1000);
    assert_eq!(connection.write_last(&mut socket, b"two").ok(), Some(3));
    connection.outgoing.extend(&peer.take_received());
    deliver(&mut connection.outgoing, &mut server);
    let mut plain = Vec::new();
    assert_eq!(server.reader().read_to_end(&mut plain).ok(), Some(6), "it is an end in order");
    assert_eq!(plain, b"onetwo");
}

/// Frame headers and payloads, as HTTP/2 writes them.
fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..2 * count).map(|at| vec![at as u8; if at % 2 == 0 { 9 } else { 16 << 10 }]).collect()
}

#[test]
fn frames_fill_records_and_four_records_are_one_write() {
    let (mut connection, mut server) = connected();
    let (mut socket, peer) = pair::<true>(&World::new());
    let frames = frames(4);
    let slices: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(frame)).collect();
    let all = frames.concat();
    assert_eq!(connection.write(&mut socket, &slices).ok(), Some(WRITE_BYTES_MAX));
    assert_eq!((peer.operations().writes, connection.outgoing.len()), (1, 0));
    let mut records = peer.take_received();
    // RFC 8446 §5.2: a header, the type, a tag of 16 bytes.
    const RECORD_BYTES: usize = FRAGMENT_BYTES_MAX + 5 + 1 + 16;
    assert_eq!(records.len(), 4 * RECORD_BYTES);
    assert!(records.chunks(RECORD_BYTES).all(|record| record[..3] == [23, 3, 3]));
    let rest = [IoSlice::new(&all[WRITE_BYTES_MAX..])];
    assert_eq!(connection.write(&mut socket, &rest).ok(), Some(all.len() - WRITE_BYTES_MAX));
    records.extend(peer.take_received());
    assert!(all == read(&mut server, &records));
}

#[test]
fn unsent_records_wait_in_order() {
    for room in [0, 1, 20_000, 65_000] {
        let (mut connection, mut server) = connected();
        let (mut socket, peer) = pair::<true>(&World::new());
        peer.limit_room(room);
        let frames = frames(2);
        let slices: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(frame)).collect();
        let all = frames.concat();
        assert_eq!(connection.write(&mut socket, &slices).ok(), Some(all.len()), "{room}");
        let records = peer.received_len();
        assert_eq!(connection.outgoing.is_empty(), room > all.len(), "{room}");
        peer.make_room(100_000);
        assert!(connection.flush(&mut socket).is_ok() && connection.outgoing.is_empty());
        assert_eq!(records, room.min(peer.received_len()));
        assert!(all == read(&mut server, &peer.take_received()), "{room}");
    }
}

/// Two ends that write a lot and read only between their writes would otherwise wait for each
/// other. A client would never see the answer of a server that stops taking its request.
#[test]
fn a_blocked_write_does_not_stop_reading() {
    let (mut connection, mut server) = connected();
    let (mut socket, peer) = pair::<true>(&World::new());
    peer.limit_room(0);
    let much = vec![b'x'; 2 * WRITE_BYTES_MAX];
    assert_eq!(connection.write(&mut socket, &[IoSlice::new(&much)]).ok(), Some(WRITE_BYTES_MAX));
    server.writer().write_all(b"no more, please").expect("it is open");
    peer.send(&take_output(&mut server));
    let mut buffer = [0; 100];
    let read = connection.read(&mut socket, &mut buffer).map(|count| buffer[..count].to_vec());
    assert_eq!(read.map_err(|error| error.kind()), Ok(b"no more, please".to_vec()));
}

#[test]
fn writes_fail_after_close_and_close_notify_is_sent_once() {
    let (mut connection, mut server) = connected();
    let (mut socket, peer) = pair::<true>(&World::new());
    assert!(connection.close(&mut socket).is_ok() && connection.close(&mut socket).is_ok());
    let more = connection.write(&mut socket, &[IoSlice::new(b"more")]);
    assert_eq!(more.expect_err("it is closed").kind(), ErrorKind::BrokenPipe);
    connection.outgoing.extend(&peer.take_received());
    let records = connection.outgoing.len();
    deliver(&mut connection.outgoing, &mut server);
    assert_eq!(server.reader().read(&mut [0; 10]).ok(), Some(0), "it is an end in order");
    // RFC 8446 §6.1: one alert of two bytes, with the record's header, type and tag.
    assert_eq!(records, 5 + 2 + 1 + 16);
}

/// RFC 8446 §6.1: `close_notify` is the last that is sent; whatever arrives after it.
#[test]
fn nothing_follows_close_notify_even_if_a_record_cannot_be_read() {
    let (mut connection, mut server) = connected();
    let (mut socket, peer) = pair::<true>(&World::new());
    assert!(connection.close(&mut socket).is_ok());
    let closed = peer.received_len();
    server.writer().write_all(b"later").expect("it is open");
    let mut records = take_output(&mut server);
    *records.last_mut().expect("it is not empty") ^= 1;
    peer.send(&records);
    let read = connection.read(&mut socket, &mut [0; 10]);
    assert_eq!(read.expect_err("it cannot be read").kind(), ErrorKind::InvalidData);
    assert!(connection.flush(&mut socket).is_ok());
    assert_eq!((peer.received_len(), connection.outgoing.len()), (closed, 0));
    assert!(!connection.has_sent_alert(), "a reset has no alert to wait for");
}
