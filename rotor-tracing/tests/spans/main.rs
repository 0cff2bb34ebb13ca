//! Spans around requests and machines, as a subscriber sees them.
#![forbid(unsafe_code)]

mod forwarded;
mod machines;
mod notes;
mod requests;
