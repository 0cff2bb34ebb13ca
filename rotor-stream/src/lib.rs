//! Byte-stream protocols as machines: buffers, expectations, listeners.
#![forbid(unsafe_code)]

pub mod accept;
pub mod buf;
mod error;
mod intent;
mod limits;
mod matched;
mod output;
mod protocol;
mod stream;
pub mod testing;
mod transport;

pub use accept::{Accept, AcceptConfig, AcceptSeed, Accepted};
pub use buf::Buf;
pub use error::{Exception, Fatal, StreamError};
pub use intent::{Expectation, Intent, Undecided, Waiting};
pub use limits::StreamConfig;
pub use matched::Matched;
pub use output::{Block, Output};
pub use protocol::Protocol;
pub use stream::{Stream, StreamSeed};
pub use transport::Transport;
