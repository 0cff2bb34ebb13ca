//! Tests that need outside programs: third-party clients and servers, with the examples as a user
//! starts them.
//!
//! On a developer's machine a missing program is no failure: the test prints `skipped: no NAME`. If
//! a program is named in `ROTOR_OUTSIDE` (`ROTOR_OUTSIDE="curl wrk"`), the test fails instead.
//!
//! `cargo test --workspace` builds the examples first. `cargo test -p rotor-tests --test outside`
//! does not; it runs the examples of an earlier build.
#![forbid(unsafe_code)]

mod bodies;
#[path = "../certificates.rs"]
mod certificates;
mod clients;
mod daemon;
mod exchanges;
mod files;
mod hello;
mod hpack;
mod http2;
mod http2_clients;
mod http_echo;
mod https;
mod mqtt;
mod nginx;
mod proxied;
mod proxy;
mod redis;
mod resolve;
mod restarts;
mod support;
mod tunnels;
