//! The bare loop on io_uring. It uses the same operations as `rotor-uring`, and is therefore the
//! yardstick for what that crate and the rest of rotor add to them.
//!
//! The ring is the module `ring` of rotor-uring, included by path together with the little that it
//! needs, because all unsafe code is there.
#![allow(dead_code, reason = "rotor-uring uses more of its ring")]

pub mod brigade;
pub mod server;

#[path = "../../bare-loop/src/answer.rs"]
mod answer;
#[path = "../../bare-loop/src/requests.rs"]
mod requests;

#[path = "../../../../rotor-uring/src/buffer_table.rs"]
mod buffer_table;
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
