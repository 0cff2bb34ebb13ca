//! WebSockets on HTTP connections, run by a real loop on scripted sockets with a manual clock.
#![forbid(unsafe_code)]

mod client;
mod closing;
mod deflate;
mod describing;
mod every_loop;
mod extremes;
mod faults;
mod handshake;
mod http2;
mod kit;
mod limits;
#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
mod lost;
mod lost_streams;
mod messages;
mod pieces;
mod rooms;
mod sending;
mod watching;
