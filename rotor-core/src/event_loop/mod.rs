//! The loop: two stages of making it, one turn after another, and the end.
//!
//! ```text
//!   Loop::new ──▶ add machines (EarlyScope) ──▶ instantiate(context) ──▶ LoopInstance ──▶ run() ──▶ Exit
//! ```
//!
//! `set_up` is the first stage and `instance` the second, with `handing_over` and `taking_over`.
//!
//! `core` is the value that a turn works on, and `core/turn.rs` the order of the steps. Its parts:
//! `slots`, where machines live; `run_queue`, what waits to be done with them; `scheduler`, both
//! together; `dispatch`, which calls machines; `drain`, `room_search` (with `longest_idle`, what
//! that has found) and `closures`, what else a turn does. `machines`, `broadcast` (with `adding`)
//! and `handle` are the ways to reach a loop from outside its handlers; `invariants` is for tests.

mod adding;
mod broadcast;
mod closures;
mod core;
mod dispatch;
mod drain;
#[cfg(rotor_handed)]
mod going_round;
mod handing;
mod handing_over;
mod handle;
mod instance;
mod invariants;
mod kept;
mod longest_idle;
mod machines;
mod room_search;
mod run_queue;
mod scheduler;
mod set_up;
mod slots;
mod taking_over;

pub use adding::{AddError, Adding};
pub use broadcast::{Broadcast, PostError};
pub use handle::{Exit, LoopHandle};
pub use instance::LoopInstance;
pub use machines::{Cursor, Machines, Seen, Verdict};
pub use set_up::Loop;
