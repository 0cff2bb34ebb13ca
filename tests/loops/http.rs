//! The tests of HTTP servers and clients on the loops other than mio.
#![forbid(unsafe_code)]

#[path = "../../rotor-http/tests/client/every_loop.rs"]
mod client;
#[path = "on_the_others.rs"]
mod loops;
#[path = "../../rotor-http/tests/client/mirror.rs"]
mod mirror;
#[allow(dead_code, reason = "what stays in the suite on mio uses the rest")]
#[path = "../../rotor-http/tests/server/probe.rs"]
mod probe;
#[path = "../../rotor-http/tests/server/relay.rs"]
mod relay;
#[allow(dead_code, reason = "the parser alone is not asked again")]
#[path = "../../rotor-http/tests/server/rules/mod.rs"]
mod rules;
#[path = "../../rotor-http/tests/server/sockets/mod.rs"]
mod sockets;
#[path = "../../rotor-http/tests/server/wire.rs"]
mod wire;
