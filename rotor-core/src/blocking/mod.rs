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
mod away;
mod beat;
mod budget;
mod config;
mod counts;
mod line;
mod patience;
mod rhythm;
mod sections;
mod stuck;
mod thread_probe;
mod watchdog;

pub(crate) use self::away::Sections;
pub(crate) use self::beat::Pulse;
pub(crate) use self::budget::ThreadBudget;
pub use self::config::Blocking;
pub(crate) use self::counts::BlockCounts;
pub(crate) use self::line::{Back, Line, Seat};
pub(crate) use self::sections::SectionTimes;
pub use self::stuck::{Stuck, StuckOutcome, ThreadState};
pub(crate) use self::thread_probe::ThreadProbe;
pub(crate) use self::watchdog::{Runner, Watched};
