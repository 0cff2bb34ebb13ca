//! Placeholder.
#![forbid(unsafe_code)]

mod time;
#[cfg_attr(not(test), expect(dead_code, reason = "the loop is its user, and comes next"))]
mod timers;

pub use time::Time;
