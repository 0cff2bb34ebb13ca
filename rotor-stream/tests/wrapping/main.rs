//! Streams on a wrapping socket: handshake, records, key changes, closing; whole and byte by byte.

mod conversation;
mod full_duplex;
mod handshake;
mod negotiated_protocol;
#[path = "../record/mod.rs"]
mod record;
mod records;
