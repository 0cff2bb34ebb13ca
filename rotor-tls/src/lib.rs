//! TLS around any rotor socket, for servers and clients.
//!
//! **A [`TlsStream`] is a socket like any other: every protocol that runs on the inner socket also
//! runs on it, whether that is the kernel's or a simulated one. What a peer sends ends at most its
//! own connection, and the error says what happened and whose fault it was. Where TLS leaves a
//! choice, this crate makes the safe one: only TLS 1.2 and 1.3 with forward secrecy, certificates
//! are checked, there is no early data and no renegotiation, and an end without `close_notify` is
//! reported as such.**
//!
//! # A program
//!
//! A server that sends each line back, encrypted. Only the type of its listener and its address
//! differ from an unencrypted server:
//!
//! ```no_run
//! # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; pub use rotor_tls as tls; }
//! use rotor::net::{ListenOptions, TcpListener, TcpStream};
//! use rotor::{Config, Loop, Scope};
//! use rotor::stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
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
//!
//!     /// The peer has ended its side: what was written still goes out.
//!     fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
//!         Intent::done()
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
//! | [`TlsServer`], [`TlsServerConfig`], [`Identity`] | a server's certificates, and what it requires of clients |
//! | [`TlsListener`], [`TlsAddress`] | its listeners |
//! | [`TlsClient`], [`TlsClientConfig`], [`Roots`] | the issuers that a client trusts, and its own certificate |
//! | [`TlsTarget`], [`MaybeTlsTarget`] | what a client connects to, by address or by name |
//! | [`DangerAcceptAnyCertificate`] | a client that accepts any certificate |
//! | [`TlsStream`], [`MaybeTls`], [`TlsSession`] | a connection, and the result of its handshake |
//! | [`Tickets`], [`TicketKeys`] | session resumption |
//! | [`TlsError`], [`CertificateFault`], [`TlsConfigError`] | what can go wrong, and whose fault it is |
//! | [`TlsCounters`] | counters |
//!
//! # Limits
//!
//! * A hello has at most [`HELLO_BYTES_MAX`]; until it is complete, a connection takes memory only
//!   for the bytes that have arrived.
//! * Handshakes under way: [`handshakes_max`](TlsServerConfig::handshakes_max); the time for one:
//!   [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout).
//! * Plaintext that waits to be read: the part of one record that did not fit into the reader's
//!   buffer, 16 KiB at most; if a write had to decode input, everything that one read of the socket
//!   returned. Encrypted input: what one read returned beyond a partial record, 128 KiB at most.
//!   Output: 64 KiB of plaintext and its overhead.
//! * Records without data, such as those of a handshake: [`EMPTY_BYTES_MAX`] in a row. Key updates,
//!   warnings and renegotiation: limited by rustls.
//! * Servers whose sessions a client keeps for resumption:
//!   [`sessions_max`](TlsClientConfig::sessions_max).
//!
//! Certificates are checked against [revocation lists](Roots#revocation-lists) if there are any; none
//! are fetched. Kernel TLS is not used.
//!
//! # Versions and features
//!
//! With its feature `tls`, the crate `rotor` re-exports this crate as `rotor::tls`, and the
//! examples here use that name. If you depend on this crate alone, write `rotor_tls` instead:
//!
//! ```toml
//! rotor-tls = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux). The features choose
//! the cryptography and the root certificates:
//!
//! * `ring`: cryptography from ring.
//! * `aws-lc-rs`: cryptography from AWS-LC, even if `ring` is enabled; it has a post-quantum key
//!   exchange, is twice as fast for RSA, and takes longer to build.
//! * `webpki-roots`: Mozilla's root certificates, [`Roots::webpki`](Roots).
//! * `platform-roots`: the system's root certificates, [`Roots::platform`](Roots).
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

mod alerts;
mod certificate_fault;
mod client;
mod clock;
mod config_error;
mod connection;
mod counters;
mod destination;
mod engine;
mod error;
mod hello;
mod identity;
mod incoming;
mod key_log_file;
mod non_tls_server;
mod pem;
mod provider;
mod record_sink;
mod roots;
mod sealed;
mod server;
mod session;
mod stream;
mod versions;

pub use certificate_fault::CertificateFault;
pub use client::{
    DangerAcceptAnyCertificate, NameError, TlsClient, TlsClientConfig, TlsTarget, Trust,
};
pub use config_error::TlsConfigError;
pub use connection::EMPTY_BYTES_MAX;
pub use counters::TlsCounters;
pub use error::{Cause, TlsError};
pub use hello::HELLO_BYTES_MAX;
pub use identity::Identity;
pub use roots::Roots;
pub use server::{
    ClientCertificates, Offload, TICKET_KEYS_MAX, TicketKeys, Tickets, TlsAddress, TlsListener,
    TlsServer, TlsServerConfig, UnknownName,
};
pub use session::{TlsSession, TlsVersion};
pub use stream::{MaybeTls, MaybeTlsTarget, TlsStream};
pub use versions::Versions;
