//! Connections of the client that speak HTTP/2.

mod ends;
mod exchanges;
mod extremes;
mod floods;
mod misbehaving;
mod resets;
mod same;
pub(crate) mod server;
mod tunnels;
mod windows;
