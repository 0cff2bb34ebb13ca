//! The HTTP examples, started as a user starts them, with clients that send raw bytes.
//!
//! `cargo test --workspace` builds the examples first. `cargo test -p rotor-tests --test
//! http_examples` does not; it runs the examples of an earlier build.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "clients with plain blocking sockets, outside of any loop"
)]

mod axum_on_rotor;
mod blocking_route;
#[path = "../certificates.rs"]
mod certificates;
mod client;
mod everything;
mod grpc_greeter;
mod http_echo;
mod http_get;
mod https_server;
mod inspected;
mod json_service;
mod metrics;
mod notes;
mod proxies;
mod rest_service;
mod reverse_proxy;
mod streaming;
mod tls;
mod todo_backend;
mod tunnel_client;
mod tunnels;
mod upgrade_echo;
mod upload;
mod upload_to_disk;
mod upstream;
mod user_space_tcp;
mod websockets;
mod which_loop;
