//! The loop: how it is set up, what a turn does, and how it ends.
//!
//! ```text
//!   Loop::new ──▶ add machines (EarlyScope) ──▶ instantiate(context) ──▶ LoopInstance ──▶ run() ──▶ Exit
//! ```
//!
//! `set_up` is the first stage. `instance` is the second one, with `handing_over` and
//! `taking_over`.
//!
//! `core` is the value that a turn works on; `core/turn.rs` has the order of the steps. Its parts
//! are:
//!
//! * `slots`, where the machines live; `run_queue`, the work that is due; `scheduler`, both
//!   together;
//! * `dispatch`, which calls machines;
//! * `drain`, `room_search` (with `longest_idle`, the machines that it has found) and `closures`:
//!   the other steps of a turn.
//!
//! `machines`, `broadcast` (with `adding`) and `handle` are the ways to reach a loop from outside
//! its handlers. `invariants` is for tests.

mod adding;
mod broadcast;
mod closures;
mod core;
mod dispatch;
mod drain;
mod drop_on_drain;
mod handing_over;
mod handle;
mod instance;
mod invariants;
mod longest_idle;
mod machines;
mod relay;
mod room_search;
mod run_queue;
mod scheduler;
mod set_up;
mod slots;
mod taking_over;
#[cfg(rotor_handed)]
mod thread_rotation;

pub use adding::{AddError, PendingAdd};
pub use broadcast::{Broadcast, PostError};
pub use handle::{Exit, LoopHandle};
pub use instance::LoopInstance;
pub use machines::{Cursor, MachineView, Machines, Verdict};
pub use set_up::Loop;
