//! HTTP/1.1 server and client as machines on rotor.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod files;
pub mod h1;
pub mod server;
