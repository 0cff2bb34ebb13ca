//! Futures in rotor's machines: async libraries called from a loop, and HTTP handlers that are
//! async functions.
//!
//! **A machine polls its future when it is woken, and whatever the future awaits wakes the
//! machine.** There is no other executor than the loop. A future that sleeps by the loop's time and
//! waits for other machines runs unchanged in a simulation; one that needs tokio's timers and
//! sockets uses a tokio runtime on a thread beside the loop.
//!
//! # A program
//!
//! Two lines, one a tenth of a second after the other:
//!
//! ```
//! # use rotor_core as rotor;
//! use std::time::Duration;
//!
//! use rotor_async::Task;
//! use rotor::{Config, Loop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<Task<()>>::new(&Config::new())?;
//! creator.add_machine_with(|scope| {
//!     let future = async {
//!         println!("ready");
//!         rotor_async::sleep(Duration::from_millis(100)).await;
//!         println!("go");
//!     };
//!     Task::start(future, scope)
//! })?;
//! creator.instantiate(()).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Driven`], [`Poller`] | a future inside a machine; polling other things there |
//! | [`Task`], [`TaskSeed`] | a machine that drives one future |
//! | [`sleep`], [`sleep_until`], [`wait`] | awaiting the loop's time, and values that are sent to the machine |
//! | [`offload`], [`Offload`], [`OffloadError`] | awaiting work of another thread |
//! | `http` | async handlers for rotor-http |
//! | `Tokio`, `Compat` | a tokio runtime beside the loops, for futures that are polled on them |
//! | `SpawnOn` | work for a tokio runtime, which returns its result |
//!
//! # Limits
//!
//! A future is polled on the loop. As with any handler, nothing limits how long a poll takes, how
//! much it allocates and how many sleeps it has. A long poll holds up the loop;
//! [`rotor_core::Blocking`] reports it. A driven future is not `Send`, so its machine stays with
//! its loop. A future cannot read or write rotor's sockets: use a machine for that.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
//!
//! ```toml
//! rotor-async = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//!
//! * `http`: async functions as handlers for rotor-http.
//! * `tokio`: `Tokio` and `SpawnOn`. It depends on tokio. Use it if your futures await anything of
//!   tokio's, even only a channel, and the loop runs in `#[tokio::main]`: without it they stop for
//!   ever when tokio's cooperative budget is used up, after 128 steps.
//!
//! # The book
//!
//! * [Async libraries, and axum](https://github.com/rotor-rs/rotor/blob/main/doc/guide/async.md)
//! * [Coming from async Rust](https://github.com/rotor-rs/rotor/blob/main/doc/guide/from-async.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod deferred_start;
mod driven;
#[cfg(feature = "http")]
pub mod http;
mod offload;
mod poller;
mod sleep;
#[cfg(feature = "tokio")]
mod spawn_on;
mod task;
#[cfg(feature = "tokio")]
mod tokio_runtime;
mod wait;

pub use self::driven::Driven;
pub use self::offload::{Offload, OffloadError, offload};
pub use self::poller::Poller;
pub use self::sleep::{Sleep, sleep, sleep_until};
#[cfg(feature = "tokio")]
pub use self::spawn_on::SpawnOn;
pub use self::task::{Task, TaskSeed};
#[cfg(feature = "tokio")]
pub use self::tokio_runtime::{Compat, Tokio};
pub use self::wait::{Wait, wait};
