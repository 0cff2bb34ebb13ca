//! What happens when something runs out: the machines of the examples, on real sockets, in this
//! process.
//!
//! A loop is driven turn by turn by the test itself, so what it does can be counted, and nothing
//! waits for time.
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
#[path = "../../examples/udp_echo_server/machine.rs"]
mod udp_echo;
