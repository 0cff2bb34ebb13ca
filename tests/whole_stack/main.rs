//! WebSockets on HTTP/2 streams over TLS behind a load balancer: one connection, in memory and over
//! loopback on mio and io_uring, which ends in each of its states; and many conversations between
//! two hosts of a simulation. Requests over HTTP/2 and TLS in tunnels through a proxy.
//! And handlers that block, in a loop that other threads go on with.
#![forbid(unsafe_code)]

mod away;
mod connect;
mod conversations;
mod kernel;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
mod requests;
mod rig;
mod stack;
mod stages;
mod talks;
mod wire;
