//! What the core's suite shows of its sockets, on io_uring.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the suite of the core uses all of what it shares")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests play the outside world: its threads and its sockets"
)]

#[path = "../../rotor-core/tests/behaviour/actor.rs"]
mod actor;
#[path = "../../rotor-core/tests/behaviour/sockets/mod.rs"]
mod sockets;
