//! The body of the fuzz target on TLS, as an ordinary function: `fuzz/fuzz_targets/` runs it under
//! libFuzzer, `tests/corpus.rs` calls it on every saved input.

#[path = "../kit/mod.rs"]
mod kit;

use std::sync::OnceLock;

use kit::{Issuer, Log, RawClient, Test, add_server};
use rotor_stream::testing::Peer;

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

pub(super) const TARGETS: [Target; 1] = [("tls_connection", tls_connection)];

/// An upper bound for the bytes that a server sends for one input.
const OUTPUT_MAX: usize = 1 << 20;

/// How many key updates may come in a row: as many as rustls accepts.
const KEYS_MAX: usize = 32;

fn issuer() -> &'static Issuer {
    static ISSUER: OnceLock<Issuer> = OnceLock::new();
    ISSUER.get_or_init(Issuer::new)
}

/// A server's connection that receives either the raw input, or the records of a real client,
/// during the handshake or after it. The input chooses the client's actions and the changes to its
/// records.
///
/// Nothing panics; the connection ends and is counted once. As long as no record is changed, each
/// line is answered and the client reports no failure.
fn tls_connection(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let server = issuer().server();
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = add_server(&mut test, &server);
    match mode % 4 {
        0 => raw(&mut test, &peer, data, usize::from(mode / 4) + 1),
        _ => with_client(&mut test, &peer, mode, data),
    }
    assert!(peer.received_len() < OUTPUT_MAX);
    peer.end();
    test.settle();
    test.advance(std::time::Duration::from_secs(60));
    assert!(peer.is_dropped() && test.machines() == 0, "it ends");
    let counters = server.counters();
    assert_eq!(counters.handshakes_now(), 0);
    let ended: u64 = counters.iter().take(11).map(|(_, count)| count).sum();
    assert_eq!(ended, 1, "{counters:?}");
    assert_eq!(counters.failed_here(), 0, "{counters:?} {:?}", test.context());
}

fn raw(test: &mut Test, peer: &Peer, data: &[u8], piece: usize) {
    for piece in data.chunks(piece) {
        peer.send(piece);
        test.settle();
    }
}

/// Each byte selects an action of the client or a change to its records.
fn with_client(test: &mut Test, peer: &Peer, mode: u8, data: &[u8]) {
    let versions: &[_] =
        if mode & 4 == 0 { &[&rustls::version::TLS13] } else { &[&rustls::version::TLS12] };
    let mut client = RawClient::new(issuer().raw_config_of(versions), "localhost");
    if mode & 8 == 0 {
        client.talk(test, peer);
        assert!(!client.tls.is_handshaking(), "{:?}", client.failure);
    }
    let (mut is_changed, mut has_closed, mut keys) = (false, false, 0);
    let mut expected = Vec::new();
    let mut data = data.iter().copied();
    while let Some(byte) = data.next() {
        let amount = usize::from(byte >> 3);
        match byte & 7 {
            0 | 1 if !client.tls.is_handshaking() => {
                let line = [&vec![b'a' + (byte >> 3); amount * amount][..], b"\n"].concat();
                expected.extend(line.to_ascii_uppercase());
                client.write(&line);
            }
            2 => {
                let mut records = client.take_records();
                let at = data.next().map_or(0, usize::from);
                if let Some(byte) = records.get_mut(at) {
                    *byte ^= 1 << (amount & 7);
                    is_changed = true;
                }
                send(test, peer, &records, amount);
            }
            3 => {
                let rest: Vec<u8> = data.by_ref().take(amount).collect();
                is_changed |= !rest.is_empty();
                peer.send(&rest);
            }
            // The server's output is lost in transit.
            4 if amount == 31 => is_changed |= !peer.take_received().is_empty(),
            // After its own end, rustls has a debug assertion that nothing is wrong.
            4 if has_closed && is_changed => {}
            4 => client.receive(&peer.take_received()),
            5 if !client.tls.is_handshaking() && mode & 4 == 0 => {
                // Too many key updates are a flood.
                keys += 1 + amount * 2;
                is_changed |= keys > KEYS_MAX;
                for _ in 0..=amount * 2 {
                    let _ = client.tls.refresh_traffic_keys();
                }
            }
            6 if amount == 31 => {
                client.tls.send_close_notify();
                has_closed = true;
            }
            6 => {
                peer.limit_room(amount * 10);
                test.settle();
                peer.make_room(usize::MAX);
            }
            _ => send(test, peer, &client.take_records(), amount),
        }
        test.settle();
        if client.failure.is_some() {
            break;
        }
    }
    if is_changed || has_closed {
        return;
    }
    client.talk(test, peer);
    assert_eq!(client.failure, None);
    assert!(client.plain == expected, "{} of {} bytes", client.plain.len(), expected.len());
}

fn send(test: &mut Test, peer: &Peer, records: &[u8], piece: usize) {
    for piece in records.chunks(if piece == 0 { usize::MAX } else { piece }) {
        peer.send(piece);
        test.settle();
    }
}
