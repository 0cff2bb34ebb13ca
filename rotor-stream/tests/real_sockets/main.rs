//! Streams and listeners on real sockets: on every loop, and features of kernel sockets.
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
#[path = "../probe/mod.rs"]
mod probe;

mod every_loop;
mod kernel;
