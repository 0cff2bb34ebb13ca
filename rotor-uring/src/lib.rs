//! A main loop for rotor on Linux's io_uring, and its sockets: the same machines, fewer system
//! calls.
//!
//! **Everything written in a turn leaves with one system call at its end, and received data is
//! already there when a machine reads.** A machine that is generic over its sockets
//! ([`IpNet`](rotor_core::net::IpNet)) does not change; you choose the loop where you create it.
//!
//! # A program
//!
//! ```no_run
//! use std::io::Write;
//!
//! use rotor::net::{IpNet, ListenOptions};
//! use rotor::{Backend, BoxError, Config, Loop, Scope};
//! use rotor::stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
//! use rotor_uring::{Choice, OnAnyLoop, UringConfig, choose};
//!
//! struct Echo;
//!
//! impl Protocol for Echo {
//!     type Context = ();
//!     type Seed = ();
//!
//!     fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::of(Echo).bytes(1).no_deadline()
//!     }
//!
//!     fn bytes_read(self, _: Matched, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         if let Err(error) = transport.output.write_all(&transport.input[..]) {
//!             return Intent::error(error);
//!         }
//!         transport.input.clear();
//!         Intent::of(self).keep().no_deadline()
//!     }
//!
//!     /// The peer has ended its side: what was written still goes out.
//!     fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::done()
//!     }
//! }
//!
//! struct Server;
//!
//! impl OnAnyLoop for Server {
//!     type Output = Result<(), BoxError>;
//!
//!     fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
//!         let mut creator = Loop::<Accept<Stream<Echo, N::Stream>, N::Listener>, B>::with_backend(backend, &Config::new())?;
//!         let address = ([127, 0, 0, 1], 7007).into();
//!         creator.add_machine_with(|scope| {
//!             Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
//!         })?;
//!         creator.instantiate(()).run()?;
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> Result<(), BoxError> {
//!     choose(Choice::from_env()?, &UringConfig::new(), Server)?
//! }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Uring`], [`UringConfig`], [`RingUnavailable`] | the backend, its sizes, and why it was refused |
//! | [`choose`](choose()), [`Choice`], [`OnAnyLoop`] | which loop a program runs on |
//! | [`UringKind`] | io_uring for code that makes the loops, such as `Serve` of HTTP |
//! | [`UringInet`], [`UringUnix`] | the sockets, as families |
//! | [`UringTcpStream`], [`UringTcpListener`], [`UringUdpSocket`] | the IP sockets |
//! | [`UringUnixStream`], [`UringUnixListener`], [`UringUnixDatagram`] | the Unix sockets |
//! | [`UringHandle`], [`UringStats`] | what the ring has done |
//!
//! # How it reads and writes
//!
//! ```text
//!  what came ──multishot receive──▶ a provided buffer ──read──▶ the machine      no call
//!                                        │ the turn ends: what is unread is copied, the buffer goes back
//!                                        │ too much is unread, or no buffer was left
//!                                        ▼
//!                                  the socket is asked ──recv──▶ the machine     a call each
//!                                        │ it is empty: given again; told, by a poll, where much came at once
//!                                        ▼
//!  what came ──poll──▶ the machine is told ──recv──▶ the machine                 a call each, until little comes
//!
//!  a machine ──write──▶ the stream's queue ──the turn ends──▶ a send ──one enter for all──▶ the kernel
//!      └─── more than 16 KiB at once ──sendmsg, sendfile──────────────────────────────────▶ the kernel
//! ```
//!
//! For listeners and datagram sockets, the ring only reports that something has arrived; each
//! connection and each datagram takes a system call. So what a machine has no room for waits in the
//! system.
//!
//! # Where it differs
//!
//! * The loop belongs to the thread that opened it, and so do its sockets: none is `Send`, and the
//!   loop cannot be [handed over](rotor_core::LoopInstance::handing_over).
//! * `write` takes data that is sent when the turn ends. If sending fails, the machine gets an
//!   event, and each later write returns the error.
//! * A peer sees a `shutdown` after everything that was written before it, and the end of a dropped
//!   stream when the turn ends.
//! * A dropped stream goes on sending what was written before, for up to
//!   [`linger`](UringConfig::linger), no longer than the loop exists, and as one of at most
//!   [`lingering_max`](UringConfig::lingering_max) such streams. A loop whose machines have ended
//!   or are drained goes on for that, at most until the deadline of a drain; one that is stopped
//!   does not. If something is cut off, the peer reads a reset and not an end; Unix sockets have no
//!   reset. The kernel reports one to the peer of a Unix socket that is closed with unread bytes,
//!   but not for bytes that the loop has taken from it already.
//! * While much input is unread, the kernel does not report the peer's end; the read that reaches
//!   it does. A reset is reported.
//! * The loop cannot run inside another one: it has no descriptor ([`AsFd`](std::os::fd::AsFd)) for
//!   which the other loop could wait, and what machines have written would not leave before the
//!   next turn.
//!
//! # Limits
//!
//! Linux 6.1 or later (6.12 for buffers that are filled bit by bit), 64-bit. [`UringConfig`] has
//! every limit and its default; [`UringStats`] counts how often they were reached. A stream accepts
//! 64 KiB before the kernel has taken any of it, and as much again while that is under way. 1 MiB
//! of memory is kept for sending.
//!
//! Open the ring after a fork(2), not before it: a child process has none of its memory
//! (`MADV_DONTFORK`, madvise(2)), and a signal would end the child when it uses or drops the ring.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
//!
//! ```toml
//! rotor-uring = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later; empty on systems other than Linux. There are no features to choose.
//!
//! # The book
//!
//! * [Which loop?](https://github.com/rotor-rs/rotor/blob/main/doc/guide/which-loop.md)
//! * [Inside another loop](https://github.com/rotor-rs/rotor/blob/main/doc/guide/embedding.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
//!
//! # Unsafe code
//!
//! There is unsafe code only in `ring`; no other part of rotor has any. The kernel writes into
//! memory and reads from it while the program runs. Therefore that memory belongs to the ring until
//! the last completion of the operation was taken, whatever happens to the socket. At its end, a
//! ring cancels all operations and waits for them, or leaves their memory allocated.
//!
//! | file | unsafe | why it is sound |
//! |--|--|--|
//! | `region.rs` | 5 | pages of our own, mapped where the system likes, unmapped once; addresses and slices are compared with the length; the caller of `slice` promises that the kernel does not write to those bytes |
//! | `provided.rs` | 4 | the kernel writes only after the bytes that it has reported, and never into a buffer that it has reported as done; a piece is a range that it has reported, cannot be copied, and its buffer is given back after its last piece; an entry is written where the kernel does not read, and published by an atomic store of the tail |
//! | `mod.rs` | 8 | an operation names memory of the ring, or none; the bytes of a send stay in a slot until the last completion; a descriptor that is closed was owned |
//!
//! Tests under the address sanitizer drop connections at each step: `tests/long/uring`.
#![cfg(target_os = "linux")]

mod backend;
mod buffer_table;
mod bulk;
mod choose;
mod config;
mod datagram;
mod driver;
mod family;
/// The programs of the guide's chapter are tests. Only then, since the chapter is not in this
/// package.
#[cfg(doctest)]
#[doc = include_str!("../../doc/guide/which-loop.md")]
mod guide {}
mod inbox;
mod intake;
mod key;
mod kind;
mod listener;
mod outbox;
mod refused;
#[expect(unsafe_code, reason = "the kernel shares memory with us; the crate's page has a table")]
mod ring;
mod slots;
mod socket_handle;
mod stats;
mod stream;

pub use backend::{Uring, UringHandle};
pub use choose::{BACKEND_VARIABLE, Choice, OnAnyLoop, UnknownBackend, choose};
pub use config::UringConfig;
pub use datagram::{UringUdpSocket, UringUnixDatagram};
pub use family::{UringInet, UringUnix};
pub use kind::UringKind;
pub use listener::{UringTcpListener, UringUnixListener};
pub use refused::RingUnavailable;
pub use stats::UringStats;
pub use stream::{UringTcpStream, UringUnixStream};
