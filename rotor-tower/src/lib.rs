//! Tower services served by rotor: axum's routers, and any other `Service<http::Request<B>>`.
//!
//! **The service decides; rotor's connection keeps the peer and the protocol in order.** The
//! connection parses, and enforces limits and timeouts, on HTTP/1.1 and HTTP/2. The service's
//! futures are polled on the loop of the connection, and bodies are streamed both ways with
//! backpressure.
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
//! | [`Body`], [`BodyLost`] | the body of a request, as services get it |
//! | [`Upgrade`] | upgrading to a protocol of rotor |
//!
//! # What is as with hyper, and what is not
//!
//! * The body of a request is read when the service reads it: `100 Continue` is sent then. A body
//!   of at most 8 KiB that has come together with its head is there when the service is called. A
//!   body that nobody reads is discarded after the response, as everywhere in rotor-http.
//! * A request is over with its response: a task that reads its body on, after that, gets
//!   [`BodyLost::Finished`]. With hyper it gets the rest. Answer once the body has come.
//! * `axum::serve` calls `with_state(())` on a router before it serves it, which prepares its
//!   handlers once and not for each request. Here that is for you to do: a few hundred
//!   instructions of each request.
//! * A service that is not ready holds up its request: it is not called before. (On HTTP/1.1 that
//!   holds up its peer.)
//! * A future that panics costs its request: 500. One whose connection breaks is dropped. A service
//!   that fails is logged at debug level, and its peer gets 500.
//! * [`handler_timeout`](rotor_http::Limits::handler_timeout), 60 s unless set, applies until the
//!   head of the response is there, and starts anew with each piece of the request's body: 503.
//!   After that the body of the response may take any time, as a stream of events does.
//! * hyper ends a connection whose peer has shut down its side. Here the response goes on, because
//!   the peer may still read, until the body is silent for 10 s ([`Tower::half_close_timeout`]);
//!   then the peer counts as gone, and the body is dropped. A connection that is reset, or whose
//!   network fails, is noticed as with hyper: at once, or when something is sent (`KeepAlive` of
//!   axum's `Sse`, [`StreamConfig::keepalive`](rotor_stream::StreamConfig::keepalive)).
//! * `hyper::upgrade` is not supported: a 101 without [`Upgrade`] is answered with 501, and so are
//!   axum's WebSockets. CONNECT is answered with 501.
//! * For axum's `ConnectInfo` use [`Tower::extend`].
//!
//! # Limits
//!
//! Those of [`rotor_http::Limits`]. In addition, a body that a service reads more slowly than it
//! arrives holds 64 KiB ([`HELD_BYTES_MAX`]) in memory and then stops reading from its peer; a
//! response is polled while less than [`output_high_water`](rotor_http::Limits::output_high_water)
//! waits to be sent, at most 64 frames ([`FRAMES_MAX`]) in an event.
//!
//! # Versions and features
//!
//! Use it beside `rotor`, which is the examples' name for the core, streams and HTTP:
//!
//! ```toml
//! rotor-tower = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
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
mod polled;
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
