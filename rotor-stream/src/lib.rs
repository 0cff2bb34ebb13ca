//! Byte-stream protocols as machines: buffers, expectations, listeners.
#![forbid(unsafe_code)]

mod accept;
pub mod buf;
mod error;
mod intent;
mod limits;
mod matched;
mod output;
mod persistent;
mod protocol;
mod stream;
pub mod testing;
mod transport;

pub use accept::{Accept, AcceptConfig, AcceptSeed, Accepted, HandedOver};
pub use buf::Buf;
pub use error::{Exception, Fatal, StreamError};
pub use intent::{Expectation, Intent, Undecided, Waiting};
pub use limits::StreamConfig;
pub use matched::Matched;
pub use output::{Block, Output};
pub use persistent::{Link, Persistent, PersistentConfig, PersistentSeed};
pub use protocol::Protocol;
pub use stream::{Stream, StreamSeed};
pub use transport::{Addresses, Transport};
