//! Spans of [`tracing`] around rotor's requests and machines, and the trace that a request belongs
//! to.
//!
//! **A span is entered when a handler is called and left when it returns, so other machines that
//! run between two calls are not attributed to it. The loop and HTTP contain none of this: a server
//! that is not wrapped pays nothing, and a wrapped one costs a few instructions while there is no
//! subscriber.**
//!
//! # A program
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
//! use rotor::net::TcpListener;
//! use rotor::{Config, Loop};
//! use rotor::http::Status;
//! use rotor::http::client::Fetch;
//! use rotor::http::server::{
//!     self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
//! };
//! use rotor_tracing::Traced;
//!
//! struct Prices;
//!
//! impl Server for Prices {
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
//!         tracing::info!(path = head.path(), "looks it up"); // in the request's span
//!         let mut fetch = Fetch::<()>::get("/price").host("stock.example.com");
//!         if let Some(context) = rotor_tracing::current() {
//!             fetch = fetch.trace(&context); // the next server's span becomes a child of this one
//!         }
//!         // .. `scope.pool.ask(stock, fetch, scope)` ..
//!         # drop(fetch);
//!         response.reply(Status::OK, "text/plain", b"12\n").into()
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // tracing_subscriber::fmt::init();
//! let mut creator = Loop::<HttpAccept<Traced<Prices>, TcpListener>>::new(&Config::new())?;
//! let address = "127.0.0.1:0".parse()?;
//! creator.add_machine_with(|scope| {
//!     server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope)
//! })?;
//! // creator.instantiate(()).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | | |
//! |--|--|
//! | [`Traced`] | a server that wraps a server: a span for each request |
//! | [`Spans`], [`HttpSpans`] | how such a span is made and what is written into it |
//! | [`current`] | the current trace, to be passed on |
//! | [`InSpan`] | a machine that wraps a machine: a span for its life |
//!
//! # The span of a request
//!
//! It has the name `request`, the target `rotor::http` and the level INFO, and the fields of
//! OpenTelemetry: `otel.kind`, `http.request.method` (`_OTHER` for an unknown method, which is then
//! in `http.request.method_original`), `url.path`, `network.protocol.version`,
//! `http.response.status_code`, `error.type` (a status from 500, or `unanswered`), and the ids in
//! the format of the W3C: `trace_id`, `span_id`, `parent_span_id`. It begins with the head of the
//! request and ends with the handler, before the response has been sent.
//!
//! The fields contain text that a peer chose: a subscriber that prints them has to escape it, as
//! `tracing-subscriber` does.
//!
//! # Limits
//!
//! There is one span for each request, or for each machine. At most 512 bytes of a peer's
//! `tracestate` are kept. Requests that are refused before a handler gets them have no span, nor
//! does a protocol after an upgrade. Work that a handler starts on other threads is not in the span
//! automatically: pass `tracing::Span::current()` to it.
//!
//! # Versions and features
//!
//! With its feature `tracing`, the crate `rotor` re-exports this crate as `rotor::tracing`. You can
//! also depend on it beside `rotor`, as the examples here do:
//!
//! ```toml
//! rotor-tracing = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later. There are no features to choose. `tracing` 0.1 is part of the API. Rotor's
//! own log lines go to `log`; `tracing-log` turns them into events.
//!
//! # The book
//!
//! [Seeing what it does](https://github.com/rotor-rs/rotor/blob/main/doc/guide/observing.md).
#![forbid(unsafe_code)]

mod current;
mod machine;
mod spans;
mod trace;
mod traced;

pub use current::current;
pub use machine::InSpan;
pub use spans::{HttpSpans, Spans};
pub use traced::Traced;
pub use tracing;
