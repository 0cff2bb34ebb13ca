//! The HTTP server: a handler for each request, and the connection that runs handlers.
//!
//! **The handler decides what to respond; the connection enforces the protocol.** The connection
//! parses requests, decodes bodies, and applies limits and timeouts. It runs a handler for each
//! request, one after the other on HTTP/1.1 and side by side on HTTP/2. It checks what handlers
//! write, and survives their panics.
//!
//! A complete program is at the top of the [crate]; a handler that receives a body is at
//! [`Server`].
//!
//! | | |
//! |--|--|
//! | [`serve`], [`Serve`], [`ServerFn`] | a whole program, from a function or any [`Server`]: listening, threads, signals, draining |
//! | [`Server`], [`RequestEvent`], [`Next`], [`Reply`], [`RecvMode`] | a handler, the events that it receives, what it returns, how it receives the body |
//! | [`Head`], [`Response`] | what a handler is given: the request's head, and the writer of its response |
//! | [`Intercepted`], [`Around`] | code that sees each request before its handler, and code that runs around every call of a handler |
//! | [`rotor_routes!`](crate::rotor_routes), [`Routed`], [`WithUpgrade`], [`NoUpgrade`] | several servers side by side, even if only some of them upgrade; no other protocol on the same connection |
//! | [`bind`], [`listen`], [`HttpSeed`], [`ServerConfig`], [`Counters`], [`AccessLog`] | setting up and observing a server |
//! | [`Connection`], [`HttpStream`], [`HttpAccept`] | the types of the machines |
//!
//! # Names that the client has, too
//!
//! [`Head`], [`Next`], [`NextBuilder`], [`Connection`] and [`Counters`] here belong to the server.
//! The module [`client`](crate::client) has types of the same names; its `Head`, for example, is
//! the head of a response. [`Scope`], [`RecvMode`] and [`NoUpgrade`] are the same in both. If you
//! need both sides, import the modules (`use rotor_http::{client, server};`) and write
//! `server::Head` and `client::Head`.
//!
//! [`Response`] is the HTTP message that responds to a request, not the value that a machine
//! returns to its loop ([`rotor_core::Response`]). If you need both, import one under another name.

mod access_log;
mod age;
mod around;
mod config;
mod connection;
mod counters;
mod error_page;
mod exchange;
mod finished;
mod handler;
mod head;
#[cfg(feature = "http2")]
mod http2_config;
mod intercepted;
mod io;
mod later;
mod listen;
mod log_line;
mod next;
mod opened;
mod outgoing;
mod persistent_fields;
mod reply;
mod request_event;
mod requests;
mod response;
mod rotor_routes;
mod routed;
mod serve;
mod serve_error;
mod server_fn;
mod shared;
mod shared_date;
#[cfg(feature = "http2")]
mod streams;
#[cfg(not(feature = "http2"))]
#[path = "no_streams.rs"]
mod streams;
mod traffic;
mod unwanted;
mod with_upgrade;

#[doc(hidden)]
pub use rotor_core::Description;
pub use rotor_core::Scope;

pub use self::access_log::{AccessLog, AccessLogConfig, LogFormat, LogReopener, LostLines};
pub use self::around::Around;
pub use self::config::ServerConfig;
pub use self::connection::{Connection, HttpSeed, HttpStream};
pub use self::counters::Counters;
pub use self::finished::Finished;
pub use self::handler::{Next, NextBuilder, Server};
pub use self::head::Head;
#[cfg(feature = "http2")]
pub use self::http2_config::Http2Config;
pub use self::intercepted::{Intercept, Intercepted};
pub use self::listen::{HttpAccept, bind, listen};
pub use self::reply::Reply;
pub use self::request_event::RequestEvent;
pub use self::response::Response;
#[doc(hidden)]
pub use self::rotor_routes::{check_route, refuse_route, start_route};
pub use self::routed::{Route, Routed};
pub use self::serve::{Serve, serve};
pub use self::serve_error::ServeError;
pub use self::server_fn::ServerFn;
pub use self::with_upgrade::WithUpgrade;
pub use crate::no_upgrade::NoUpgrade;
pub use crate::recv_mode::RecvMode;
