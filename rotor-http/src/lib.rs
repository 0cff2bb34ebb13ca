//! HTTP/1.1 server and client as machines on rotor.
//!
//! **What a handler writes is a correct message or an error that says what to do instead; what a peer sends can end its
//! connection, never the process; what it costs is bounded by limits that have names.**
//!
//! ```
//! use rotor_core::net::{ListenOptions, Listener, TcpListener};
//! use rotor_core::{Config, Loop, Response as Answer};
//! use rotor_http::h1::Status;
//! use rotor_http::server::{self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, Settings};
//!
//! struct Hello;
//!
//! impl Server for Hello {
//!     type Context = ();
//!     type Seed = ();
//!     type Upgrade = NoUpgrade<()>;
//!
//!     fn headers_received(_: (), _: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
//!         let _misuse = response.send(Status::OK, "text/plain", b"Hello, World!");
//!         Next::finished()
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
//! creator.add_machine_with(|scope| {
//!     Answer::attempt(|| {
//!         let listener = TcpListener::bind(&"127.0.0.1:0".parse()?, &ListenOptions::new(), scope)?;
//!         Ok(server::listen(listener, HttpSeed::new((), Settings::new()), scope))
//!     })
//! })?;
//! let mut instance = creator.instantiate(());
//! # instance.turn(Some(std::time::Duration::ZERO))?;
//! // instance.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | what it holds |
//! |--|--|
//! | [`server`] | [`Server`](server::Server), the trait of handlers, and the connection that runs them |
//! | [`files`] | a ready handler that serves the files of a directory |
//! | [`h1`] | the messages themselves, pure: bytes in, bytes out |
//!
//! # Limits
//!
//! All are in [`h1::Limits`], each with unit, default, reason and what happens beyond it; [`server::Counters`] counts how
//! often each was met.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod files;
pub mod h1;
pub mod server;
