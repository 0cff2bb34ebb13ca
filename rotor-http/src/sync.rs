//! What threads share, by other names than the standard library's: the models in `loom/` put loom's
//! in their place, as in rotor-core's `sync.rs`.

pub(crate) use std::sync::{Mutex, atomic};
