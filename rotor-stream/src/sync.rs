//! What threads share, under a name of its own, so that the models in `loom/` can replace it by
//! loom's types, as in rotor-core's `sync.rs`.

pub(crate) use std::sync::{Mutex, MutexGuard, atomic};
