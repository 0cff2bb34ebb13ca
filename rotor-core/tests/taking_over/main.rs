//! A loop that is taken from handlers that are stuck and have not said so. All by events: a handler
//! is stuck until another one, which runs only if the loop was taken, lets it go.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

mod declared;
mod detached;
mod ending;
mod refused;
mod rig;
mod stuck;
mod while_stuck;
