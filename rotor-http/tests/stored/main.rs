//! Stored bodies, on servers and clients: on scripted sockets, with files in a real directory and a
//! disk whose speed the test controls.
#![forbid(unsafe_code)]

mod client;
mod fetch;
mod place;
mod server;
