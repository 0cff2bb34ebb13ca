//! The server: a handler for each request, and the connection that runs it.
//!
//! **A handler decides; the connection keeps the peer and the protocol in order.** It parses,
//! frames, limits and times what comes, hands requests to handlers one at a time, guards what they
//! write, and survives their panics.
//!
//! A program that runs is at the top of the [crate], a handler that takes a body at [`Server`].
//!
//! | | |
//! |--|--|
//! | [`serve`], [`Serve`], [`ServerFn`] | a whole program, of a function or of any server: listening, threads, signals, draining |
//! | [`Server`], [`Next`], [`Reply`], [`RecvMode`] | a handler, its answers, how it wants to see the body |
//! | [`Head`], [`Response`] | what it is given: the request, and the writer of its answer |
//! | [`Routed`], [`NoUpgrade`] | two servers side by side; no other protocol on the same connection |
//! | [`bind`], [`listen`], [`HttpSeed`], [`ServerConfig`], [`Counters`] | setting up, and watching |
//! | [`Connection`], [`HttpStream`], [`HttpAccept`] | the machines, by their names |

mod answer;
mod config;
mod connection;
mod counters;
mod exchange;
mod head;
mod incoming;
mod next;
mod requests;
mod response;
mod routed;
mod serve;
mod server_fn;
mod shared_date;
mod turn;

pub use rotor_core::Scope;

pub use self::config::{Finished, ServerConfig};
pub use self::connection::{Connection, HttpAccept, HttpSeed, HttpStream, bind, listen};
pub use self::counters::Counters;
pub use self::head::Head;
pub use self::next::{Next, NextBuilder, Reply};
pub use self::response::Response;
pub use self::routed::{Route, Routed};
pub use self::serve::{Serve, ServeError, serve};
pub use self::server_fn::ServerFn;
pub use crate::no_upgrade::NoUpgrade;
pub use crate::recv_mode::RecvMode;

use rotor_core::Time;
use rotor_stream::{Block, Protocol};

use crate::h1::{BodyError, Method, Status, Trailers};

/// One request and its answer, as a value that is handed what comes and answers how it goes on.
///
/// **One handler at a time for a connection**: the next request is looked at when the answer is
/// complete. Each method gets the handler by value, the [`Response`] to write, and the scope.
///
/// A handler of whole requests writes two methods: `headers_received`, which asks for the body
/// ([`RecvMode::Buffered`]), and `request_received`, which answers. One that needs no body writes
/// the first alone.
///
/// # What the connection promises
///
/// * `headers_received` is the first call. The head is well-formed, its framing unambiguous, its
///   `Host` one.
/// * A body is whole, or the handler hears [`bad_request`](Server::bad_request): never a short one
///   taken for all of it.
/// * What a handler writes is a correct message, or refused; see [`Response`].
/// * A handler that panics is gone, and nothing else is: the peer gets 500, or the connection ends
///   where a part of the answer has been sent.
///
/// # Examples
///
/// Echoing a body of at most 1 MiB:
///
/// ```
/// use rotor_http::Status;
/// use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
///
/// struct Echo;
///
/// impl Server for Echo {
///     type Context = ();
///     type Seed = ();
///     type Upgrade = NoUpgrade<()>;
///
///     fn headers_received(_: (), _: &Head<'_>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         Next::recv(Echo, RecvMode::Buffered(1 << 20)).keep_deadline()
///     }
///     fn request_received(self, body: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         response.reply(Status::OK, "application/octet-stream", body).into()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle HTTP requests",
    label = "a `Connection` runs handlers",
    note = "implement `Server` for it: `Context`, `Seed`, `Upgrade` and `headers_received` are enough"
)]
pub trait Server: Sized {
    /// What the machines of the loop share; a library's handler is generic over it and asks for
    /// traits.
    type Context;

    /// What all requests of a server share; cloned once a request.
    type Seed: Clone;

    /// The protocol that a connection may go on with after a request; [`NoUpgrade`] where there is
    /// none.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Whether requests of this method come to the handler; others are answered with 501. A panic
    /// here is one of the handler: 500.
    ///
    /// Default: the methods of RFC 9110 §9.3 but CONNECT and TRACE, and PATCH.
    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace | Method::Extension(_))
    }

    /// The head of a request has come. The handler may answer at once, ask for the body, or wait.
    fn headers_received(
        seed: Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The whole body, which the handler asked for with [`RecvMode::Buffered`]. Trailers are
    /// dropped.
    ///
    /// Default: finishes.
    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, response, scope);
        Next::finished()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// Default: drops it.
    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Blocks`], with the memory
    /// in which it came.
    ///
    /// Default: [`request_chunk`](Server::request_chunk).
    fn request_block(
        self,
        block: Block,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.request_chunk(&block, response, scope)
    }

    /// The body has ended, after the last [`request_chunk`](Server::request_chunk) or
    /// [`request_block`](Server::request_block).
    ///
    /// Default: finishes.
    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, response, scope);
        Next::finished()
    }

    /// What waited to be sent when the handler last answered has gone down to half the high-water
    /// mark, or wholly, if it was less than that: there is room for more.
    ///
    /// Default: waits on.
    fn response_flushed(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The handler's deadline has been reached.
    ///
    /// Default: finishes, after 503 by [`emit_error_page`](Server::emit_error_page) where no status
    /// was written; the connection then closes.
    fn timeout(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = scope;
        if !response.is_started() {
            response.close();
            Self::emit_error_page(Status::SERVICE_UNAVAILABLE, response);
        }
        Next::finished()
    }

    /// A notifier, port or mailbox that the handler made woke its connection. May be spurious: a
    /// wake-up for the handler of an earlier request looks the same.
    ///
    /// Default: waits on.
    fn wakeup(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The loop is to end: finish before `until`. The connection closes after this response.
    ///
    /// Default: goes on.
    fn draining(
        self,
        until: Time,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (until, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The body broke: it is malformed, too large, too slow, there is no room for it
    /// ([`bodies_bytes_max`](ServerConfig::bodies_bytes_max)), or the peer has gone (then also of a
    /// request without a body). The last call: the peer gets the error's status, if nothing of
    /// another answer was sent, and the connection closes.
    ///
    /// Default: nothing.
    fn bad_request(self, error: BodyError, scope: &mut Scope<'_, Self::Context>) {
        let _ = (error, scope);
    }

    /// Writes the answer where no handler does: to a request that was refused, or whose handler
    /// panicked, finished without an answer, or left [`timeout`](Server::timeout) to its default.
    /// The connection closes after it.
    ///
    /// A 503 for want of room, or after [`Next::fail`], says `Retry-After: 5` by itself, unless the
    /// page says when. A page that is not whole when this returns is replaced by the default. A
    /// handler may write its own errors by it as well; the connection then persists.
    ///
    /// Default: one line of plain text.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        plain_page(status, response);
    }
}

/// One line of plain text: the status.
fn plain_page(status: Status, response: &mut Response<'_>) {
    let page = format!("{} {}\n", status.code(), status.reason());
    response.reply(status, "text/plain", page.as_bytes());
}
