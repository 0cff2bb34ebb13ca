//! Message bodies of any size as one value: in memory as they came, or in a file.
//!
//! **A body is a value. It may be cloned, cut, sent to other threads and read by several at a time,
//! and whether it is in memory or in a file is seen by those only who ask. Collecting one never
//! blocks a loop, has limits for all bodies together, and leaves nothing behind.**
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
//! Made of what a peer sends, it comes from a [`Collector`].
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Body`], [`Blocks`], [`BodyFile`] | a body, and where it may be |
//! | [`BodyReader`] | reading it as std does |
//! | [`Spool`], [`SpoolConfig`] | where the files are, and how much all of them may hold |
//! | [`Collector`], [`Progress`] | making one of what comes |
//! | [`Dir`], [`StoreJob`] | keeping one under a name |
//! | [`Faults`] | full and failing disks, for tests |
//!
//! # Limits
//!
//! Every limit is a setting of [`SpoolConfig`], with unit, default and reason. A spool needs a file
//! system that can be written at a place (`pwritev`); where it knows `O_TMPFILE` (Linux: ext4, xfs,
//! btrfs, tmpfs), a file can be kept under a name without being copied.
//!
//! # Versions and features
//!
//! With the feature `body` of `rotor` it is `rotor::body`, and examples here call it so. Who
//! depends on this crate alone writes `rotor_body` instead:
//!
//! ```toml
//! rotor-body = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (Linux is what the tests run on). There are no
//! features to choose.
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
pub use store::{Dir, How, StoreJob};
