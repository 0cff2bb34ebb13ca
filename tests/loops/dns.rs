//! The resolver's tests on the loops other than mio.
#![forbid(unsafe_code)]

#[path = "../../rotor-dns/tests/hostile/every_loop.rs"]
mod every_loop;
#[path = "on_the_others.rs"]
mod loops;
#[path = "../../rotor-dns/tests/servers/machine.rs"]
mod machine;
#[allow(dead_code, reason = "what stays in the suite on mio uses the rest")]
#[path = "../../rotor-dns/tests/servers/wire.rs"]
mod wire;
