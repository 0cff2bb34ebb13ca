//! HTTP/1.1 and HTTP/2 for rotor: a server, static files for it, and a client with a connection
//! pool.
//!
//! **A handler decides; the connection keeps the peer and the protocol in order. A handler never
//! sees a malformed request, and cannot send a malformed response. Ambiguous messages are refused;
//! whatever a peer does costs at most its own connection.**
//!
//! # A program
//!
//! A server that echoes the path of the request:
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use rotor::net::TcpListener;
//! use rotor::{Config, Loop};
//! use rotor::http::Status;
//! use rotor::http::server::{
//!     self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
//! };
//!
//! struct Paths;
//!
//! impl Server for Paths {
//!     type Context = ();
//!     type Seed = ();
//!     type Upgrade = NoUpgrade<()>;
//!
//!     fn headers_received(
//!         _: (),
//!         head: &Head<'_>,
//!         response: &mut Response<'_>,
//!         _: &mut Scope<'_, ()>,
//!     ) -> Next<Self> {
//!         let page = format!("you asked for {}\n", head.path());
//!         response.reply(Status::OK, "text/plain", page.as_bytes()).into()
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<HttpAccept<Paths, TcpListener>>::new(&Config::new())?;
//! let address = "127.0.0.1:0".parse()?; // port 0: the system chooses one
//! creator.add_machine_with(|scope| {
//!     server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope)
//! })?;
//! let mut instance = creator.instantiate(());
//! // `instance.run()` serves until the loop is asked to end. Here that is done at once.
//! instance.handle().drain(std::time::Duration::ZERO);
//! instance.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`server`] | connections and their handlers: [`Server`](server::Server), [`Response`](server::Response), [`Next`](server::Next), [`ServerConfig`](server::ServerConfig) |
//! | [`client`] | the same for clients: [`Client`](client::Client), [`Fetch`](client::Fetch), a [`Pool`](client::Pool) of connections |
//! | [`files`] | a handler that sends the files of a directory |
//! | [`testing`] | a client for tests of servers, on a connection in memory |
//! | the root | shared by both: [`Method`], [`Status`], [`Fields`], [`Trailers`], [`TraceContext`], errors; [`Limits`] |
//!
//! # Limits
//!
//! Every limit and deadline is a setting of [`Limits`], with unit, default and reason;
//! [`server::Counters`] counts how often each was reached. A handler has to limit what it stores
//! itself. A server speaks HTTP/1.0, 1.1 and 2, a client 1.1 and 2. TLS is not part of this crate:
//! a connection runs on any [`StreamSocket`](rotor_core::net::StreamSocket), wrapping ones
//! included, and [`Serve::over`](server::Serve::over) puts TLS below a whole program.
//!
//! # Versions and features
//!
//! The crate `rotor` re-exports this crate as `rotor::http`, and the examples here use that name.
//! If you depend on this crate alone, write `rotor_http` instead:
//!
//! ```toml
//! rotor-http = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux). Two features, off by
//! default:
//!
//! * `http2`: HTTP/2 on connections of servers and clients. Without it a server speaks HTTP/1.0
//!   and 1.1 and a client 1.1, a connection that begins with HTTP/2's preface gets 505, and a
//!   program builds faster.
//! * `body`: `RecvMode::Stored`, bodies of any size as one value, in memory or in files.
//!
//! # The book
//!
//! * [An HTTP server](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-server.md)
//! * [Large bodies, files and
//!   upgrades](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-bodies.md)
//! * [An HTTP client and its
//!   pool](https://github.com/rotor-rs/rotor/blob/main/doc/guide/http-client.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]
// `quick_error!` recurses several times for each variant of `ClientError`.
#![recursion_limit = "256"]
#![cfg_attr(
    not(feature = "http2"),
    allow(dead_code, reason = "what HTTP/2 alone calls stands beside what both versions call")
)]

mod body_receiver;
mod body_watch;
pub mod client;
mod collected;
#[cfg(unix)]
pub mod files;
mod flow;
#[cfg(feature = "http2")]
mod frame_output;
#[doc(hidden)]
pub mod h1;
#[cfg(feature = "http2")]
#[doc(hidden)]
pub mod h2;
pub mod health;
mod limits;
mod no_upgrade;
mod recv_mode;
mod semantics;
pub mod server;
#[cfg(feature = "body")]
mod storing;
mod sync;
pub mod testing;
#[cfg(feature = "http2")]
mod tunnel;
mod upgraded;
mod writer;

pub use self::limits::Limits;
pub use self::semantics::authority::Authority;
pub use self::semantics::content_coding::coding_weight;
pub use self::semantics::date::{format_date, parse_date};
pub use self::semantics::error::{
    BodyError, FramingError, HeadError, MessageError, RequestError, ResponseHeadError,
};
pub use self::semantics::fields::{Field, Fields};
pub use self::semantics::method::Method;
pub use self::semantics::nominated::Nominated;
pub use self::semantics::status::Status;
pub use self::semantics::token_list::{list_elements, list_has_token};
pub use self::semantics::trace_context::TraceContext;
pub use self::semantics::trailers::Trailers;
pub use self::semantics::version::Version;
pub use self::semantics::weight::parse_weight;
