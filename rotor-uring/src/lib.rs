//! A main loop for rotor on Linux's io_uring, and its sockets: the same machines, fewer system
//! calls.
//!
//! **Everything written in a turn leaves with one call at its end, and received data is already
//! there when a machine reads.** A machine that is generic over its sockets
//! ([`IpNet`](rotor_core::net::IpNet)) does not change; you choose the loop where you create it.
//!
//! # A program
//!
//! ```no_run
//! use std::io::Write;
//!
//! use rotor::net::{IpNet, ListenOptions};
//! use rotor::{Backend, BoxError, Config, Loop, Scope};
//! use rotor::stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};
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
//! | [`Uring`], [`UringConfig`], [`Refused`] | the backend, its sizes, and why it was refused |
//! | [`choose`](choose()), [`Choice`], [`OnAnyLoop`] | which loop a program runs on |
//! | [`UringKind`] | io_uring for who makes the loops, such as `Serve` of HTTP |
//! | [`UringInet`], [`UringUnix`] | the sockets, as families |
//! | [`UringTcpStream`], [`UringTcpListener`], [`UringUdpSocket`] | those of IP |
//! | [`UringUnixStream`], [`UringUnixListener`], [`UringUnixDatagram`] | those of Unix |
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
//! A listener is asked for each connection, and a socket of datagrams for each datagram, when the ring has told of
//! some: what a machine has no room for waits with the system.
//!
//! # Where it differs
//!
//! * It belongs to the thread that opened it, and so do its sockets: none is `Send`, and the loop cannot be
//!   [handed over](rotor_core::LoopInstance::handing_over).
//! * `write` takes what is sent when the turn ends. If sending fails, an event says so, and each later write
//!   returns the error.
//! * A peer hears of `shutdown` once what was written before has left, and of a stream that was dropped when the
//!   turn ends.
//! * A stream that was dropped goes on sending what it had taken, for [`linger`](UringConfig::linger) and no longer
//!   than the loop lasts. Its peer reads a reset behind what was cut off, and no end; of Unix sockets there is no
//!   reset.
//! * While much is unread the kernel says nothing of the peer's end; the read that comes to it does. A reset is told.
//! * It cannot run inside another loop: there is no descriptor ([`AsFd`](std::os::fd::AsFd)) for that one to
//!   wait with, and what machines have written would stay until the next turn.
//!
//! # Limits
//!
//! Linux 6.1 or later (6.12 for buffers that are filled bit by bit), 64-bit. [`UringConfig`] has
//! every number and its default; [`UringStats`] counts how often they were reached. Bytes that a
//! stream takes before the kernel has any: 64 KiB; under way: as many. Memory that is kept to be
//! sent from: 1 MiB.
//!
//! Open the ring behind a fork(2), not before it: a child process has none of its memory (`MADV_DONTFORK`,
//! madvise(2)), and would be ended by a signal where it uses or drops it.
//!
//! # Versions and features
//!
//! Use it beside `rotor`, which is the examples' name for the core, streams and HTTP:
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
//! It is in `ring` alone; no other part of rotor has any. The kernel writes into memory and reads from it while
//! we run, so that memory belongs to the ring until the last completion of the operation was taken, whatever
//! becomes of the socket; and a ring ends by taking back all operations and waiting for them, or leaves their
//! memory allocated.
//!
//! | file | unsafe | why it is sound |
//! |--|--|--|
//! | `region.rs` | 5 | pages of our own, mapped where the system likes, unmapped once; addresses and slices are compared with the length; that the kernel does not write to a slice is the promise of whoever asks for one |
//! | `provided.rs` | 4 | the kernel writes behind what it has told us of, and not after it was done; a piece is a range that it has told us of, cannot be copied, and its buffer goes back behind the last one; an entry is written where the kernel does not read, and shown by an atomic store of the tail |
//! | `mod.rs` | 8 | an operation names memory of the ring, or none; what is sent stays in a slot until its last completion; a descriptor that is closed was owned |
//!
//! Tests under the address sanitizer drop connections at each step: `tests/long/uring`.
#![cfg(target_os = "linux")]

mod backend;
mod books;
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
mod member;
mod outgo;
mod refused;
#[expect(unsafe_code, reason = "the kernel shares memory with us; the crate's page has a table")]
mod ring;
mod slots;
mod stats;
mod stream;

pub use backend::{Uring, UringHandle};
pub use choose::{BACKEND_VARIABLE, Choice, OnAnyLoop, UnknownBackend, choose};
pub use config::UringConfig;
pub use datagram::{UringUdpSocket, UringUnixDatagram};
pub use family::{UringInet, UringUnix};
pub use kind::UringKind;
pub use listener::{UringTcpListener, UringUnixListener};
pub use refused::Refused;
pub use stats::UringStats;
pub use stream::{UringTcpStream, UringUnixStream};
