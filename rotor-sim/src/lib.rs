//! A simulated main loop for rotor: the machines of a production server run in virtual time against
//! seeded faults.
//!
//! **The same seed gives the same run, byte for byte; time advances only when no loop can run; and
//! a machine meets everything that the readiness contract allows, not only what a kernel happens to
//! do.** So a test runs an hour of a cluster in milliseconds, a thousand times, each time with
//! different latencies, short reads, resets, partitions and crashes; and a failure that was seen
//! once can be reproduced by its seed.
//!
//! # A program
//!
//! A test: a server that greets, clients that expect the greeting, and twenty seeds.
//!
//! ```
//! # use rotor_core as rotor;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use rotor::net::{ListenOptions, Listener};
//! use rotor::{EventSet, Interest, Machine, Response, Scope, Infallible};
//! use rotor_sim::Script;
//! use rotor_sim::net::{SimTcpListener, SimTcpStream};
//!
//! /// Sends "hello" to each client, on any kind of socket.
//! struct Greeter<L> {
//!     listener: L,
//! }
//!
//! impl<L: Listener> Machine for Greeter<L> {
//!     type Context = ();
//!     type Seed = Infallible;
//!
//!     fn ready(mut self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
//!         use std::io::Write;
//!         loop {
//!             match self.listener.accept() {
//!                 Ok((mut socket, _)) => drop(socket.write(b"hello")),
//!                 Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
//!                     return Response::ok(self);
//!                 }
//!                 // Pause, then try again: no edge comes for connections that wait already.
//!                 Err(_) => {
//!                     return Response::ok(self).deadline(scope.now() + Duration::from_millis(10));
//!                 }
//!             }
//!         }
//!     }
//!
//!     fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
//!         self.ready(EventSet::EMPTY, scope)
//!     }
//! }
//!
//! rotor_sim::check(|sim| {
//!     let server = sim.host("server", |boot| {
//!         let mut creator = boot.new_loop()?;
//!         let address = SocketAddr::new(boot.address(), 80);
//!         creator.add_machine_with(|scope| {
//!             Response::attempt(|| {
//!                 let mut listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
//!                 scope.register(&mut listener, Interest::Readable)?;
//!                 Ok(Response::ok(Greeter { listener }))
//!             })
//!         })?;
//!         Ok(creator.instantiate(()))
//!     })?;
//!     let clients = sim.host_of_clients::<SimTcpStream>("clients")?;
//!     // A whole "hello" in one attempt of many: a short write or a reset may spoil any of them.
//!     let script = Script::new().expect(b"hello").attempts(1_000);
//!     let transcript = sim.play(clients, script, SocketAddr::new(sim.address(server), 80))?;
//!     sim.run_for(Duration::from_secs(10))?;
//!     sim.eventually(Duration::from_secs(600), |_| transcript.is_done())?;
//!     Ok(())
//! });
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Sim`], [`Host`], [`Boot`] | hosts, each with a loop and a context of its own; running, inspecting, interfering |
//! | [`check`], [`Check`], [`Failure`] | many seeds; what failed, and how to reproduce it |
//! | [`Faults`], [`Fault`], [`Family`], [`Crash`] | what goes wrong, and how often |
//! | [`Strikes`], [`Busy`] | how often faults struck, and how often while a client was busy |
//! | [`Network`], [`net`] | latency, bandwidth, windows; the sockets |
//! | [`Script`], [`Transcript`] | scripted clients, on any backend |
//! | [`Watched`], [`attempt_failed`], [`property`] | checks of machines and of runs |
//! | [`Work`], [`WorkBounds`] | how much a loop does in a turn, and how much it may |
//! | [`SimBackend`], [`SimHandle`] | the backend itself |
//! | [`PacketPort`] | a network of packets, for a TCP/IP stack of a host: `rotor-smoltcp` has one |
//!
//! # Limits
//!
//! * All loops run on one thread, in turns. Races between threads need other tools. An offloaded
//!   job runs in one step when its time has come.
//! * Segments are neither lost nor duplicated inside a connection of [`net`]: a partition or a
//!   latency spike delays them. To test at the level of packets, `rotor-smoltcp` has sockets for
//!   the same hosts (its feature `simulation`). A connection across a partition waits for as long
//!   as that lasts; only an attempt to connect times out (127 s).
//! * A host has one address, which is also its loopback address.
//! * `send_file` reads real files.
//! * A run is deterministic only if its machines are. A machine that reads a clock, draws random
//!   numbers or iterates over a hash map, without its scope, is not; [`Check::twice`] finds it.
//!
//! # Versions and features
//!
//! Use it in tests, beside `rotor`; the examples use that name for the core:
//!
//! ```toml
//! [dev-dependencies]
//! rotor-sim = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose. Put it among the `[dev-dependencies]`.
//!
//! # The book
//!
//! * [Simulation](https://github.com/rotor-rs/rotor/blob/main/doc/guide/simulation.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod attempt;
mod backend;
mod busy;
mod chaos;
mod check;
mod clients;
mod failure;
mod faults;
/// The programs of the guide's chapter are tests. Only then, since the chapter is not in this
/// package.
#[cfg(doctest)]
#[doc = include_str!("../../doc/guide/simulation.md")]
mod guide {}
mod host;
pub mod net;
mod network;
mod packet_port;
pub mod property;
mod random;
mod script;
mod script_client;
mod sim;
mod step;
mod strikes;
mod table;
mod trace;
mod transcript;
mod watched;
mod work;
mod world;

pub use attempt::attempt_failed;
pub use backend::{SimBackend, SimHandle};
pub use busy::Busy;
pub use chaos::Crash;
pub use check::{Check, check};
pub use failure::Failure;
pub use faults::{Family, Fault, Faults};
pub use host::{Boot, Host};
pub use network::Network;
pub use packet_port::PacketPort;
pub use script::Script;
pub use script_client::ScriptClient;
pub use sim::Sim;
pub use strikes::Strikes;
pub use transcript::{Transcript, TranscriptHandle};
pub use watched::Watched;
pub use work::{Work, WorkBounds};
