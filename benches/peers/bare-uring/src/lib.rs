//! The bare loop on io_uring: the operations that `rotor-uring` uses, and so the yardstick for what
//! that and the rest of rotor add to them.
//!
//! The ring is rotor-uring's own module `ring`, taken in by path with the little that it needs, as all
//! unsafe code is there.
#![allow(dead_code, reason = "rotor-uring uses more of its ring")]

pub mod brigade;
pub mod server;

#[path = "../../bare-loop/src/answer.rs"]
mod answer;
#[path = "../../bare-loop/src/requests.rs"]
mod requests;

#[path = "../../../../rotor-uring/src/books.rs"]
mod books;
#[path = "../../../../rotor-uring/src/config.rs"]
mod config;
#[path = "../../../../rotor-uring/src/inbox.rs"]
mod inbox;
#[path = "../../../../rotor-uring/src/key.rs"]
mod key;
#[path = "../../../../rotor-uring/src/refused.rs"]
mod refused;
#[path = "../../../../rotor-uring/src/ring/mod.rs"]
mod ring;
#[path = "../../../../rotor-uring/src/slots.rs"]
mod slots;
#[path = "../../../../rotor-uring/src/stats.rs"]
mod stats;
