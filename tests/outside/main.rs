//! Tests that need outside programs: clients that others wrote, against the examples as a user
//! starts them.
//!
//! A missing program is no failure where people work: the test prints `skipped: no NAME`. Where it
//! must be there, name it in `ROTOR_OUTSIDE` (`ROTOR_OUTSIDE="curl wrk"`), and the test fails
//! instead.
//!
//! `cargo test --workspace` builds the examples first; `cargo test -p rotor-tests --test outside`
//! does not, and then runs those of an earlier build.
#![forbid(unsafe_code)]

mod bodies;
#[path = "../certificates.rs"]
mod certificates;
mod clients;
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
