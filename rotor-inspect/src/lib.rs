//! A web page that shows what rotor's loops do.
//!
//! **No code is instrumented: the loop knows the types of its machines, and asks them for their
//! state when somebody looks at the page.** While nobody looks, it costs nothing.
//!
//! The page is served by a loop of its own on a thread of its own, so it works while the other
//! loops are busy, and shows a loop as blocked if a handler holds it up. It shows loops (how busy
//! they are, how long their turns take, how late their deadlines fire), machines by type and state,
//! single machines sorted by the memory that they hold, by age, deadline or messages, and the last
//! failures. The same data is available as JSON below `/api`.
//!
//! Machines describe themselves in [`Machine::describe`](rotor_core::Machine::describe); rotor's
//! own machines implement it.
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
//! | [`Inspector`] | the loops to show, and who may look |
//! | [`Inspecting`] | the running inspector |
//! | [`Failures`] | the last machines that failed |
//! | [`InspectError`] | why it was not started |
//!
//! # Who may look
//!
//! By default, everybody on this host who can connect to its loopback interface; on a [Unix
//! socket](Inspector::start_unix), this user. Any other address needs a [token](Inspector::token).
//! Pages of other sites in a browser on this host have no access: the host in the request must be
//! `localhost` or a loopback address, and the origin that the browser sends is checked. Changes are
//! [off](Inspector::allow_changes) by default, and need a header field that no form can send.
//! Refused requests are [counted](Inspecting::refused). What peers have sent is shown as text.
//!
//! # Limits
//!
//! A walk over the machines serves one visitor at a time. It looks at 100 slots in a turn, or as
//! many as fit into half a millisecond, and shows the first 10,000 machines of a sort order. There
//! may be 100 visitors; 100 failures of 1,000 bytes each are kept. If a loop has not answered
//! after 1 s, or after 10 s while it makes turns, the page answers 504 with what is known without
//! asking, and a requested change of a machine is not made later. A turn counts as blocked after
//! 100 ms.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
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
