//! HTTP on a wrapping socket: what handlers learn about it, and what happens to requests when the
//! wrapper knows how the connection has ended.
#![forbid(unsafe_code)]

mod client;
#[path = "../../../rotor-stream/tests/record/mod.rs"]
mod record;
mod server;

use record::{Kind, encode};
use rotor_stream::testing::Peer;

/// The key with which payloads are encoded, unless a test changes it.
const KEY: u8 = 0x55;

/// Sends bytes in records.
fn send(peer: &Peer, bytes: &[u8]) {
    for piece in bytes.chunks(200) {
        peer.send(&encode(Kind::Data, piece, KEY));
    }
}

/// The decoded payload of the data records that have come.
fn receive(peer: &Peer) -> String {
    let mut encoded = &peer.take_received()[..];
    let mut text = String::new();
    while let [kind, len, rest @ ..] = encoded {
        let (payload, rest) = rest.split_at(usize::from(*len));
        if *kind == Kind::Data as u8 {
            text.extend(payload.iter().map(|byte| char::from(byte ^ KEY)));
        }
        encoded = rest;
    }
    text
}
