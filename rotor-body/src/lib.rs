//! Message bodies of any size as one value: in memory, as they arrived, or in a file.
//!
//! **A body is a value. You can clone it, slice it, send it to other threads and read it in several
//! places at a time, whether it is in memory or in a file. Collecting a body never blocks a loop,
//! has limits for all bodies together, and leaves nothing behind.**
//!
//! # A program
//!
//! ```
//! # mod rotor { pub use rotor_body as body; }
//! use rotor::body::Body;
//! use std::io::Read;
//!
//! let body = Body::from("Hello, World!");
//! let mut text = String::new();
//! body.slice(..5).reader().read_to_string(&mut text).unwrap();
//! assert_eq!(text, "Hello");
//! ```
//!
//! A [`Collector`] makes a body from what a peer sends.
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Body`], [`Blocks`], [`BodyFile`] | a body, and its two forms: blocks or a file |
//! | [`BodyReader`] | reading it through std's traits |
//! | [`Spool`], [`SpoolConfig`] | the directory of the files, and their total limit |
//! | [`Collector`], [`Progress`] | collecting a body as it arrives |
//! | [`Dir`], [`StoreJob`] | storing a body under a name |
//! | [`Faults`] | full and failing disks, for tests |
//!
//! # Limits
//!
//! Every limit is a setting of [`SpoolConfig`], with unit, default and reason. A spool needs a
//! file system that supports `pwritev`; if it supports `O_TMPFILE` (Linux: ext4, xfs, btrfs,
//! tmpfs), a file can be kept under a name without being copied.
//!
//! # Versions and features
//!
//! With its feature `body`, the crate `rotor` re-exports this crate as `rotor::body`, and the
//! examples here use that name. If you depend on this crate alone, write `rotor_body` instead:
//!
//! ```toml
//! rotor-body = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
//!
//! # The book
//!
//! * [Large bodies, files and
//!   upgrades](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-bodies.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod blocks;
mod body;
mod body_file;
mod collector;
mod config;
mod content;
mod disk;
mod error;
mod memory_file;
mod reader;
mod spool;
mod spooling;
mod store;
mod stored;

pub use blocks::Blocks;
pub use body::Body;
pub use body_file::BodyFile;
pub use collector::{Collector, Expected, Progress};
pub use config::{SpoolConfig, SyncData};
pub use error::SpoolError;
pub use memory_file::Faults;
pub use reader::BodyReader;
pub use spool::Spool;
pub use store::{Dir, IfExists, StoreJob};
