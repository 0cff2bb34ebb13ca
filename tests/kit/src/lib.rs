//! What the tests of several crates share. It depends on nothing, so that every crate may have it
//! for its tests.
#![forbid(unsafe_code)]

mod corpus;
mod directory;

pub use corpus::saved_inputs;
pub use directory::Directory;
