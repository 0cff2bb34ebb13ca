//! Listeners that go from one process to the next. Most of it in one process, whose loops stand for
//! two; what needs another user, or has all descriptors taken, with a second one.
#![cfg(any(target_os = "linux", target_os = "android"))]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "clients and processes outside of any loop")]

mod descriptors;
mod path;
mod rig;
mod succession;
mod untrusted_peers;
