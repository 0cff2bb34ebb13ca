//! The client: a handler for each request, the connection that runs it, and a pool of connections.
//!
//! **A handler decides; the connection keeps the server and the protocol in order. It checks what
//! handlers write, and it frames, limits and times the server's responses. It reuses a connection
//! only if that is certainly safe, and repeats a request only if that is safe. No request gets the
//! response of another, and each gets an outcome.**
//!
//! Most programs make a [pool](Pool), put its handle into the context, and [`ask`](Pool::ask) it
//! from any machine:
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use rotor::{Config, Future, Loop, Machine, Outcome, Response, Scope, Time};
//! use rotor::net::TcpStream;
//! use rotor::http::client::{ByAddress, Fetch, Fetched, Pool, PoolConfig, PoolMachine};
//! use rotor::http::client::{ClientResult, ClientConfig};
//! use rotor::rotor_compose;
//!
//! struct Context {
//!     pool: Pool<Fetch<Context>>,
//! }
//!
//! type Pooled = PoolMachine<Fetch<Context>, ByAddress<TcpStream>>;
//!
//! /// Makes one request and prints the status.
//! enum Asks {
//!     Begins,
//!     Waits(Future<ClientResult<Fetch<Context>>>),
//! }
//!
//! impl Machine for Asks {
//!     type Context = Context;
//!     type Seed = rotor::Infallible;
//!
//!     fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Self::Seed> {
//!         let server = "127.0.0.1:80".parse().expect("an address");
//!         match scope.pool.ask(server, Fetch::get("/").host("example.com"), scope) {
//!             Ok(future) => Response::ok(Asks::Waits(future)),
//!             Err(_too_busy) => Response::done(),
//!         }
//!     }
//!     fn wakeup(self, _: &mut Scope<'_, Context>) -> Response<Self, Self::Seed> {
//!         let Asks::Waits(future) = self else { return Response::keep(self) };
//!         match future.take() {
//!             Outcome::Pending(future) => Response::keep(Asks::Waits(future)),
//!             Outcome::Value(Ok(Fetched { status, body, .. })) => {
//!                 println!("{status}, {} bytes", body.len());
//!                 Response::done()
//!             }
//!             Outcome::Value(Err(error)) => Response::error(error),
//!             Outcome::Lost(lost) => Response::error(lost),
//!         }
//!     }
//! }
//!
//! rotor_compose! {
//!     enum Machines <Context> {
//!         Pool(Pooled),
//!         Asks(Asks),
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<Machines>::new(&Config::new())?;
//! let pool = creator.add_part(Machines::Pool, |scope| {
//!     Ok(PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope))
//! })?;
//! creator.add_machine_with(|scope| {
//!     Response::ok(Machines::Asks(Asks::Begins)).deadline(scope.now())
//! })?;
//! let _instance = creator.instantiate(Context { pool });
//! // instance.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |--|--|
//! | [`Client`], [`Next`], [`Request`], [`Head`] | one request as its handler sees it |
//! | [`Fetch`], [`Fetched`] | a ready-made handler: a request and a response in memory; the response's body may go to a file |
//! | [`Url`], [`UrlError`] | splits a URL into the host to connect to and the target of a request |
//! | [`Pool`], [`PoolMachine`], [`PoolConfig`] | connections to many servers, shared by all machines |
//! | [`Connector`], [`ByAddress`], [`ByName`] | what the pool's connections are made of |
//! | [`TunnelStream`], [`TunnelTarget`], [`TunnelError`] | connections through a proxy |
//! | [`Connection`], [`RequestSource`], [`Job`] | one connection by itself |
//! | [`ClientError`], [`Fault`], [`Stage`] | how a request can fail |
//! | [`ClientConfig`], [`Counters`] | every limit; statistics |
//!
//! # Names that the server uses as well
//!
//! Here [`Head`], [`Next`], [`NextBuilder`], [`Connection`] and [`Counters`] are the client's
//! types. The module [`server`](crate::server) has types of its own under the same names: its
//! `Head`, for example, is the head of a request. [`Scope`], [`RecvMode`] and [`NoUpgrade`] are the
//! same types in both modules. If you need both, import the modules
//! (`use rotor_http::{client, server};`) and write `client::Head` and `server::Head`.

mod config;
mod connection;
mod connector;
mod counters;
mod error;
mod exchange;
mod fetch;
mod handler;
mod head;
#[cfg(feature = "http2")]
mod http2_config;
mod io;
mod job;
mod pool;
mod proxy;
mod request;
mod request_source;
mod requests;
#[cfg(feature = "http2")]
mod streams;
#[cfg(not(feature = "http2"))]
#[path = "no_streams.rs"]
mod streams;
mod url;

pub use rotor_core::Scope;

pub use self::config::ClientConfig;
pub use self::connection::{Connection, ConnectionSeed};
pub use self::connector::{ByAddress, ByName, Connector};
pub use self::counters::Counters;
pub use self::error::{ClientError, Fault, Stage};
pub use self::fetch::{Fetch, Fetched};
pub use self::handler::{Client, Next, NextBuilder};
pub use self::head::Head;
#[cfg(feature = "http2")]
pub use self::http2_config::Http2Config;
pub use self::job::{ClientResult, Job};
pub use self::pool::{Pool, PoolConfig, PoolMachine, PoolRequest, PoolSeed};
pub use self::proxy::{TunnelError, TunnelStream, TunnelTarget};
pub use self::request::Request;
pub use self::request_source::{Offer, RequestSource, Room};
pub use self::url::{Url, UrlError};
pub use crate::no_upgrade::NoUpgrade;
pub use crate::recv_mode::RecvMode;
