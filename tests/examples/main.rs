//! Every program in `examples/`, started as a user starts it. Most HTTP servers are tested by the
//! clients in `tests/outside`.
//!
//! `cargo test --workspace` builds the examples first. `cargo test -p rotor-tests --test examples`
//! does not; it runs the examples of an earlier build.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "clients with plain blocking sockets, outside of any loop"
)]

mod arguments;
mod backend_pool;
#[path = "../certificates.rs"]
mod certificates;
mod descriptors;
mod key_value;
mod line_chat;
mod line_echo;
mod mqtt_broker;
mod redis_client;
mod support;
mod tcp_echo_server;
mod tcp_proxy;
mod telnet;
mod two_protocols;
mod udp_echo_server;
mod udp_sessions;
mod without_sockets;
