//! Rotor is an event-loop, state-machine networking library: a protocol is a value, and a loop runs
//! thousands of them together with one context that they share.
//!
//! **A machine decides; the loop does. A handler gets its machine by value, with a scope through
//! which everything else comes (time, randomness, sockets, wake-ups), and returns the next state,
//! what the loop should do, and until when to wait. It never blocks. So no state and no timer can
//! be forgotten, a panic costs only the machine whose handler panicked, and a machine that uses
//! only its scope runs unchanged on every main loop.**
//!
//! # A program
//!
//! Two machines pass a ball back and forth, each with a deadline in case the other drops it:
//!
//! ```
//! use rotor::{Config, Loop, Machine, Notifier, Response, Scope, Infallible};
//! use std::time::Duration;
//!
//! /// Shared by the machines.
//! #[derive(Default)]
//! struct Table {
//!     players: Vec<Notifier>,
//!     strokes: u32,
//! }
//!
//! struct Player {
//!     number: usize,
//! }
//!
//! impl Machine for Player {
//!     type Context = Table;
//!     type Seed = Infallible;
//!
//!     fn wakeup(self, scope: &mut Scope<'_, Table>) -> Response<Self, Infallible> {
//!         scope.strokes += 1;
//!         scope.players[1 - self.number].wakeup();
//!         if scope.strokes >= 100 {
//!             return Response::done();
//!         }
//!         Response::ok(self).deadline(scope.now() + Duration::from_secs(5))
//!     }
//!
//!     fn timeout(self, _: &mut Scope<'_, Table>) -> Response<Self, Infallible> {
//!         Response::error("the other player has gone home")
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::new(&Config::new())?;
//! let mut table = Table::default();
//! for number in 0..2 {
//!     creator.add_machine_with(|scope| {
//!         table.players.push(scope.notifier());
//!         Response::ok(Player { number })
//!     })?;
//! }
//! table.players[0].wakeup();
//! let mut instance = creator.instantiate(table);
//! instance.run()?; // until no machine is left
//! assert_eq!(instance.context().strokes, 101);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Machine`], [`Event`], [`Response`], [`Scope`] | a protocol, its events, its answers, its access to the outside |
//! | [`Loop`], [`LoopInstance`], [`Config`], [`Exit`] | making, running and ending a loop |
//! | [`Notifier`], [`Port`] and [`Future`], [`Mailbox`] | waking a machine; one-shot and bounded channels to it |
//! | [`Service`], [`Calls`], [`Call`] | requests from one machine to another, and their answers |
//! | [`Permits`], [`Lock`], [`Barrier`], [`Bell`] | things for which machines wait in line |
//! | [`ReturnOnDrop`] | what has to be undone in the context when a machine ends |
//! | [`Scope::offload`], [`OffloadPool`] | work for other threads |
//! | [`Blocking`], [`StuckReport`] | noticing handlers that hold up their loop |
//! | [`LoopHandle`], [`Broadcast`], [`Machines`], [`Stats`] | reaching a loop from outside |
//! | [`rotor_compose!`], [`Compose2`], [`BoxMachine`] | several protocols in one loop |
//! | [`net`] | sockets, and the traits that machines ask for instead |
//! | [`stream`] | byte-stream protocols: buffers, expectations, accepting, reconnecting |
//! | `http` | HTTP/1.1, and with the feature `http2` HTTP/2: servers and clients; with the feature `http`, on by default |
//! | `dns` | finding hosts by name; with the feature `dns` |
//! | `body` | bodies of any size, in memory or in files; with the feature `body` |
//! | `tls` | TLS around any socket, for servers and clients; with the feature `tls` |
//! | `proxy_protocol` | the addresses of clients behind a balancer; with the feature `proxy-protocol` |
//! | `websocket` | WebSockets, for HTTP servers and clients; with the feature `websocket` |
//! | `tracing` | spans around requests and machines; with the feature `tracing` |
//! | [`MachineFailure`], [`Config::observer`] | why a machine failed |
//! | [`threads`], [`signals`], [`Drain`] | several loops; ending gracefully on a signal |
//! | [`hand_over`], [`service_manager`] | passing listeners to a successor process; systemd |
//! | [`foreign`] | other file descriptors and event sources |
//! | [`backend`] | how a loop waits, and how to use another backend |
//!
//! Everything except `stream`, `http`, `dns`, `body`, `tls`, `proxy_protocol`, `websocket` and
//! `tracing` comes from the crate `rotor-core`, which can be used alone. Each of these modules is a
//! crate that can be used alone as well. Other crates:
//!
//! | | |
//! |--|--|
//! | [`rotor-sim`](https://docs.rs/rotor-sim) | the simulated main loop, for tests: virtual time, a virtual network, seeded faults |
//! | [`rotor-async`](https://docs.rs/rotor-async) | futures in machines: async libraries, tokio beside the loop |
//! | [`rotor-tower`](https://docs.rs/rotor-tower) | tower services, axum's routers among them |
//! | [`rotor-service`](https://docs.rs/rotor-service) | routes, JSON, queries and forms, CORS, cookies |
//! | [`rotor-metrics`](https://docs.rs/rotor-metrics) | counters of loops and servers, for Prometheus |
//! | [`rotor-inspect`](https://docs.rs/rotor-inspect) | a web page that shows what loops do |
//! | [`rotor-uring`](https://docs.rs/rotor-uring) | a main loop on Linux's io_uring |
//! | [`rotor-smoltcp`](https://docs.rs/rotor-smoltcp) | a main loop with a TCP/IP stack in user space |
//!
//! # Limits
//!
//! Every limit of a loop is a setting of [`Config`] with unit, default and reason; a loop holds at
//! most [`MACHINES_LIMIT`] machines. Deadlines have a resolution of one [`TICK`] and never fire
//! early, by loop time. A handler that blocks holds up its loop. Panics are contained only with
//! `panic = "unwind"`, Rust's default. Unix only, with 64-bit pointers.
//!
//! # Versions and features
//!
//! ```toml
//! rotor = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux). Of its features, only
//! `http` is on by default:
//!
//! * `default`: `http`. A crate with a protocol of its own sets `default-features = false`, so
//!   that its users do not compile HTTP: the core and `stream` are always there.
//! * `http`: the module `http`, HTTP/1.1.
//! * `dns`: the module `dns`, a resolver. It depends on a codec for DNS messages, which takes
//!   longer to build than everything else.
//! * `body`: the module `body`, and handlers of `http` can have bodies stored in files.
//! * `http2`: HTTP/2 on the connections of `http`'s servers and clients.
//! * `tls`: the module `tls`. It depends on rustls, and on ring for the cryptography, which is C
//!   and assembly.
//! * `tls-webpki-roots`: Mozilla's root certificates, for TLS clients.
//! * `tls-platform-roots`: the system's root certificates.
//! * `proxy-protocol`: the module `proxy_protocol`.
//! * `tracing`: the module `tracing`. It depends on the crate of that name.
//! * `websocket`: the module `websocket`. It depends on a compressor for messages.
//!
//! # The book
//!
//! Each chapter answers one question. Begin with these:
//!
//! * [Machines](https://github.com/rotor-rs/rotor/blob/main/doc/guide/machines.md)
//! * [A protocol from nothing](https://github.com/rotor-rs/rotor/blob/main/doc/guide/streams.md)
//! * [An HTTP server](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-server.md)
//! * [What it costs](https://github.com/rotor-rs/rotor/blob/main/doc/guide/costs.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
//! * [The examples](https://github.com/rotor-rs/rotor/blob/main/examples/README.md)
#![forbid(unsafe_code)]

pub use rotor_core::*;
// Inlined, so that the links above lead somewhere when this crate is documented alone.
#[cfg(feature = "body")]
#[doc(inline)]
pub use rotor_body as body;
#[cfg(feature = "dns")]
#[doc(inline)]
pub use rotor_dns as dns;
#[cfg(feature = "http")]
#[doc(inline)]
pub use rotor_http as http;
#[cfg(feature = "proxy-protocol")]
#[doc(inline)]
pub use rotor_proxy_protocol as proxy_protocol;
#[doc(inline)]
pub use rotor_stream as stream;
#[cfg(feature = "tls")]
#[doc(inline)]
pub use rotor_tls as tls;
#[cfg(feature = "tracing")]
#[doc(inline)]
pub use rotor_tracing as tracing;
#[cfg(feature = "websocket")]
#[doc(inline)]
pub use rotor_websocket as websocket;

#[cfg(doctest)]
mod guide;

/// The program in the README is compiled like an example here.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
