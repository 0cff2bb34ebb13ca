//! Byte-stream protocols as machines: your protocol says what the bytes mean, and the stream reads,
//! writes, waits and closes.
//!
//! **A protocol is a value. Each of its methods gets it together with its input and output, and
//! returns its next state, what to wait for, and until when. The stream handles the socket: it
//! passes on all input before it reports the end of the stream, it flushes output before it closes
//! the connection, and whatever the peer does ends at most its own connection.**
//!
//! # A program
//!
//! A server that sends each line back, and gives its peers a minute for each:
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
//! use rotor::net::{ListenOptions, TcpListener, TcpStream};
//! use rotor::{Config, Loop, Scope};
//! use rotor::stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
//! use std::io::Write;
//! use std::time::Duration;
//!
//! struct Echo;
//!
//! impl Protocol for Echo {
//!     type Context = ();
//!     type Seed = ();
//!
//!     fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::of(Echo).delimiter(b"\n", 1024).deadline(scope.now() + Duration::from_secs(60))
//!     }
//!
//!     fn bytes_read(
//!         self,
//!         line: Matched,
//!         transport: &mut Transport<'_>,
//!         scope: &mut Scope<'_, ()>,
//!     ) -> Intent<Self> {
//!         if let Err(error) = transport.output.write_all(&transport.input[..line.len()]) {
//!             return Intent::error(error);
//!         }
//!         line.consume(transport.input);
//!         Intent::of(self).keep().deadline(scope.now() + Duration::from_secs(60))
//!     }
//!
//!     fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::done()
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let address = "127.0.0.1:7007".parse()?;
//!     let mut creator = Loop::<Accept<Stream<Echo, TcpStream>, TcpListener>>::new(&Config::new())?;
//!     creator.add_machine_with(|scope| {
//!         Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
//!     })?;
//!     creator.instantiate(()).run()?;
//!     Ok(())
//! }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Protocol`], [`Intent`], [`Expectation`], [`FrameLength`], [`Matched`] | a protocol, its answers, and what it can wait for |
//! | [`Transport`], [`Buf`], [`Output`], [`Block`] | its input and output |
//! | [`Outbox`], [`WithOutbox`], [`OutboxConfig`] | messages from other machines to its peer |
//! | [`Stream`], [`StreamConfig`] | the machine that runs it; its limits |
//! | [`Accept`], [`Accepted`], [`AcceptConfig`], [`InheritedListeners`] | listeners |
//! | [`Connect`], [`Destination`], [`Host`], [`HasResolver`] | clients that connect by address or by name |
//! | [`Persistent`], [`Link`], [`PersistentConfig`] | clients that stay connected |
//! | [`LeastRate`], [`RateWatch`] | the lowest rate at which bytes may pass |
//! | [`PeerConnections`], [`BytesHeld`], [`ByteCounts`] | what connections may have and hold together, and what they have read and written |
//! | [`Layered`] | protocols inside others: streams of a multiplexed connection, tunnels |
//! | [`Exception`], [`Fatal`], [`StreamError`] | what can go wrong, and whose fault it is |
//! | [`testing`] | scripted sockets, a manual clock, a driver for one protocol |
//!
//! # The rules that a stream keeps
//!
//! * It registers its socket once, edge-triggered. A request costs one read and one write, and no
//!   other system call.
//! * The stream passes all available input to the protocol before it writes the output, in one
//!   write, unless the output passes its high-water mark or the event's budget is used up. The rest
//!   follows in the next turn, after the other machines.
//! * When the output is above its high-water mark, nothing is read until half of it is written.
//!   Bytes, shared blocks and file ranges count alike.
//! * An idle connection holds no buffer; one that waits for the rest of a line holds about as much
//!   as has arrived.
//! * Input that arrived before the end of the stream, before a reset or before a failed write is
//!   passed on first.
//! * After [`Intent::done`] the output is flushed, our side is shut down, and the peer has a
//!   little time to close its own.
//! * A connection that is dropped while output waits is reset, as is one after [`Intent::reset`],
//!   so that no peer takes a part of what was written for all of it. Only if the loop drops the
//!   machine, after a panic or at the deadline of a drain, does the peer see an ordinary end.
//! * The socket may be a wrapping one, which buffers input and output, needs to write in order to
//!   read and vice versa, or chooses the protocol in its handshake.
//!
//! # Limits
//!
//! Every limit is a setting of [`StreamConfig`], [`AcceptConfig`] or [`PersistentConfig`], with
//! unit, default and reason. A peer that sends slowly is limited by the protocol's own deadline,
//! which [`keep_deadline`](NeedsDeadline::keep_deadline) does not extend; one that reads slowly is
//! limited by [`flush_timeout`](StreamConfig::flush_timeout).
//!
//! # Versions and features
//!
//! The crate `rotor` re-exports this crate as `rotor::stream`, and the examples here use that name.
//! If you depend on this crate alone, write `rotor_stream` instead:
//!
//! ```toml
//! rotor-stream = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
//!
//! # The book
//!
//! * [A protocol from nothing](https://github.com/rotor-rs/rotor/blob/main/doc/guide/streams.md)
//! * [Accept, connect,
//!   reconnect](https://github.com/rotor-rs/rotor/blob/main/doc/guide/connections.md)
//! * [Testing with a scripted
//!   socket](https://github.com/rotor-rs/rotor/blob/main/doc/guide/testing.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod accept;
mod block;
pub mod buf;
mod buffer_pool;
mod byte_counts;
mod bytes_held;
mod connect;
mod destination;
mod error;
mod frame;
mod happy_eyeballs;
mod intent;
mod least_rate;
mod limits;
mod link;
mod matched;
mod outbox;
mod output;
mod peer_connections;
mod persistent;
mod protocol;
mod range;
mod resolve;
mod status;
mod stream;
mod sync;
pub mod testing;
mod transport;
mod wait_condition;
mod watchers;

pub use accept::{Accept, AcceptConfig, AcceptSeed, Accepted, InheritedListeners};
pub use block::Block;
pub use buf::{Buf, Filled, LentRoom};
pub use byte_counts::ByteCounts;
pub use bytes_held::{BytesHeld, NoRoom, Share};
pub use connect::{Connect, ConnectSeed};
pub use destination::{Destination, Host, Resolution, ToTarget};
pub use error::{Exception, Fatal, StreamError};
pub use frame::{FrameHead, FrameLength};
pub use happy_eyeballs::{ATTEMPT_DELAY, ATTEMPTS_MAX};
pub use intent::{Expectation, Intent, NeedsDeadline, Undecided};
pub use least_rate::{LeastRate, RateWatch};
pub use limits::{AbortReason, StreamConfig};
pub use link::Link;
pub use matched::Matched;
pub use outbox::{
    HasOutbox, Outbox, OutboxConfig, OutboxCounters, OutboxError, OutboxFull, OutboxSender,
    WithOutbox,
};
pub use output::Output;
pub use peer_connections::{PeerConnections, PeerPlace};
pub use persistent::{Persistent, PersistentConfig, PersistentSeed};
pub use protocol::Protocol;
pub use resolve::{AddressService, HasResolver, HostName, ResolveError, ResolveResult};
pub use stream::{Layered, LayeredResult, Stream, StreamSeed};
pub use transport::{ConnectionInfo, Transport};
