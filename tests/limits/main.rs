//! What happens when a resource runs out. The machines of the examples run in this process, on real
//! sockets.
//!
//! Each test drives its loop turn by turn, so it can count what the loop does, and never waits for
//! a timer.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "clients with plain sockets, outside of any loop")]

#[path = "../../examples/tcp_echo_server/machine.rs"]
mod echo;

mod datagrams;
mod driving;
mod fairness;
mod full_slab;
mod loop_group;
mod pools;
mod sockets;
mod stuck_loops;
#[path = "../../examples/udp_echo_server/machine.rs"]
mod udp_echo;
