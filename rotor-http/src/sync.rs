//! The types that threads share, under this module's names: the models in `loom/` replace them with
//! those of loom, as in rotor-core's `sync.rs`.

pub(crate) use std::sync::{Mutex, atomic};
