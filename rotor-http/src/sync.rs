//! What threads share, under names of its own: the models in `loom/` replace these with loom's, as
//! in rotor-core's `sync.rs`.

pub(crate) use std::sync::{Mutex, atomic};
