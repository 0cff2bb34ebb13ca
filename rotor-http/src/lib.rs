//! HTTP/1.1 server and client as machines on rotor.
#![forbid(unsafe_code)]

pub mod h1;
pub mod server;
