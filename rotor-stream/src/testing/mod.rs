//! A test kit for those who write protocols and machines on streams: sockets that follow a script,
//! a clock that is moved by hand, and a driver that feeds one protocol and reads what it writes.
//!
//! **It is the real thing**: the same [`Stream`](crate::Stream) in the same loop, on a backend in
//! memory. Nothing is simulated but the kernel, so what holds here holds there.
//!
//! | | |
//! |--|--|
//! | [`Driver`] | one protocol on a scripted socket: send, end, reset, let time pass, look at what it wrote |
//! | [`assert_cuts_agree`] | whole, byte by byte, cut at every point: the same answers |
//! | [`TestLoop`] | any machines in a loop in memory: listeners, clients, several at once |
//! | [`ScriptedSocket`], [`Peer`], [`pair`] | a byte stream and its other end |
//! | [`ScriptedListener`], [`Door`], [`listener`] | a listener and its outside |
//! | [`service`], [`ScriptedCalls`] | a service whose questions the test answers |
//! | [`World`], [`Memory`] | the clock, the edges, who can be connected to; the backend made of it |
//!
//! The methods of the kit panic where a test should fail; that is what they are for.

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
