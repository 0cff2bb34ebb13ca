//! Listeners that pass from one process to the next. Most tests use one process, whose loop groups
//! stand for two. Tests that need another user, or that use up all descriptors, start a second
//! process.
#![cfg(any(target_os = "linux", target_os = "android"))]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "clients and processes outside of any loop")]

mod descriptors;
mod path;
mod rig;
mod stuck;
mod succession;
mod untrusted_peers;
