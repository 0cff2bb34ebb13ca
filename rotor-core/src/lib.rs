//! Placeholder.
#![forbid(unsafe_code)]

mod time;

pub use time::Time;
