//! Tower services served by rotor: axum's routers, and whatever else is a
//! `Service<http::Request<B>>`.
//!
//! **The service decides; rotor's connection keeps the peer and the protocol in order.** It parses,
//! limits and times what comes, on HTTP/1.1 and HTTP/2; the service's futures are polled on the loop
//! of the connection, its bodies are streamed both ways, and each side holds the other up when it is
//! slower.
//!
//! # A program
//!
//! The routes of axum, and the one line that serves them:
//!
//! ```no_run
//! # use rotor_core as rotor;
//! use axum::Router;
//! use axum::extract::Path;
//! use axum::routing::get;
//!
//! fn main() -> Result<(), rotor::BoxError> {
//!     let routes = Router::new()
//!         .route("/", get(|| async { "Hello, World!" }))
//!         .route("/{name}", get(|Path(name): Path<String>| async move { format!("Hello, {name}!") }));
//!     rotor_tower::serve("127.0.0.1:3000", routes)
//! }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`serve`], [`serve_on`], [`Tower::run`] | a whole program: listening, threads, signals, draining |
//! | [`Tower`] | a service, and what it is served with: a seed of `rotor_http`'s servers |
//! | [`TowerServer`] | the server: one request that a service answers |
//! | [`Body`], [`BodyLost`] | the body of a request, as services are given it |
//! | [`Upgrade`] | going on in a protocol of rotor's |
//!
//! # What is as with hyper, and what is not
//!
//! * The body of a request is read when the service reads it: `100 Continue` is sent then. A body
//!   that nobody reads is dropped behind the response, as rotor-http does with all.
//! * A service that is not ready holds up its request: it is not called before. (On HTTP/1.1 that
//!   holds up its peer.)
//! * A future that panics costs its request: 500. One whose connection breaks is dropped. A service
//!   that fails is logged at debug level, and its peer gets 500.
//! * [`handler_timeout`](rotor_http::Limits::handler_timeout), 60 s unless set, holds until the head
//!   of the response is there, and anew from each piece of the request's body: 503. A body of a
//!   response may then take as long as it wants, as a stream of events does.
//! * Where hyper ends a connection whose peer has ended its side, the response goes on here, since the
//!   peer may still read; until it is silent for 10 s ([`Tower::half_close_timeout`]). Then the peer is
//!   taken for gone, and the body is dropped. One that is reset, or whose network is, is found as
//!   with hyper: at once, or when something is sent (`KeepAlive` of axum's `Sse`,
//!   [`StreamConfig::keepalive`](rotor_stream::StreamConfig::keepalive)).
//! * `hyper::upgrade` is not there: a 101 without [`Upgrade`] is answered with 501, and so are axum's
//!   WebSockets. CONNECT is answered with 501.
//! * `ConnectInfo` of axum: [`Tower::extend`].
//!
//! # Limits
//!
//! Those of [`rotor_http::Limits`]. Besides, a body that a service reads more slowly than it comes
//! holds 64 KiB ([`HELD_BYTES_MAX`]) in memory and then its peer; a response is polled for while less than
//! [`output_high_water`](rotor_http::Limits::output_high_water) waits to be sent, at most 64 frames
//! ([`FRAMES_MAX`]) in an event.
//!
//! # Versions and features
//!
//! It stands beside `rotor`, as which examples here know the core, streams and HTTP:
//!
//! ```toml
//! rotor-tower = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (Linux is what the tests run on). There are no
//! features to choose.
//!
//! # The book
//!
//! * [Async libraries, and axum](https://github.com/rotor-rs/rotor/blob/main/doc/guide/async.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod body;
mod body_lost;
/// The programs of the book's chapter are tests.
#[cfg(doctest)]
#[doc = include_str!("../../doc/guide/async.md")]
mod guide {}
mod inbound;
mod outbound;
mod request;
mod serve;
mod server;
mod tower;
mod upgrade;

pub use self::body::Body;
pub use self::body_lost::BodyLost;
pub use self::inbound::HELD_BYTES_MAX;
pub use self::outbound::FRAMES_MAX;
pub use self::serve::{serve, serve_on};
pub use self::server::TowerServer;
pub use self::tower::{HALF_CLOSE_TIMEOUT, Tower};
pub use self::upgrade::Upgrade;
