//! Things for which machines of any loop wait in a fair queue: permits, a value that one machine
//! holds at a time, a barrier, a bell.
//!
//! ```text
//!   ask(&scope) ─▶ in line ─ first ─▶ Future: woken, and has it ─ dropped ─▶ the next one's
//!                    │
//!                    └─ its future dropped: out of the line
//! ```

mod barrier;
mod bell;
mod lock;
mod permits;
pub(crate) mod wait_queue;

pub use self::barrier::{Barrier, BarrierReached};
pub use self::bell::Bell;
pub use self::lock::{Lock, LockGuard};
pub(crate) use self::permits::JobWaiter;
pub use self::permits::{Permit, PermitStats, Permits};
