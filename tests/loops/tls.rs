//! The tests of TLS on the loops other than mio.
#![forbid(unsafe_code)]

#[path = "../../rotor-tls/tests/sockets/every_loop.rs"]
mod every_loop;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
#[path = "on_the_others.rs"]
mod loops;
