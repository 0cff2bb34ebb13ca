//! Handlers that block: how the watchdog notices that a handler holds up its loop, and what it does
//! about it.
//!
//! ```text
//!   loop ──Pulse: a store an event, two a wait────▶ Beat ◀──reads, each tick── watchdog
//!                                                                                 │ not changed?
//!                                                     /proc, thread_probe ◀───────┤
//!                                                                                 ▼
//!                                              patience: nothing / starved / stuck ──▶ log, hook
//!                                              haste: is the loop to be taken? ──▶ another thread
//! ```
//!
//! `patience`, `haste`, `rhythm`, `suspects` and `spinning` make decisions and are pure: they get
//! samples and return decisions. `watchdog` is the thread that feeds the first three.

mod alarm;
mod away;
mod beat;
mod budget;
mod config;
mod counts;
mod haste;
mod line;
mod patience;
mod rhythm;
mod seat;
mod sections;
mod shared_context;
mod short_token;
mod spinning;
mod stuck;
mod suspects;
mod thread_probe;
mod timer_slack;
mod watchdog;

pub(crate) use self::away::Sections;
pub(crate) use self::beat::Pulse;
pub(crate) use self::budget::ThreadBudget;
pub use self::config::Blocking;
pub(crate) use self::counts::BlockCounts;
pub(crate) use self::haste::Taking;
pub(crate) use self::line::{Back, Line};
pub(crate) use self::seat::Seat;
pub(crate) use self::sections::SectionTimes;
pub use self::shared_context::SharedContext;
pub use self::stuck::{Stuck, StuckOutcome, ThreadState, Unstuck};
pub(crate) use self::suspects::Suspects;
pub(crate) use self::thread_probe::ThreadProbe;
pub(crate) use self::watchdog::{Runner, Watched};
