//! The PROXY protocol, versions 1 and 2: a server behind a balancer learns its clients' addresses,
//! and a balancer sends them.
//!
//! **A [`ProxyStream`] is a socket like any other, whose peer address is the one that the balancer
//! sends. So every protocol on it, with TLS or without, sees the real client, and so do its log and
//! its limits. Headers are believed only from networks that the configuration lists. They are
//! limited in length, parsed strictly, and cost no more than a connection that sends nothing. A
//! wrong header ends only its own connection, and is counted.**
//!
//! # A program
//!
//! A server that answers each line with the address of its client. Only the type of its listener
//! and its address differ from a server that is not behind a balancer:
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; pub use rotor_proxy_protocol as proxy_protocol; }
//! use rotor::net::{ListenOptions, TcpListener, TcpStream};
//! use rotor::{Config, Loop, Scope};
//! use rotor::proxy_protocol::{ProxyListener, ProxyProtocol, ProxyProtocolConfig, ProxyStream};
//! use rotor::stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
//! use std::io::Write;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! struct WhoAmI;
//!
//! impl Protocol for WhoAmI {
//!     type Context = ();
//!     type Seed = ();
//!
//!     fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::of(WhoAmI).delimiter(b"\n", 1024).deadline(scope.now() + Duration::from_secs(60))
//!     }
//!
//!     fn bytes_read(
//!         self,
//!         line: Matched,
//!         transport: &mut Transport<'_>,
//!         scope: &mut Scope<'_, ()>,
//!     ) -> Intent<Self> {
//!         line.consume(transport.input);
//!         let peer = transport.peer_address();
//!         if let Err(error) = writeln!(transport.output, "{peer:?}") {
//!             return Intent::error(error);
//!         }
//!         Intent::of(self).keep().deadline(scope.now() + Duration::from_secs(60))
//!     }
//!
//!     /// The peer has ended its side: what was written still goes out.
//!     fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::done()
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let behind = ProxyProtocol::new(ProxyProtocolConfig::new(["127.0.0.0/8".parse()?]));
//!     let address = behind.at("127.0.0.1:7007".parse::<SocketAddr>()?);
//!     let mut creator =
//!         Loop::<Accept<Stream<WhoAmI, ProxyStream<TcpStream>>, ProxyListener<TcpListener>>>::new(
//!             &Config::new(),
//!         )?;
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
//! | [`ProxyProtocol`], [`ProxyProtocolConfig`], [`Network`] | a server behind balancers, and the networks that it trusts |
//! | [`ProxyListener`], [`ProxyAddress`] | its listeners |
//! | [`ProxyStream`], [`ProxyTarget`] | a connection that begins with a header, received or sent |
//! | [`ProxyHeader`], [`ProxyFields`], [`ClientTls`] | the contents of a header, which can be made, written and read without a socket |
//! | [`ProxyError`], [`FieldError`], [`NetworkError`] | what can go wrong, and whose fault it is |
//! | [`ProxyCounters`] | counters |
//!
//! # Limits
//!
//! * The length of a header: [`header_bytes_max`](ProxyProtocolConfig::header_bytes_max), in
//!   version 1 [`LINE_BYTES_MAX`]. Bytes beyond it that a read of 512 bytes has brought are kept
//!   until the protocol reads.
//! * The time for a header: [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout).
//! * Connections of one peer: [`per_peer`](ProxyProtocolConfig::per_peer).
//!
//! The name, the id and the other fields are as the balancer wrote them; their meaning is not
//! checked.
//!
//! # Versions and features
//!
//! With its feature `proxy-protocol`, the crate `rotor` re-exports this crate as
//! `rotor::proxy_protocol`, and the examples here use that name. If you depend on this crate alone,
//! write `rotor_proxy_protocol` instead:
//!
//! ```toml
//! rotor-proxy-protocol = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux). There are no
//! features. [The specification](https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt) is
//! haproxy's.
//!
//! # The book
//!
//! * [Behind a balancer](https://github.com/rotor-rs/rotor/blob/main/doc/guide/scaling-out.md)
//! * [Accept, connect,
//!   reconnect](https://github.com/rotor-rs/rotor/blob/main/doc/guide/connections.md)
//! * [Hostile peers](https://github.com/rotor-rs/rotor/blob/main/doc/guide/hostile-peers.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod checksum;
mod config;
mod counters;
mod destination;
mod error;
mod established;
mod fields;
mod header;
mod header_receiver;
mod header_sender;
mod listener;
mod network;
mod proxy_protocol;
mod read;
mod shared;
mod stream;
mod target;
mod version;
mod wire;
mod write;

pub use config::{ProxyProtocolConfig, Untrusted, Versions};
pub use counters::ProxyCounters;
pub use error::ProxyError;
pub use fields::{ClientTls, ProxyFields};
pub use header::{FieldError, ProxyHeader};
pub use listener::{ProxyAddress, ProxyListener};
pub use network::{Network, NetworkError};
pub use proxy_protocol::ProxyProtocol;
pub use read::LINE_BYTES_MAX;
pub use stream::ProxyStream;
pub use target::ProxyTarget;
pub use version::Version;
