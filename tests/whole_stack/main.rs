//! WebSockets on HTTP/2 streams over TLS behind a load balancer: one connection in memory, which
//! ends in each of its states; and many conversations between two hosts of a simulation. Requests
//! over HTTP/2 and TLS in tunnels through a proxy.
#![forbid(unsafe_code)]

mod connect;
mod conversations;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
mod requests;
mod rig;
mod stack;
mod stages;
mod talks;
