//! HTTP/1.1 server and client as machines on rotor.
#![forbid(unsafe_code)]

pub mod client;
mod counters;
#[cfg(unix)]
pub mod files;
pub mod h1;
mod no_upgrade;
mod recv_mode;
pub mod server;
mod wait;
mod writer;
