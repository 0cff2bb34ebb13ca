//! Handlers that block: how the watchdog notices that a handler holds up its loop, and what it does
//! about it.
//!
//! ```text
//!   loop ──HeartbeatWriter: a store an event, two a wait──▶ Heartbeat ◀──reads, each tick── watchdog
//!                                                                                 │ not changed?
//!                                                     /proc, thread_probe ◀───────┤
//!                                                                                 ▼
//!                                       stall_detector: nothing / starved / stuck ──▶ log, hook
//!                                       takeover_policy: is the loop to be taken? ──▶ another thread
//! ```
//!
//! `stall_detector`, `takeover_policy`, `rhythm`, `suspects` and `adaptive_spin` make decisions and
//! are pure: they get samples and return decisions. `watchdog` is the thread that feeds the first
//! three.

mod adaptive_spin;
mod alarm;
mod budget;
mod config;
mod counts;
mod current_sections;
mod heartbeat;
mod parker;
mod rhythm;
mod section_times;
mod shared_context;
mod short_token;
mod stall_detector;
mod stuck;
mod suspects;
mod takeover_policy;
mod thread_probe;
mod thread_queue;
mod timer_slack;
mod watchdog;

pub(crate) use self::budget::ThreadBudget;
pub use self::config::Blocking;
pub(crate) use self::counts::BlockCounts;
pub(crate) use self::current_sections::Sections;
pub(crate) use self::heartbeat::HeartbeatWriter;
pub(crate) use self::parker::Parker;
pub(crate) use self::section_times::SectionTimes;
pub use self::shared_context::SharedContext;
pub use self::stuck::{StuckOutcome, StuckReport, ThreadState, UnstuckReport};
pub(crate) use self::suspects::Suspects;
pub(crate) use self::takeover_policy::TakeoverResult;
pub(crate) use self::thread_probe::ThreadProbe;
pub(crate) use self::thread_queue::ThreadQueue;
pub(crate) use self::watchdog::{RunnerHandle, WatchGuard};
