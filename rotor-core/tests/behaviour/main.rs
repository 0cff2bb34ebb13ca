//! The core's guarantees, tested through its public interface: one module per topic.
//!
//! Nearly all tests use the machine in `actor`, whose handlers are a closure. `manual` is a second
//! backend, whose clock and readiness the test controls, so most tests run in no time and in a
//! deterministic order.
#![expect(
    clippy::disallowed_methods,
    reason = "tests play the outside world: its threads and its sockets"
)]

mod actor;
#[path = "../../../tests/loops/on_mio.rs"]
mod loops;
mod manual;

mod adding;
mod backends;
mod between_handlers;
mod channels;
#[cfg(not(rotor_handed))] // some of their machines stay on their thread
mod composing;
mod coordination;
mod deadlines;
mod drain_last;
mod ending;
mod every_loop;
mod fairness;
#[cfg(not(rotor_handed))]
mod generic_parts;
mod panics;
mod phases;
mod pulses;
mod randomness;
mod room;
mod services;
mod shape;
mod slots;
mod sockets;
mod spawning;
mod stats;
#[cfg(not(rotor_handed))]
mod thread_bound;
mod threads;
mod times;
mod tokens;
mod wakers;
mod wakeups;
mod wrong_parts;
