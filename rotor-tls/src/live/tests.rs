//! What a connection does beyond its socket.

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use rotor_stream::Buf;
use rotor_stream::testing::{World, pair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

use super::{Live, Shaking};
use crate::clock::{self, LoopClock};
use crate::counters::UnderWay;
use crate::engine::{At, Engine};
use crate::incoming::Incoming;
use crate::provider::provider;

/// A client and a server for each other.
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
    server.ticketer = crate::provider::fresh_tickets().expect("there is randomness");
    (client, server)
}

fn carry(from: &mut Buf, to: &mut ServerConnection) {
    let mut records = &from[..];
    while !records.is_empty() {
        to.read_tls(&mut records).expect("a slice gives all");
        to.process_new_packets().expect("they are right");
    }
    from.clear();
}

/// What a server has to say.
fn said(by: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while by.wants_write() {
        by.write_tls(&mut records).expect("a vector takes all");
    }
    records
}

/// A client whose handshake is over, and its server, which has not sent its tickets yet.
fn shaken() -> (Box<Live>, ServerConnection) {
    let (client, server) = configs();
    let mut server = ServerConnection::new(Arc::new(server)).expect("it is well made");
    clock::set(SystemTime::UNIX_EPOCH + Duration::from_secs(100));
    let name = ServerName::try_from("localhost").expect("it is a name");
    let engine = Engine::client(Arc::new(client), name).expect("it is well made");
    let shaking = Shaking {
        under_way: UnderWay::begin(Arc::default()),
        _permit: None,
        is_slow: false,
        requires_certificate: false,
        session_began: None,
    };
    let mut live = Live::new(engine, None, Incoming::default(), shaking);
    assert!(live.advance().is_ok());
    carry(&mut live.outgoing, &mut server);
    live.incoming.bytes.extend(&said(&mut server));
    assert!(live.advance().is_ok());
    carry(&mut live.outgoing, &mut server);
    drop(live.end_shaking());
    (live, server)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another thread is what it is about")]
fn a_ticket_is_taken_on_a_thread_that_has_shaken_no_hands() {
    let (mut live, mut server) = shaken();
    live.incoming.bytes.extend(&said(&mut server));
    assert!(live.incoming.has_record(), "the tickets");
    let elsewhere =
        move || live.decode(&mut []).map(|(_, at)| at).map_err(|error| error.to_string());
    let at = std::thread::spawn(elsewhere).join().expect("it does not panic");
    assert_eq!(at, Ok(At::NeedsInput));
}

#[test]
fn one_write_waits_at_most() {
    let (mut live, mut server) = shaken();
    let (mut socket, peer) = pair::<true>(&World::new());
    peer.limit_room(0);
    assert_eq!(live.write(&mut socket, b"one").ok(), Some(3));
    let refused = live.write(&mut socket, b"two").expect_err("one waits already");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    peer.make_room(1000);
    assert_eq!(live.write_last(&mut socket, b"two").ok(), Some(3));
    live.outgoing.extend(&peer.take_received());
    carry(&mut live.outgoing, &mut server);
    let mut plain = Vec::new();
    assert_eq!(server.reader().read_to_end(&mut plain).ok(), Some(6), "it is an end in order");
    assert_eq!(plain, b"onetwo");
}
