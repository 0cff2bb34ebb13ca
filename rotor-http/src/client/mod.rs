//! The client: a handler for each request, the connection that runs it, and a pool of connections.
//!
//! **A handler decides; the connection keeps the server and the protocol in order.** It guards what
//! handlers write, frames, limits and times what the server answers, uses a connection again only
//! where that is beyond doubt, and makes a request anew only where that is safe. No request is
//! given the answer of another, and none is left without an outcome.
//!
//! Most programs make a [pool](Pool), put its handle into the context, and [`ask`](Pool::ask) it
//! from any machine:
//!
//! ```
//! use rotor_core::{Config, Future, Loop, Machine, Outcome, Response, Scope, Time};
//! use rotor_core::net::TcpStream;
//! use rotor_http::client::{ByAddress, Fetch, Fetched, Pool, PoolConfig, PoolMachine};
//! use rotor_http::client::{ClientResult, ClientConfig};
//! use rotor_core::rotor_compose;
//!
//! struct Context {
//!     pool: Pool<Fetch<Context>>,
//! }
//!
//! type Pooled = PoolMachine<Fetch<Context>, ByAddress<TcpStream>>;
//!
//! /// Asks once, and notes the status.
//! enum Asks {
//!     Begins,
//!     Waits(Future<ClientResult<Fetch<Context>>>),
//! }
//!
//! impl Machine for Asks {
//!     type Context = Context;
//!     type Seed = rotor_core::Infallible;
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
//! creator.add_machine_with(|scope| Response::ok(Machines::Asks(Asks::Begins)).deadline(scope.now()))?;
//! let _instance = creator.instantiate(Context { pool });
//! // instance.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |--|--|
//! | [`Client`], [`Next`], [`Request`], [`Head`] | one request as its handler sees it |
//! | [`Fetch`], [`Fetched`] | a ready-made handler: a request and an answer that are held in memory |
//! | [`Pool`], [`PoolMachine`], [`PoolConfig`] | connections to many servers, for whoever asks |
//! | [`Connector`], [`ByAddress`], [`ByName`] | what the pool's connections are made of |
//! | [`Connection`], [`Feed`], [`Job`] | one connection by itself |
//! | [`ClientError`], [`Fault`], [`Stage`] | what can become of a request instead of an answer |
//! | [`ClientConfig`], [`Counters`] | every limit; what happened |

mod config;
mod connection;
mod connector;
mod counters;
mod error;
mod exchange;
mod feed;
mod fetch;
mod head;
mod job;
mod next;
mod pool;
mod receiving;
mod request;

pub use rotor_core::Scope;

pub use self::config::ClientConfig;
pub use self::connection::{Connection, ConnectionSeed};
pub use self::connector::{ByAddress, ByName, Connector};
pub use self::counters::Counters;
pub use self::error::{ClientError, Fault, Stage};
pub use self::feed::{Feed, Offer};
pub use self::fetch::{Fetch, Fetched};
pub use self::head::Head;
pub use self::job::{ClientResult, Job};
pub use self::next::{Next, NextBuilder};
pub use self::pool::{Ask, Pool, PoolConfig, PoolMachine, PoolSeed};
pub use self::request::Request;
pub use crate::no_upgrade::NoUpgrade;
pub use crate::recv_mode::RecvMode;

use rotor_stream::{Block, Protocol};

use crate::h1::Trailers;

/// One request and its answer, as a value that writes the one, is handed the other, and answers how
/// it goes on.
///
/// Each method gets the handler by value, the [`Request`] to write, and the scope. A handler that
/// needs the whole answer writes three: [`prepare_request`](Client::prepare_request),
/// [`headers_received`](Client::headers_received), which asks for the body
/// ([`RecvMode::Buffered`]), and [`response_received`](Client::response_received), which finishes.
///
/// # What the connection promises
///
/// * `prepare_request` is the first call; it may come a second time, on another connection, if the
///   first one died unanswered and the request may be made again (below). After
///   [`bad_response`](Client::bad_response) none comes.
/// * The head of an answer is well-formed and its framing unambiguous. Its body is whole, or the
///   handler hears `bad_response`: never a short one taken for all of it.
/// * What a handler writes is a correct request, or refused; see [`Request`].
/// * An answer that comes before the request was sent whole is handed over; the rest of the request
///   may still be written, but when the exchange finishes without it, the connection is not used
///   again.
/// * When nobody waits for the outcome any more, the handler is dropped and the connection closed.
///
/// # Making a request again
///
/// A server may close a connection at the very moment at which it is used again. A request is
/// therefore made a second time, once, on a new connection, if its connection had served another
/// one before, nothing at all of an answer came, its method is idempotent (RFC 9110 §9.2.2), and it
/// was written whole in `prepare_request`, so that the handler has lost nothing.
///
/// # Examples
///
/// Asking for the length of a page:
///
/// ```
/// use rotor_http::client::{Client, Head, Next, NoUpgrade, RecvMode, Request, Scope};
/// use rotor_http::{MessageError, Method};
///
/// struct Length;
///
/// impl Length {
///     fn write(request: &mut Request<'_>) -> Result<(), MessageError> {
///         request.start(Method::Get, "/")?;
///         request.add_header("Host", "example.com")?;
///         request.done_headers()?;
///         request.done()
///     }
/// }
///
/// impl Client for Length {
///     type Context = ();
///     type Output = usize;
///     type Upgrade = NoUpgrade<()>;
///
///     fn prepare_request(self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         match Length::write(request) {
///             Ok(()) => Next::go_on(self).no_deadline(),
///             Err(error) => Next::error(error),
///         }
///     }
///     fn headers_received(self, _: &Head<'_>, _: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         Next::recv(self, RecvMode::Buffered(1 << 20)).keep_deadline()
///     }
///     fn response_received(self, body: &[u8], _: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         Next::finished(body.len())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle HTTP answers",
    label = "a client's `Connection` runs handlers",
    note = "implement `Client` for it: `Context`, `Output`, `Upgrade`, `prepare_request`, `headers_received` and what \
            takes the body it asks for"
)]
pub trait Client: Sized {
    /// What the machines of the loop share; a library's handler is generic over it and asks for
    /// traits.
    type Context;

    /// What whoever made the request is given in the end.
    type Output;

    /// The protocol that a connection may go on with; [`NoUpgrade`] where there is none.
    type Upgrade: Protocol<Context = Self::Context>;

    /// What the handler holds on the heap until its request is made, in bytes: a body, above all.
    /// It counts against what may wait in a pool ([`PoolConfig::waiting_bytes_max`]).
    ///
    /// Default: 0. A handler that holds more than its own size had better say so.
    fn held_bytes(&self) -> usize {
        0
    }

    /// There is a connection: write the request, from its beginning, as much as is at hand.
    fn prepare_request(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The server wants the body that was announced with [`Request::expect_continue`], or has said
    /// nothing for too long: write it.
    ///
    /// Default: goes on.
    fn body_wanted(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The request is not complete, and what waited to be sent when the handler last answered has
    /// gone down to half the high-water mark, or wholly, if it was less than that: there is room
    /// for more.
    ///
    /// Default: goes on.
    fn request_flushed(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// An interim answer has come (1xx but 101).
    ///
    /// Default: goes on.
    fn interim_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (head, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The head of the answer has come. The handler may ask for its body, wait, or finish.
    fn headers_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The whole body, which the handler asked for with [`RecvMode::Buffered`]. Trailers are
    /// dropped.
    ///
    /// Default: fails with [`ClientError::Unhandled`].
    fn response_received(
        self,
        body: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, request, scope);
        Next::error(ClientError::Unhandled)
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// Default: drops it.
    fn response_chunk(
        self,
        chunk: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Blocks`], with the memory
    /// in which it came.
    ///
    /// Default: [`response_chunk`](Client::response_chunk).
    fn response_block(
        self,
        block: Block,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.response_chunk(&block, request, scope)
    }

    /// The body has ended, after the last [`response_chunk`](Client::response_chunk) or
    /// [`response_block`](Client::response_block).
    ///
    /// Default: fails with [`ClientError::Unhandled`].
    fn response_end(
        self,
        trailers: &Trailers,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, request, scope);
        Next::error(ClientError::Unhandled)
    }

    /// There is no answer, or none that is whole. The last call: what it returns is what whoever
    /// made the request is given.
    ///
    /// Also called for a request that never had a connection. Default: the error.
    fn bad_response(
        self,
        error: ClientError,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Result<Self::Output, ClientError> {
        let _ = scope;
        Err(error)
    }

    /// The handler's own deadline has been reached; it is gone.
    ///
    /// Default: fails as when the request's deadline passes.
    fn timeout(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::error(ClientError::Deadline(Stage::Answering))
    }

    /// A notifier, port or mailbox that the handler made woke its connection. May be spurious.
    ///
    /// Default: goes on.
    fn wakeup(self, request: &mut Request<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }
}
