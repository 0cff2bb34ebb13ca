//! A main loop for rotor with its own TCP/IP stack, smoltcp, and its sockets: the same machines,
//! while the kernel sees only packets.
//!
//! **A loop takes packets from a device and runs TCP, UDP and IP on its own thread. A machine that
//! is generic over its sockets ([`IpNet`](rotor_core::net::IpNet)) does not change. Whatever
//! packets come, they end at most a connection, and packets that are dropped are counted.**
//!
//! # A program
//!
//! A server that sends back what it gets, on one end of a cable in memory. With the feature `tun`,
//! `KernelDevice::tun("rotor0")` in its place serves the kernel's clients:
//!
//! ```no_run
//! use std::io::Write;
//!
//! use rotor::net::ListenOptions;
//! use rotor::stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
//! use rotor::{BoxError, Config, Loop, Scope};
//! use rotor_smoltcp::{
//!     MemoryConfig, MemoryDevice, Smoltcp, SmoltcpTcpListener, SmoltcpTcpStream, StackConfig,
//! };
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
//!     fn bytes_read(
//!         self,
//!         _: Matched,
//!         transport: &mut Transport<'_>,
//!         _: &mut Scope<'_, ()>,
//!     ) -> Intent<Self> {
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
//! fn main() -> Result<(), BoxError> {
//!     let (device, _other_end) = MemoryDevice::pair(&MemoryConfig::new())?;
//!     let config = StackConfig::new().address("10.90.0.2".parse()?, 24);
//!     let backend = Smoltcp::open(device, &config)?;
//!     let mut creator =
//!         Loop::<Accept<Stream<Echo, SmoltcpTcpStream>, SmoltcpTcpListener>, _>::with_backend(
//!             backend,
//!             &Config::new(),
//!         )?;
//!     let address = "10.90.0.2:7007".parse()?;
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
//! | [`Smoltcp`], [`StackConfig`], [`Congestion`] | the backend; its addresses, routes, buffers and limits |
//! | [`Device`], [`Medium`] | the source of packets, and their format |
//! | [`MemoryDevice`], [`MemoryConfig`], [`MemoryStats`] | a cable in memory, with seeded faults |
//! | `KernelDevice` | TUN and TAP, packet sockets; with the features `tun`, `tun-offload` and `packet-socket` |
//! | [`ManualClock`] | virtual time, for loops and cables |
//! | `Smoltcp::in_simulation` | a stack on a host of a simulation, whose network has faults at the level of packets; with the feature `simulation` |
//! | [`SmoltcpInet`] | the sockets, as a family |
//! | [`SmoltcpTcpStream`], [`SmoltcpTcpListener`], [`SmoltcpUdpSocket`] | the sockets |
//! | [`SmoltcpHandle`], [`StackStats`] | what the stack has done |
//!
//! # How it reads and writes
//!
//! ```text
//!  device ──packet──▶ whose is it? ──a map──▶ the connection's buffer ──read──▶ the machine     no call
//!                        │ nobody's: a listener's backlog, a reset, ARP, a ping
//!
//!  the machine ──write──▶ the connection's buffer ──the turn ends──▶ packets ──▶ device         a call each
//! ```
//!
//! # Where it differs from the kernel's sockets
//!
//! * Addresses are the stack's own: no other program on the host has them, and a loop reaches
//!   itself only on a [loopback](MemoryDevice::loopback).
//! * `write` buffers data, which is sent when the turn ends. A dropped stream goes on sending what
//!   it has buffered, for up to [`linger`](StackConfig::linger); a stream that is reset throws it
//!   away.
//! * A loop whose machines have ended, or are drained, goes on until the peers have acknowledged
//!   what its streams have written: for up to [`linger`](StackConfig::linger), and at most until the
//!   deadline of a drain. If it ends before that, because it is stopped or dropped, its streams send
//!   as much of their buffers as their peers' windows, congestion control and the device allow at
//!   that time: in a connection that has sent nothing yet, at most 2 KiB. After that nothing is
//!   retransmitted, and packets from peers are not answered. Packets for which the device has no
//!   room when a loop ends are lost in any case: datagrams, too, and last acknowledgements.
//! * The configuration sets the size of the buffers, for each connection from its first packet;
//!   `set_send_buffer` and the like do nothing.
//! * `[::]` listens only for IPv6. Addresses are not shared (`reuse_port`): each loop has a stack
//!   and addresses of its own.
//! * A datagram socket is not told if the port at the other end is closed. Nothing is fragmented,
//!   and received fragments are dropped.
//! * There is no path MTU discovery (RFC 1191, RFC 8201): packets are as long as the device's MTU
//!   allows, so that must be no more than the path allows. If it is more, large segments do not
//!   arrive, and their connection stalls.
//! * There are no SYN cookies. In a SYN flood the oldest half-open connection makes room for the
//!   next, so honest clients have as much time for a handshake as the flood takes to fill the
//!   [backlog](StackConfig::backlog_max).
//! * Each initial sequence number consists of random bits from the system. The numbers do not grow
//!   with time, as those of RFC 6528 do between the same two ends.
//! * The loop has no descriptor ([`AsFd`](std::os::fd::AsFd)) for which an outer loop could wait,
//!   because the stack has timers of its own.
//!
//! # Limits
//!
//! [`StackConfig`] has every limit and its default, [`StackStats`] counts how often they were
//! reached. smoltcp keeps both buffers of a connection as long as it lives: an idle connection
//! takes up to 136 KiB by default. If you have many connections, change these sizes first
//! ([`receive_buffer_bytes`](StackConfig::receive_buffer_bytes),
//! [`send_buffer_bytes`](StackConfig::send_buffer_bytes)). With buffers of 4 KiB an idle connection
//! takes 9 KiB, and no more than 4 KiB are sent in a round trip. A dropped connection keeps its
//! buffers as well, until both sides have ended: there are at most
//! [`lingering_max`](StackConfig::lingering_max) of these. After that (in TIME-WAIT) it has no
//! buffers. Up to 8 MiB of buffers are kept for new connections.
//!
//! The loop itself does the segmentation and the checksums: with packets of 1,500 bytes, large
//! bodies cost three times the CPU time of the kernel's stack. They cost half as much as in the
//! kernel with packets of 64 KiB, or if this work is left to the device
//! ([`Device::has_virtio_header`], `KernelDevice::tun_offloading`). Decisions 74, 87 and 105 have
//! the figures.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the program uses that name for the core and streams:
//!
//! ```toml
//! rotor-smoltcp = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.91 or later, which smoltcp requires, on Unix; kernel devices on Linux 5.6 or later.
//!
//! * `tun`: `KernelDevice::tun` and `KernelDevice::tap`.
//! * `tun-offload`: `KernelDevice::tun_offloading` beside them, by the package `tun-rs`.
//! * `packet-socket`: `KernelDevice::packet_socket`.
//! * `simulation`: `Smoltcp::in_simulation`, for tests: among the `[dev-dependencies]`.
//!
//! # The book
//!
//! * [Which loop?](https://github.com/rotor-rs/rotor/blob/main/doc/guide/which-loop.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![cfg(unix)]

mod backend;
mod clock;
mod config;
mod datagram;
mod device;
mod device_gone;
mod family;
mod listener;
#[cfg(feature = "simulation")]
mod simulation;
mod slots;
mod stack;
mod stack_socket;
mod stats;
mod stream;

pub use backend::{Smoltcp, SmoltcpHandle};
pub use clock::ManualClock;
pub use config::{Congestion, StackConfig};
pub use datagram::SmoltcpUdpSocket;
#[cfg(all(any(feature = "tun", feature = "packet-socket"), target_os = "linux"))]
pub use device::KernelDevice;
pub use device::{Device, Medium, MemoryConfig, MemoryDevice, MemoryStats};
pub use family::SmoltcpInet;
pub use listener::SmoltcpTcpListener;
pub use stats::StackStats;
pub use stream::SmoltcpTcpStream;
