//! WebSockets on HTTP/2 streams over TLS behind a load balancer: one connection in memory, which
//! ends in each of its states; and many conversations between two hosts of a simulation.
#![forbid(unsafe_code)]

mod conversations;
#[path = "../../rotor-tls/tests/kit/mod.rs"]
mod kit;
mod rig;
mod stack;
mod stages;
mod talks;
