//! Streams on a wrapping socket: handshake, records, changes of key, closing; whole and byte by
//! byte.

mod chosen;
mod conversation;
mod handshake;
#[path = "../record/mod.rs"]
mod record;
mod records;
