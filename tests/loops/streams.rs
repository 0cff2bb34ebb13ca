//! The tests of streams and listeners on the loops other than mio.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

#[path = "../../rotor-stream/tests/real_sockets/every_loop.rs"]
mod every_loop;
#[path = "../../rotor-stream/tests/real_sockets/kernel.rs"]
mod kernel;
#[path = "on_the_others.rs"]
mod loops;
#[path = "../../rotor-stream/tests/probe/mod.rs"]
mod probe;
