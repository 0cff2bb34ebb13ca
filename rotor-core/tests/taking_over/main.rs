//! A loop that is taken from stuck handlers that have declared nothing. Everything is driven by
//! events: a handler is stuck until another one, which runs only if the loop was taken over,
//! releases it.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

mod declared;
mod detached;
mod ending;
mod refused;
mod rig;
mod stuck;
mod while_stuck;
