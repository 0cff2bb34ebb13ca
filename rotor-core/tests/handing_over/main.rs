//! A loop that other threads continue while its handlers block. Everything is driven by events:
//! handlers wait for each other or for the test, never for time.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

mod bounds;
mod callers_thread;
mod during_sections;
mod ending;
mod overlap;
mod panics;
mod reports;
mod rig;
