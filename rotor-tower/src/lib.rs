//! Tower services served by rotor: axum's routers, and any other `Service<http::Request<B>>`.
//!
//! **The service decides; rotor's connection keeps the peer and the protocol in order.** The
//! connection parses, and enforces limits and timeouts, on HTTP/1.1 and HTTP/2. The service's
//! futures are polled on the loop of the connection, and bodies are streamed both ways with
//! backpressure.
//!
//! # A program
//!
//! Routes of axum, and the one line that serves them:
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
//! | [`Tower`] | a service with its settings: a seed of `rotor_http`'s servers |
//! | [`TowerServer`] | the server: a request that a service answers |
//! | [`Body`], [`BodyLost`] | the body of a request, as services get it |
//! | [`Upgrade`] | upgrading to a protocol of rotor |
//!
//! # Compared with hyper
//!
//! * The body of a request is read when the service reads it, and `100 Continue` is sent at that
//!   time. A body of at most 8 KiB that has come together with its head is available when the
//!   service is called. A body that the service does not read is discarded after the response, as
//!   everywhere in rotor-http.
//! * A request ends with its response: a task that goes on reading the body after that gets
//!   [`BodyLost::Finished`]. With hyper it gets the rest. So answer after the body has come.
//! * On HTTP/1.1, a response that is begun before the service has polled a body that is announced
//!   with more than 64 KiB
//!   ([`drained_body_bytes_max`](rotor_http::Limits::drained_body_bytes_max)) says
//!   `Connection: close`, and the connection ends after it, even if the service reads the whole
//!   body in the meantime, as one that sends it back does. hyper keeps the connection then.
//! * `axum::serve` calls `with_state(())` on a router before it serves it, which prepares the
//!   handlers once and not for each request. Here you have to do that yourself; it saves a few
//!   hundred instructions per request.
//! * A service is not called before it is ready, which holds up the request. (On HTTP/1.1 this
//!   holds up all requests of the peer's connection.)
//! * If a future panics, its request is answered with 500. If the connection breaks, the future is
//!   dropped. If a service fails, this is logged at debug level, and the peer gets 500. It also gets
//!   500 for a response that cannot be sent (an interim status, a body of another length than
//!   `Content-Length`): a bug of the service, which is logged at error level.
//! * [`handler_timeout`](rotor_http::Limits::handler_timeout), 60 s by default, applies until the
//!   head of the response is complete, and starts anew with each piece of the request's body; when
//!   it passes, the peer gets 503. After the head, the body of the response may take any time, as a
//!   stream of events does.
//! * The body of a request must arrive at a rate
//!   ([`body_rate_min`](rotor_http::Limits::body_rate_min)) until the head of the response is
//!   complete. From then on the peer may pause between two messages, as in the bidirectional calls
//!   of gRPC; for calls in which it does so earlier there is [`Tower::stream_requests`].
//! * hyper ends a connection whose peer has shut down its side. Here the response goes on, because
//!   the peer may still read, until the body produces nothing for 10 s
//!   ([`Tower::half_close_timeout`]); then the peer counts as gone, and the body is dropped. A
//!   connection that is reset, or whose network fails, is noticed as with hyper: at once, or when
//!   something is sent (`KeepAlive` of axum's `Sse`,
//!   [`StreamConfig::keepalive`](rotor_stream::StreamConfig::keepalive)).
//! * `hyper::upgrade` is not supported: a 101 without [`Upgrade`] is answered with 501, and so are
//!   axum's WebSockets. CONNECT is answered with 501.
//! * For axum's `ConnectInfo` use [`Tower::extend`].
//!
//! # Limits
//!
//! Those of [`rotor_http::Limits`]. In addition, if a service reads a body more slowly than it
//! arrives, 64 KiB ([`HELD_BYTES_MAX`]) are kept in memory, and then the connection stops reading
//! from its peer; a response is polled while less than
//! [`output_high_water`](rotor_http::Limits::output_high_water) waits to be sent, at most 64 frames
//! ([`FRAMES_MAX`]) in an event.
//!
//! # Versions and features
//!
//! Use it beside `rotor`; the examples use that name for the core, streams and HTTP:
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
