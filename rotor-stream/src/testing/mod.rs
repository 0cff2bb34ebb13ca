//! A test kit for authors of protocols and of machines on streams: sockets that follow a script, a
//! clock that is moved by hand, and a driver that feeds one protocol and reads its output.
//!
//! **It tests the real code**: the same [`Stream`](crate::Stream) in the same loop, on a backend in
//! memory. Only the kernel is simulated, so what holds in a test holds in production.
//!
//! | | |
//! |--|--|
//! | [`Driver`] | one protocol on a scripted socket: send, end, reset, let time pass, read its output |
//! | [`assert_cuts_agree`] | whole, byte by byte, cut at every point: the same output |
//! | [`TestLoop`] | any machines in a loop in memory: listeners, clients, several at once |
//! | [`ScriptedSocket`], [`Peer`], [`pair`] | a byte stream and its other end |
//! | [`ScriptedListener`], [`Door`], [`listener`] | a listener, and the handle by which a test connects to it |
//! | [`service`], [`ScriptedCalls`] | a service whose requests the test answers |
//! | [`World`], [`Memory`] | the clock, the edges, the targets of connections; and the backend that uses them |
//!
//! The methods of the kit panic if a test should fail.

mod cuts;
mod driver;
mod end;
mod listener;
mod memory;
mod peer;
mod service;
mod socket;

pub use cuts::{Transcript, assert_cuts_agree};
pub use driver::{Driver, TestLoop};
pub use end::Operations;
pub use listener::{Door, ScriptedListener, listener};
pub use memory::{Memory, MemoryHandle, Target, World};
pub use peer::Peer;
pub use service::{ScriptedCalls, service};
pub use socket::{Scripted, ScriptedSocket, pair};
