//! WebSocket (RFC 6455) and its compression (RFC 7692) for rotor's HTTP servers and clients.
//!
//! **A handler decides; the connection keeps the peer and the protocol in order.** The connection
//! parses frames, enforces limits and timeouts, answers pings and close frames, and stops reading
//! from a peer while too much output waits for it. A handler gets messages, whole and in order, or
//! in pieces; it cannot send a malformed frame.
//!
//! # A program
//!
//! A server that sends each message back:
//!
//! ```
//! # mod rotor { pub use rotor_core::*; pub use rotor_http as http; pub use rotor_websocket as websocket; }
//! use std::sync::Arc;
//!
//! use rotor::net::TcpListener;
//! use rotor::{Config, Loop};
//! use rotor::http::server::{self, Head, HttpAccept, HttpSeed, Response, Scope, Server, ServerConfig};
//! use rotor::websocket::{self as websocket, Handler, Message, Next, Sender, WebSocket, WebSocketConfig};
//!
//! struct Echo;
//!
//! impl Handler for Echo {
//!     type Context = ();
//!     type Seed = ();
//!
//!     fn opened(_: (), _: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
//!         Next::go_on(Echo).no_deadline()
//!     }
//!
//!     fn message(self, message: Message<'_>, out: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
//!         let _closing = out.message(message);
//!         Next::go_on(self).keep_deadline()
//!     }
//! }
//!
//! struct Site;
//!
//! impl Server for Site {
//!     type Context = ();
//!     type Seed = Arc<WebSocketConfig>;
//!     type Upgrade = WebSocket<Echo>;
//!
//!     fn headers_received(
//!         config: Arc<WebSocketConfig>,
//!         head: &Head<'_>,
//!         response: &mut Response<'_>,
//!         _: &mut Scope<'_, ()>,
//!     ) -> server::Next<Self> {
//!         match websocket::accept(head, response, &config) {
//!             Ok(accepted) => server::Next::upgrade(accepted.seed(())),
//!             Err(_the_peer_was_told) => server::Next::finished(),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut creator = Loop::<HttpAccept<Site, TcpListener>>::new(&Config::new())?;
//! let address = "127.0.0.1:0".parse()?; // port 0: the system chooses one
//! creator.add_machine_with(|scope| {
//!     let seed = HttpSeed::new(WebSocketConfig::new().share(), ServerConfig::new());
//!     server::bind(&address, seed, scope)
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
//! | [`Handler`], [`Next`], [`Message`], [`Piece`] | the handler of a connection, its answers, and what it receives |
//! | [`Sender`], [`Prepared`], [`SendError`] | sending |
//! | [`Room`], [`Member`], [`Slow`] | one message for many, and what happens to slow members |
//! | [`accept`], [`Origins`] | the handshake of a server |
//! | [`Dial`], [`request`], [`check`] | the handshake of a client |
//! | [`Key`] | the key of the handshake, for proxies |
//! | [`WebSocket`] | the protocol to which HTTP is upgraded: `type Upgrade` |
//! | [`WebSocketConfig`], [`Deflate`], [`Counters`] | every limit, and how often it was reached |
//! | [`Code`], [`Closed`], [`Fault`], [`Refusal`] | how a connection ends, or does not begin |
//!
//! # Limits
//!
//! Every limit and time is a setting of [`WebSocketConfig`], with unit, default and reason; its
//! [`Counters`] count how often each was reached. A WebSocket runs on an HTTP/1.1 connection, or on
//! a stream of HTTP/2 (RFC 8441), whose limits apply as well: a peer that does not read what is
//! sent to it is dropped after [`response_grace`](rotor_http::Limits::response_grace). No extension
//! except `permessage-deflate` is supported.
//!
//! # Versions and features
//!
//! With its feature `websocket`, the crate `rotor` re-exports this crate as `rotor::websocket`, and
//! the examples here use that name. If you depend on this crate alone, write `rotor_websocket`
//! instead:
//!
//! ```toml
//! rotor-websocket = { git = "https://github.com/rotor-rs/rotor" }
//! ```
//!
//! Rust 1.88 or later, on Unix with 64-bit pointers (the tests run on Linux).
//! There are no features to choose.
//!
//! # The book
//!
//! * [WebSockets](https://github.com/rotor-rs/rotor/blob/main/doc/guide/websocket.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
#![forbid(unsafe_code)]

mod accept;
mod accepted;
mod bucket;
mod close_watch;
mod closed;
mod config;
mod counters;
mod deflate;
mod dial;
mod frame;
mod handler;
mod handshake;
mod incoming;
mod key;
mod link;
mod message;
mod next;
mod origins;
mod outgoing;
mod partial;
mod ping_watch;
mod prepared;
mod refusal;
mod room;
mod room_config;
mod send_error;
mod sender;
mod url;
mod websocket;
mod websocket_seed;

pub use self::accept::accept;
pub use self::accepted::Accepted;
pub use self::closed::{Cause, Closed};
pub use self::config::WebSocketConfig;
pub use self::counters::Counters;
pub use self::deflate::config::Deflate;
pub use self::dial::{Dial, HandshakeRequest, Opened, check, request};
pub use self::frame::code::Code;
pub use self::frame::fault::Fault;
pub use self::handler::Handler;
pub use self::key::Key;
pub use self::message::{Kind, Message, Piece};
pub use self::next::{Next, NextBuilder};
pub use self::origins::{OriginHook, Origins};
pub use self::prepared::Prepared;
pub use self::refusal::Refusal;
pub use self::room::{Delivery, Member, Room};
pub use self::room_config::{RoomConfig, Slow};
pub use self::send_error::SendError;
pub use self::sender::Sender;
pub use self::url::parse_url;
pub use self::websocket::WebSocket;
pub use self::websocket_seed::WebSocketSeed;
