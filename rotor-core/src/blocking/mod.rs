//! Work that blocks: who notices that a handler holds up its loop.
//!
//! ```text
//!   loop ──Pulse: a store or two an event, a wait──▶ Beat ◀──reads, each tick── watchdog
//!                                                                                 │ not changed?
//!                                                     /proc, thread_probe ◀───────┤
//!                                                                                 ▼
//!                                              patience: nothing / starved / stuck ──▶ log, hook
//! ```
//!
//! `patience` and `rhythm` decide and are pure: samples in, decisions out. `watchdog` is the thread
//! that feeds them.

mod alarm;
mod beat;
mod config;
mod patience;
mod rhythm;
mod stuck;
mod thread_probe;
mod watchdog;

pub(crate) use self::beat::Pulse;
pub use self::config::Blocking;
pub use self::stuck::{Stuck, StuckOutcome, ThreadState};
pub(crate) use self::watchdog::Watched;
