//! Helpers that the tests of several crates share. It has no dependencies, so any crate can use it
//! as a dev-dependency.
#![forbid(unsafe_code)]

mod corpus;
mod directory;
mod example;
mod process;
mod waiting;

pub use corpus::saved_inputs;
pub use directory::Directory;
pub use example::example;
pub use process::Process;
pub use waiting::{PATIENCE, again, until};
