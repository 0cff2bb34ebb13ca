//! Code that the example programs share: arguments, the exit code, the choice of a loop, the life
//! of a listener, URLs.
//!
//! A program of yours has its own command line and logger, and needs none of this. A program that
//! only serves HTTP uses `rotor::http::server::Serve`.
#![forbid(unsafe_code)]

pub mod chosen_loop;
pub mod identity;
pub mod program;
pub mod serve;
pub mod server;
pub mod url;
