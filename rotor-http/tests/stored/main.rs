//! Bodies that are stored for their handlers, of servers and clients: on scripted sockets, with the
//! files of a real directory and a disk that is as slow as it is told to be.
#![forbid(unsafe_code)]

mod client;
mod fetch;
mod place;
mod server;
