//! What the example programs share: arguments, an end with an exit code, which loop they run on, a
//! listener's life, URLs.
//!
//! A program of yours has a command line and a logger of its own, and takes none of this; what
//! serves HTTP alone takes `rotor::http::server::Serve`.
#![forbid(unsafe_code)]

pub mod chosen_loop;
pub mod identity;
pub mod program;
pub mod serve;
pub mod server;
pub mod url;
