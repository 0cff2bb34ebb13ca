//! Work for other threads: a bounded pool that several loops share, and the jobs that machines give
//! to it.
//!
//! ```text
//!   scope.offload(f) ─▶ room? ──no──▶ OffloadFull(f)
//!                        │yes
//!                        ▼
//!                      queue ─▶ a thread runs f ─▶ Port::set ─▶ the machine's `wakeup`
//! ```
//!
//! Threads are started when jobs come, up to the pool's limit. They end when they have been idle
//! for long, or with the pool. A job is run at most once, and not at all if its future was dropped
//! or its machine ended before a thread took it.

mod batch;
pub(crate) mod in_flight;
pub(crate) mod job;
mod measured;
mod pool;
mod queue;
mod settings;
mod stats;
mod threads;
pub(crate) mod work;

pub use self::batch::Batch;
pub use self::job::Job;
pub use self::measured::Measured;
pub use self::pool::{OffloadFull, OffloadPool, PoolBuilder, PoolError};
pub use self::settings::{OnJobPanic, WhenFull};
pub use self::stats::PoolStats;

#[cfg(test)]
mod tests;
