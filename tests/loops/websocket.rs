//! The tests of WebSockets on the loops other than mio.
#![forbid(unsafe_code)]

#[path = "../../rotor-websocket/tests/connection/every_loop.rs"]
mod every_loop;
#[allow(dead_code, reason = "what stays in the suite on mio uses the rest")]
#[path = "../../rotor-websocket/tests/connection/kit.rs"]
mod kit;
#[path = "on_the_others.rs"]
mod loops;
