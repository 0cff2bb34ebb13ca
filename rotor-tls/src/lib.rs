//! TLS around any socket of rotor, for servers and clients.
//!
//! **A [`TlsStream`] is a socket like any other: whatever protocol runs on the socket inside runs
//! on it, on the kernel's sockets and on simulated ones. What a peer sends ends its own connection
//! at most, and the error says what it was and whose fault. Where TLS leaves a choice, the safe one
//! is made: TLS 1.2 and 1.3 with forward secrecy only, certificates checked, no early data, no
//! renegotiation, an end that the peer has not told of reported as such.**
//!
//! # A program
//!
//! A server that sends each line back, encrypted. It differs from one in clear by the type of its
//! listener and by its address:
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; pub use rotor_tls as tls; }
//! use rotor::net::{ListenOptions, TcpListener, TcpStream};
//! use rotor::{Config, Loop, Scope};
//! use rotor::stream::{Accept, AcceptConfig, Intent, Matched, Protocol, Stream, Transport};
//! use rotor::tls::{Identity, TlsListener, TlsServer, TlsServerConfig, TlsStream};
//! use std::io::Write;
//! use std::net::SocketAddr;
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
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("localhost.crt", "localhost.key")?;
//!     let tls = TlsServer::new(TlsServerConfig::new(identity))?;
//!     let address = tls.at("127.0.0.1:7007".parse::<SocketAddr>()?);
//!     let mut creator =
//!         Loop::<Accept<Stream<Echo, TlsStream<TcpStream>>, TlsListener<TcpListener>>>::new(
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
//! | [`TlsServer`], [`TlsServerConfig`], [`Identity`] | who a server is, and what it asks |
//! | [`TlsListener`], [`TlsAddress`] | its listeners |
//! | [`TlsClient`], [`TlsClientConfig`], [`Roots`] | whom a client trusts, and what it shows |
//! | [`TlsTarget`], [`MaybeTlsTarget`] | where it connects to, by address or by name |
//! | [`DangerAcceptAnyCertificate`] | a client that trusts anybody |
//! | [`TlsStream`], [`MaybeTls`], [`TlsSession`] | a connection, and what its handshake has come to |
//! | [`Tickets`], [`TicketKeys`] | how clients come back |
//! | [`TlsError`], [`CertificateFault`], [`TlsConfigError`] | what can go wrong, and whose fault it is |
//! | [`TlsCounters`] | what is counted |
//!
//! # Limits
//!
//! * A hello of [`HELLO_BYTES_MAX`]; before it is whole, a connection costs what has come of it.
//! * Handshakes under way: [`handshakes_max`](TlsServerConfig::handshakes_max); the time for one:
//!   [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout).
//! * Plaintext that waits to be read: what does not fit of one record, 16 KiB at most; where a
//!   write had to decode what came, all that one read brought. Encrypted: what one read
//!   brought behind a part of a record, 128 KiB at most. To be written: 64 KiB of plaintext
//!   and what goes around it.
//! * Records without data: [`EMPTY_BYTES_MAX`] in a row. Changes of key, warnings and
//!   renegotiation: as rustls bounds them.
//! * Servers whose sessions a client keeps, to continue them:
//!   [`sessions_max`](TlsClientConfig::sessions_max).
//!
//! Certificates are not looked up in lists of revoked ones, and kernel TLS is not used.
//!
//! # Versions and features
//!
//! With the feature `tls` of `rotor` it is `rotor::tls`, and examples here call it so. Who depends
//! on this crate alone writes `rotor_tls` instead:
//!
//! ```toml
//! rotor-tls = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (Linux is what the tests run on). The features
//! say where the cryptography comes from:
//!
//! * `ring`: from ring.
//! * `aws-lc-rs`: from AWS-LC, also where `ring` is on; post-quantum key exchange, RSA twice as
//!   fast, more to build.
//! * `webpki-roots`: Mozilla's list of whom a client may trust, [`Roots::webpki`](Roots).
//! * `platform-roots`: the system's list of them, [`Roots::platform`](Roots).
//! * `default`: `ring`.
//!
//! # The book
//!
//! * [TLS](https://github.com/rotor-rs/rotor/blob/main/doc/guide/tls.md)
//! * [Accept, connect,
//!   reconnect](https://github.com/rotor-rs/rotor/blob/main/doc/guide/connections.md)
//! * [An HTTP server](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-server.md)
//! * [Hostile peers](https://github.com/rotor-rs/rotor/blob/main/doc/guide/hostile-peers.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod certificate_fault;
mod client;
mod clock;
mod config_error;
mod counters;
mod destination;
mod engine;
mod error;
mod hello;
mod identity;
mod incoming;
mod last_words;
mod live;
mod pem;
mod provider;
mod roots;
mod server;
mod session;
mod stranger;
mod stream;
mod versions;

pub use certificate_fault::CertificateFault;
pub use client::{
    DangerAcceptAnyCertificate, NameError, TlsClient, TlsClientConfig, TlsTarget, Trust,
};
pub use config_error::TlsConfigError;
pub use counters::TlsCounters;
pub use error::{Cause, TlsError};
pub use hello::HELLO_BYTES_MAX;
pub use identity::Identity;
pub use live::EMPTY_BYTES_MAX;
pub use roots::Roots;
pub use server::{
    ClientCertificates, Offload, TICKET_KEYS_MAX, TicketKeys, Tickets, TlsAddress, TlsListener,
    TlsServer, TlsServerConfig, UnknownName,
};
pub use session::{TlsSession, TlsVersion};
pub use stream::{MaybeTls, MaybeTlsTarget, TlsStream};
pub use versions::Versions;
