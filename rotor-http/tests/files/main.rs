//! Static files, requested over real sockets.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the client is no machine, and the loop has a thread of its own"
)]

mod answers;
mod changes;
mod clock;
mod missing;
mod paths;
mod precompressed;
mod site;
