//! Connections that speak HTTP/2.

pub(crate) mod client;
mod ends;
mod exchanges;
mod extremes;
mod floods;
mod late_tunnels;
mod limits;
mod lingering;
mod same;
mod slow_peers;
mod tunnels;
mod windows;
