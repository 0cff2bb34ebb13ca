//! The tests of the core's sockets on the loops other than mio.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "it is asked whether the system has IPv6")]

#[allow(dead_code, reason = "the suite of the core uses all of it")]
#[path = "../../rotor-core/tests/behaviour/actor.rs"]
mod actor;
#[path = "../../rotor-sim/tests/machines/echo.rs"]
mod echo;
#[path = "../../rotor-core/tests/behaviour/every_loop/mod.rs"]
mod every_loop;
mod histories;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
#[path = "on_the_others.rs"]
mod loops;
#[path = "../../rotor-core/tests/behaviour/sockets/mod.rs"]
mod sockets;
mod transcripts;
