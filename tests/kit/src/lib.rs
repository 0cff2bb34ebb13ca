//! Helpers that the tests of several crates share. It has no dependencies, so any crate can use it
//! as a dev-dependency.
#![forbid(unsafe_code)]

mod corpus;
mod directory;

pub use corpus::saved_inputs;
pub use directory::Directory;
