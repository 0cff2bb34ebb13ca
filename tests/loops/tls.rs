//! TLS on the other loops.
#![forbid(unsafe_code)]

#[path = "../../rotor-tls/tests/sockets/every_loop.rs"]
mod every_loop;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
#[path = "on_the_others.rs"]
mod loops;
