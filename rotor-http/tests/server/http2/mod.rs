//! Connections that speak HTTP/2.

mod client;
mod ends;
mod exchanges;
mod floods;
mod same;
mod tunnels;
mod windows;
