//! A page that shows what rotor's loops do.
//!
//! **Nothing is instrumented: the machines of a loop are in one slab, by type, and are asked what
//! they are at when somebody looks.** While nobody does, it costs nothing.
//!
//! The page is served by a loop of its own on a thread of its own, so it is there when the others
//! are busy, and a loop that a handler holds up is shown as blocked. It has loops (how busy, how
//! long turns are, how late deadlines), machines by type and state, each of them by what it holds,
//! its age, its deadline or its messages, and the last failures. What it shows is below `/api` as
//! JSON.
//!
//! What machines say of themselves is [`Machine::describe`](rotor_core::Machine::describe); rotor's
//! own do.
//!
//! # A program
//!
//! ```no_run
//! # use rotor_core as rotor;
//! use rotor::{Config, Infallible, Loop, Machine};
//! use rotor_inspect::{Failures, Inspector};
//!
//! # struct App;
//! # impl Machine for App { type Context = (); type Seed = Infallible; }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let failures = Failures::new();
//! let config = Config::new().keep_ages(true).observer(failures.observer());
//! let mut instance = Loop::<App>::new(&config)?.instantiate(());
//! let _inspecting = Inspector::new()
//!     .watch("main", &instance)
//!     .failures(&failures)
//!     .start("127.0.0.1:3621".parse()?)?;
//! instance.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Inspector`] | what is looked at, and who may look |
//! | [`Inspecting`] | the inspector that runs |
//! | [`Failures`] | the last machines that ended badly |
//! | [`InspectError`] | why it was not started |
//!
//! # Who may look
//!
//! Whoever is on this machine and can connect to its loopback; on a [Unix
//! socket](Inspector::start_unix), this user. Elsewhere it needs a [token](Inspector::token). Pages
//! of strangers in a browser on this machine may not: the host must be the loopback by a literal
//! name, and what their browser says of where a request comes from is looked at. Changing anything
//! is [off](Inspector::allow_changes) unless it is wanted, and needs a field that no form can send.
//! Whoever may not is [counted](Inspecting::refused). What peers have sent is shown as text.
//!
//! # Limits
//!
//! 500 slots are looked at in a turn, or as many as half a millisecond is enough for, by one
//! visitor at a time, each of whom may see the first 10,000 machines of an order; 100 visitors; 100
//! failures of 1,000 octets each. A loop that has not answered after 1 s, or after 10 s while it
//! makes turns, is answered for (504) with what is known without asking; a turn counts as blocked
//! after 100 ms.
//!
//! # Versions and features
//!
//! It stands beside `rotor`, as which examples here know the core, streams and HTTP:
//!
//! ```toml
//! rotor-inspect = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later. There are no features to choose.
//!
//! # The book
//!
//! [Seeing what it does](https://github.com/rotor-rs/rotor/blob/main/doc/guide/observing.md).
#![forbid(unsafe_code)]

mod access;
mod api;
mod failures;
mod inspected;
mod inspector;
mod json;
mod page;
mod query;
mod socket_file;
mod walk;
mod watched;

pub use failures::Failures;
pub use inspector::{InspectError, Inspecting, Inspector};

/// The chapter of the book, whose programs are compiled here.
#[cfg(doctest)]
#[doc = include_str!("../../doc/guide/observing.md")]
mod guide {}
